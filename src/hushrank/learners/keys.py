"""The keys that say how a client learns from an interaction."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import above_zero, at_least, key
from hushrank.learners.named import LEARNERS


@dataclass(frozen=True, kw_only=True)
class LocalStepKeys:
    """Of recipes and agreements."""

    learning_rate: float = key(0.1, "of a client's own steps", check=above_zero)


@dataclass(frozen=True, kw_only=True)
class LearnerKeys(LocalStepKeys):
    """Of recipes."""

    learner: str = key("pdgd", "how one interaction moves the parameters", methods=LEARNERS, alias="name")
    batch: int | None = key(
        None, "pdgd: gradients of so many interactions at the same weights, summed; default 1", check=at_least(1)
    )
