"""Learners by name: each reads one interaction and says where the parameters should move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hushrank.keys import make_method
from hushrank.learners.pdgd import pdgd_gradient
from hushrank.registry import register
from hushrank.types import Gradient

LearnerMaker: TypeAlias = Gradient | type[Gradient]  # a learner, or the dataclass of learners that differ in settings
LEARNERS: dict[str, LearnerMaker] = {"pdgd": pdgd_gradient}  # `register_learner` adds to it


@dataclass(frozen=True, slots=True)
class NamedLearner:
    """How a client reads one interaction, under its name."""

    name: str
    gradient: Gradient

    @property
    def pull(self) -> Callable[..., bool] | None:
        """The same in a form that Numba compiles (`engine/kernel.py`, `pull_pairs`); None: there is none."""
        return getattr(self.gradient, "pull", None)


PDGD = NamedLearner("pdgd", pdgd_gradient)


def find_learner(name: str, **settings: object) -> NamedLearner:
    """The learner of this name with these settings."""
    return NamedLearner(name, make_method(LEARNERS, name, settings))


def register_learner(name: str, gradient: LearnerMaker) -> None:
    """Offer a learner as `learner=name`."""
    register(LEARNERS, name, gradient, key="learner")
