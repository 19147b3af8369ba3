"""Learners by name: each reads one interaction and says where the parameters should move."""

from __future__ import annotations

from hushrank.learners.pdgd import pdgd_gradient
from hushrank.registry import register
from hushrank.types import Gradient

LEARNERS: dict[str, Gradient] = {"pdgd": pdgd_gradient}  # `register_learner` adds to it


def register_learner(name: str, gradient: Gradient) -> None:
    """Offer a learner as `learner=name`."""
    register(LEARNERS, name, gradient, key="learner")
