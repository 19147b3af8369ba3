"""Randomised response: tell the truth with probability p, otherwise one of the other values [foltr-es, section 3.3].

It protects each interaction on the device, before anything is sent: against everybody, the server included. n is the
number of values that the reward can take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushrank.privacy.placement import Adjacency
from hushrank.privacy.protection import Exposure, Protection
from hushrank.privacy.renyi import Spend
from hushrank.streams import draw_bits
from hushrank.types import Array, PrivateReward, SeedReward


@dataclass(frozen=True, slots=True)
class RandomisedResponse(Protection):
    """Each interaction's reward told as it was with probability p: the mechanism of an evolution strategy's clients."""

    mode: ClassVar[str] = "paper"

    p: float
    values: tuple[float, ...]  # [n] ascending: all that a reward can be

    def __post_init__(self) -> None:
        check_p(self.p, len(self.values))

    @property
    def epsilon(self) -> float:
        """Of one interaction."""
        return epsilon_bound(self.p, len(self.values))

    @property
    def counts_alike(self) -> bool:
        return True

    def privatise(self, raw: SeedReward, *, key: Array) -> PrivateReward:
        draws = draw_bits(key, 2 * raw.rewards.size).reshape(*raw.rewards.shape, 2)
        return privatise_reward(raw, self.values, p=self.p, draws=draws)

    def log_ratio(self, told: Array, here: float, there: float) -> Array:
        """[...] ln P(told | here) - ln P(told | there) of one interaction's answers, float32 as they travel."""
        is_here, is_there = (np.asarray(told, np.float32) == np.float32(truth) for truth in (here, there))
        return self.epsilon * (is_here.astype(np.float64) - is_there)

    def why_not_fast(self, interactions: Sequence[int]) -> str | None:
        del interactions
        return None

    def price(self, exposure: Exposure) -> Spend | None:
        return Spend("pure", self.epsilon, times=exposure.interactions) if self.p < 1 else None

    def describe_message(self, exposure: Exposure) -> str:
        return describe_guarantee(self.epsilon, n_interactions=exposure.interactions)

    def explain(self, exposure: Exposure) -> dict[str, Any] | None:
        """Nothing is composed over a training: every interaction stands for itself, and each message says so."""
        del exposure
        return None


def privatise_reward(raw: SeedReward, values: Sequence[float], *, p: float, draws: Array) -> PrivateReward:
    """Each interaction's reward by randomised response, then the mean of each direction.

    values [n] ascending: all that a reward can be. draws [n_directions, n_interactions, 2] uint32: the first word says
    whether the true value is told, the second which other one is.
    """
    answers = randomise_values(raw.rewards, values, p=p, draws=draws)
    means = np.asarray(answers).mean(axis=-1).astype(np.float32)
    guarantee = describe_guarantee(epsilon_bound(p, len(values)), n_interactions=raw.rewards.size)
    return PrivateReward(raw.seed, tuple(map(float, means)), guarantee)


def randomise_values(truths: Array, values: Sequence[float], *, p: float, draws: Array) -> Array:
    """[...] one answer for each truth: itself with probability p, else one of the other n - 1 values, all alike.

    Why whole words: the truth is told for floor(p 2^32) of the 2^32 words, so never more often than p, and another
    value is drawn to within n / 2^32 of equally likely: what rounding adds to epsilon is below n / 2^32.
    """
    n = check_p(p, len(values))
    places = find_places(truths, values)
    if np.shape(draws) != (*np.shape(truths), 2) or np.asarray(draws).dtype != np.uint32:
        raise ValueError(
            f"draws are {np.shape(draws)}, must be two uint32 words for each of {np.shape(truths)} rewards."
        )
    is_true = draws[..., 0] < np.uint64(math.floor(p * 2**32))
    others = (draws[..., 1] % np.uint32(n - 1)).astype(np.int64)
    others += others >= places  # skip the truth
    return np.asarray(values, dtype=np.float64)[np.where(is_true, places, others)]


def find_places(truths: Array, values: Sequence[float]) -> Array:
    """[...] where each truth stands among the values; refuses any other, without saying which reward it was."""
    known = np.asarray(values, dtype=np.float64)
    if not np.all(np.diff(known) > 0):
        raise ValueError("the values of a reward must be ascending and different.")
    places = np.minimum(np.searchsorted(known, truths), len(known) - 1)
    if not np.array_equal(known[places], truths):
        raise ValueError(f"a reward is outside the declared set of {len(known)} values: it cannot be privatised.")
    return places


def epsilon_bound(p: float, n_values: int) -> float:
    """epsilon <= ln(p (n - 1) / (1 - p)) of one interaction [foltr-es, Eq. 10]; infinite at p = 1."""
    n = check_p(p, n_values)
    return math.inf if p == 1 else math.log(p * (n - 1) / (1 - p))


def p_for_epsilon(epsilon: float, n_values: int) -> float:
    """The p whose bound is epsilon: e^epsilon / (e^epsilon + n - 1), the inverse of [foltr-es, Eq. 10]."""
    if not epsilon > 0:
        raise ValueError(f"epsilon is {epsilon}, must be > 0: at 0 every answer is a coin toss and nothing is learnt.")
    _check_n_values(n_values)
    return 1.0 / (1.0 + (n_values - 1) * math.exp(-epsilon))


def total_epsilon(epsilon_per_interaction: float, *, n_interactions: int = 1, rounds: int = 1) -> float:
    """What a client spends in all its interactions: by basic composition, their sum."""
    for name, count in (("interactions", n_interactions), ("rounds", rounds)):
        if count < 1:
            raise ValueError(f"{name} is {count}, must be at least 1.")
    return epsilon_per_interaction * n_interactions * rounds


def describe_guarantee(epsilon: float, *, n_interactions: int) -> str:
    """In words, for one message."""
    if math.isinf(epsilon):
        return "no guarantee: p = 1 tells every reward as it was (the mean of each direction is sent)"
    return (
        f"local differential privacy of each interaction, epsilon {epsilon:.4g} if another takes its place "
        "(replace-one), against everybody including the server; interactions in this message: "
        f"{n_interactions}, together epsilon {epsilon * n_interactions:.4g}; every further round adds as much"
    )


def explain_responses(
    *, p: float | None, epsilon: float | None, n_values: int = 11, n_interactions: int = 1, rounds: int = 1
) -> dict[str, Any]:
    """What p guarantees, or which p a wanted epsilon needs: as JSON, in which an infinite epsilon is null."""
    if p is None and epsilon is not None:
        p = p_for_epsilon(epsilon, n_values)
    elif p is None or epsilon is not None:
        raise ValueError("give p to learn epsilon, or epsilon to learn p: one of the two.")
    per_interaction = epsilon_bound(p, n_values)
    spent = explain_spending(per_interaction, n_interactions=n_interactions, rounds=rounds)
    return {"mechanism": "randomised-response", "p": p, "n_values": n_values, **spent}


def explain_spending(epsilon: float, *, n_interactions: int, rounds: int) -> dict[str, Any]:
    """The part of an explanation that every mechanism on rewards shares."""
    total = total_epsilon(epsilon, n_interactions=n_interactions, rounds=rounds)
    return {
        "epsilon_per_interaction": epsilon if math.isfinite(epsilon) else None,
        "interactions": n_interactions,
        "rounds": rounds,
        "epsilon_total": total if math.isfinite(total) else None,
        "adjacency": str(Adjacency.replace_one),
        "guarantee": describe_guarantee(epsilon, n_interactions=n_interactions),
    }


def check_p(p: float, n_values: int) -> int:
    """Refuse a p at which answers say nothing or the opposite; the number of values otherwise."""
    _check_n_values(n_values)
    if not 1 / n_values < p <= 1:
        raise ValueError(
            f"p is {p}, must be above 1/n = {1 / n_values:.4g} (n = {n_values} values) and at most 1: at 1/n every "
            "answer is equally likely whatever the truth. To send rewards as they are, set p to 1."
        )
    return n_values


def _check_n_values(n_values: int) -> None:
    if n_values < 2:
        raise ValueError(f"n_values is {n_values}, must be at least 2: with one value there is nothing to hide.")
