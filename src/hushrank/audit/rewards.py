"""Clients that send private rewards, with a canary: one search whose reward is the highest, or the lowest.

Rewards are privatised on the device, one by one, so that neither cohort nor server matter. Many runs are one message
with as many directions: each is privatised with draws of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from hushrank.audit.trial import check_canaries
from hushrank.privacy.laplace_reward import privatise_range_reward
from hushrank.streams import Purpose, draw_bits, stream
from hushrank.types import Array, PrivateReward, SeedReward


class RewardMechanism(Protocol):
    """What is done to the reward of one search."""

    def privatise(self, raw: SeedReward, *, key: Array) -> PrivateReward:
        """Each reward, then the mean of each direction."""

    def log_ratio(self, told: Array, here: float, there: float) -> Array:
        """[...] ln P(told | here) - ln P(told | there)"""


@dataclass(frozen=True, slots=True)
class LaplaceReward:
    """Laplace noise on rewards between two bounds (`laplace_reward.py`), as a mechanism to audit; no recipe has it."""

    low: float
    high: float
    epsilon: float  # of one interaction

    def privatise(self, raw: SeedReward, *, key: Array) -> PrivateReward:
        draws = draw_bits(key, 2 * raw.rewards.size).reshape(*raw.rewards.shape, 2)
        return privatise_range_reward(raw, low=self.low, high=self.high, epsilon=self.epsilon, draws=draws)

    def log_ratio(self, told: Array, here: float, there: float) -> Array:
        return (np.abs(told - there) - np.abs(told - here)) * self.epsilon / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class RewardTrial:
    """One search in each round, whose reward is one of two."""

    is_normal: ClassVar[bool] = False

    mechanism: RewardMechanism
    here: float
    there: float
    rounds: int = 1
    n_canaries: int = 1000  # clients of one run

    @property
    def work(self) -> int:
        return 2 * self.rounds

    def score_runs(self, keys: Array, looks: Sequence[int], *, is_here: bool) -> Array:
        return self._score(keys[0], looks, np.full(len(keys), self.here if is_here else self.there))

    def score_canaries(self, key: Array, looks: Sequence[int], is_in: Array) -> Array:
        check_canaries(self.n_canaries)
        return self._score(key, looks, np.where(is_in, self.here, self.there))

    def _score(self, key: Array, looks: Sequence[int], truths: Array) -> Array:
        """[n, n_looks]"""
        total, kept = np.zeros(len(truths)), []
        for round in range(1, self.rounds + 1):
            raw = SeedReward(0, truths[:, None])
            told = self.mechanism.privatise(raw, key=stream(key, Purpose.PRIVATISE, round))
            total = total + self.mechanism.log_ratio(np.array(told.rewards), self.here, self.there)
            if round in looks:
                kept.append(total)
        return np.stack(kept, axis=-1)
