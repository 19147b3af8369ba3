"""Attacks on evolution strategies: rewards that were not earned, and perturbations that were not drawn by chance.

A client's message is a seed and one or two mean rewards [foltr-es]; a server can check that a reward is one that lists
can have, no more. So everything that is sent here is a message that an honest client might send.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from hushrank.attacks.stage import Stage
from hushrank.attacks.timed import Timed, wake
from hushrank.keys import at_least
from hushrank.keys import key as setting
from hushrank.streams import draw_bits, fold_in
from hushrank.types import Array, ForgedReward


class Rewarded(Protocol):
    """A message as an honest client would send it."""

    @property
    def seed(self) -> int: ...

    @property
    def rewards(self) -> Sequence[float]: ...


class RewardForm(NamedTuple):
    """What everybody knows of the messages."""

    low: float  # the smallest and the largest reward that there is
    high: float
    perturb: Callable[[Array], Array]  # seeds [n] -> perturbations [n, n_params]


def misreport_rewards(
    attack: FalseRewards | Timed[FalseRewards],
    messages: Sequence[Rewarded],
    ids: Array,
    is_malicious: Array,
    target: RewardTarget,
) -> list[Rewarded]:
    """The messages as the server receives them; honest ones stay the very objects that `privacy/` made."""
    awake = wake(attack, target.round)
    if awake is None or not is_malicious.any():
        return list(messages)
    theirs = [message for message, lies in zip(messages, is_malicious, strict=True) if lies]
    forged = iter(awake.forge(theirs, ids[is_malicious], target.params, target.form, key=target.key))
    return [next(forged) if lies else message for message, lies in zip(messages, is_malicious, strict=True)]


class RewardTarget(NamedTuple):
    """The round that an attack is to spoil."""

    params: Array  # [n_params] the shared ranker
    round: int
    key: Array  # of the attack's own draws
    form: RewardForm


@dataclass(frozen=True)
class FalseRewards:
    """Malicious clients say that what served their people badly served them well; or search for a seed whose
    perturbation points against the way that the ranker has gone from zero, and say that it served them best."""

    stage: ClassVar[Stage] = Stage.rewards
    extreme: bool = setting(False, "report the smallest and the largest reward there is, not the own ones swapped")
    n_seeds: int = setting(0, "seeds that a malicious client chooses from; 0: it keeps its own", check=at_least(0))

    def forge(
        self, messages: Sequence[Rewarded], ids: Array, params: Array, form: RewardForm, *, key: Array
    ) -> list[ForgedReward]:
        """What malicious clients with these ids [n] send in place of their messages [n]."""
        if not self.n_seeds:
            return [ForgedReward(each.seed, self.misreport(each.rewards, form)) for each in messages]
        best = (form.high, form.low)
        return [
            ForgedReward(seed, best[: len(each.rewards)])
            for each, seed in zip(messages, self.choose_seeds(ids, params, form, key=key), strict=True)
        ]

    def misreport(self, rewards: Sequence[float], form: RewardForm) -> tuple[float, ...]:
        """Of two directions the other one was better; of one, the opposite of what it was."""
        if len(rewards) == 2 and not self.extreme:
            return (rewards[1], rewards[0])
        was_good = rewards[0] > (rewards[1] if len(rewards) == 2 else (form.low + form.high) / 2)
        worst_first = (form.low, form.high)[: len(rewards)]
        return worst_first if was_good else (form.high, form.low)[: len(rewards)]

    def choose_seeds(self, ids: Array, params: Array, form: RewardForm, *, key: Array) -> list[int]:
        """Of each client's candidates the one whose perturbation points most against the parameters."""
        candidates = draw_bits(fold_in(key, ids), self.n_seeds).astype(np.int64)
        noise = form.perturb(candidates.ravel())
        along = (noise @ params.astype(np.float64)).reshape(candidates.shape)
        return [int(seed) for seed in candidates[np.arange(len(ids)), along.argmin(axis=1)]]
