"""A sum of clipped updates behind noise: what the sound mechanisms share.

Every sampled client sends one message of weight 1, a zero update if it learnt nothing, because how often somebody
searched, and silence, are data too. The noise is added by the server, once, or by the clients, each a share.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from hushrank.privacy.clipping import check_norm, clip_update, grid_step, round_towards_zero
from hushrank.privacy.renyi import Spend
from hushrank.types import Array, DenseUpdate, PrivateUpdate, Weighted


class Placement(StrEnum):
    """Who adds the noise."""

    server = "server"
    clients = "clients"


class Adjacency(StrEnum):
    """Which two federations must look alike."""

    add_remove = "add-remove"
    replace_one = "replace-one"

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        raise ValueError(f"adjacency is {value!r}, must be one of {', '.join(cls)}.")

    @property
    def factor(self) -> int:
        """How many clip norms one client can move a sum."""
        return 1 if self is Adjacency.add_remove else 2

    @property
    def words(self) -> str:
        return "adding or removing one client" if self is Adjacency.add_remove else "replacing one client by another"


@dataclass(frozen=True, slots=True)
class NoisySum(ABC):
    """Updates clipped to a norm, noise on their sum; `gaussian.py` and `laplace.py` say which norm and which noise."""

    mechanism: ClassVar[str]  # as the accountants call it
    norm_order: ClassVar[int]  # 1 or 2: the norm that updates are clipped in
    spread: ClassVar[str]  # what `scale` is called in words

    clip_norm: float  # of an update
    noise_multiplier: float  # scale of the sum's noise / clip_norm
    placement: str = "server"  # or clients: who adds the noise
    n_honest: int | None = None  # placement clients: among how many the noise is divided
    least_step: float = 0.0  # a power of two: the step of a secure sum's whole numbers, where that is coarser

    def __post_init__(self) -> None:
        check_norm(self.clip_norm)
        if not 0 <= self.noise_multiplier < math.inf:
            raise ValueError(
                f"noise_multiplier is {self.noise_multiplier}, must be at least 0 (0: clipped, but no noise)."
            )
        if self.placement not in tuple(Placement):
            raise ValueError(f"placement is {self.placement!r}, must be one of {', '.join(Placement)}.")
        if self.placement == Placement.clients and (self.n_honest is None or self.n_honest < 1):
            raise ValueError(
                f"n_honest is {self.n_honest}, must be at least 1: the noise is divided among honest clients."
            )
        if self.placement == Placement.server and self.n_honest is not None:
            raise ValueError(f"n_honest is {self.n_honest}, but the server adds the noise: leave it out.")

    @abstractmethod
    def draw_noise(self, n_params: int, *, key: Array) -> Array:
        """[..., n_params] noise of the whole scale."""

    @abstractmethod
    def draw_share(self, n_params: int, *, n_shares: int, key: Array) -> Array:
        """[..., n_params] noise of which n_shares independent draws sum to `draw_noise`'s distribution."""

    @abstractmethod
    def bound_share(self, *, n_values: int, failure: float) -> float:
        """What none of n_values numbers of shares exceeds, except with probability `failure` for all together."""

    @property
    def scale(self) -> float:
        """Of the sum's noise: standard deviation of Gaussian, scale of Laplace noise."""
        return self.noise_multiplier * self.clip_norm

    @property
    def step(self) -> float:
        """Of the grid that updates and noise stand on: `grid_step` says why."""
        return max(grid_step(self.clip_norm), self.least_step)

    @property
    def guarantee(self) -> str:
        """Of one message."""
        return describe_message(self)

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        """The clipped update, with this client's share of the noise where clients add it; weight 1."""
        clipped = clip_update(update.delta, self.clip_norm, ord=self.norm_order)
        if self.noise_multiplier == 0:
            return PrivateUpdate(clipped, 1.0, self.guarantee)
        delta = round_towards_zero(clipped, self.step)
        return PrivateUpdate(delta + self.client_noise(delta.shape[-1], key=key), 1.0, self.guarantee)

    def client_noise(self, n_params: int, *, key: Array) -> Array:
        """[..., n_params] what a client adds to its update; key [..., 2]: stream(key, PRIVATISE, round, client)."""
        if self.n_honest is None or self.noise_multiplier == 0:
            return np.zeros((*key.shape[:-1], n_params))
        return self._on_grid(self.draw_share(n_params, n_shares=self.n_honest, key=key))

    def server_noise(self, n_params: int, *, key: Array) -> Array:
        """[n_params] what the server adds to the sum of a round; key: stream(key, SERVER_NOISE, round)."""
        if self.placement == Placement.clients or self.noise_multiplier == 0:
            return np.zeros(n_params)
        return self._on_grid(self.draw_noise(n_params, key=key))

    def combine(self, messages: Sequence[Weighted], *, n_params: int, cohort: float, key: Array) -> Array:
        """[n_params] the noisy mean over the expected cohort; key: stream(key, SERVER_NOISE, round)."""
        check_answers(len(messages), self.n_honest or 0)
        return average_sum(messages, n_params=n_params, noise=self.server_noise(n_params, key=key), cohort=cohort)

    def spend(self, adjacency: str = Adjacency.add_remove) -> Spend:
        """What one round costs a client that takes part, seen through the noisy sum."""
        if self.noise_multiplier == 0:
            raise ValueError("noise_multiplier is 0: without noise there is no guarantee to account for.")
        return Spend(self.mechanism, Adjacency(adjacency).factor / self.noise_multiplier)

    def _on_grid(self, noise: Array) -> Array:
        return np.rint(noise / self.step) * self.step


def average_sum(messages: Iterable[Weighted], *, n_params: int, noise: Array | float, cohort: float) -> Array:
    """[n_params] (sum of updates + noise) / cohort.

    Why the *expected* cohort size, a constant, and not the number that answered: that number is data, and dividing by
    it would let one client change everybody's share, which the noise was not measured for.
    """
    if not 0 < cohort < math.inf:
        raise ValueError(f"the expected cohort is {cohort}, must be above 0.")
    total = np.zeros(n_params)
    for message in messages:
        total = total + message.delta
    return (total + noise) / cohort


def check_answers(n_answered: int, n_shares: int) -> None:
    """Refuse a sum with less noise than was promised."""
    if n_answered < n_shares:
        raise ValueError(
            f"{n_answered} clients answered, but the noise was divided among {n_shares}: the sum would carry less "
            "noise than promised. Wait for more clients, or set n_honest lower, which makes each add more."
        )


def describe_message(mechanism: NoisySum) -> str:
    """What one message of a sound mechanism guarantees, and what it does not."""
    norm = f"L{mechanism.norm_order} norm at most {mechanism.clip_norm:g}"
    noise = f"{mechanism.mechanism.capitalize()} noise of {mechanism.spread} {mechanism.scale:.4g}"
    if mechanism.noise_multiplier == 0:
        return f"no guarantee: the update has {norm}, but carries no noise, and none is added to the sum"
    if mechanism.placement == Placement.server:
        return (
            f"no guarantee against whoever sees this message, which is the update with {norm} and carries no noise; "
            f"the server adds {noise} to the sum of a round, so everybody else learns only the noisy sum: each round "
            "spends budget, and the accountant says how much"
        )
    return (
        f"little guarantee against whoever sees this message alone: it is the update with {norm} and a share of noise; "
        f"{mechanism.n_honest} honest clients' shares make {noise} in the sum of a round, so whoever sees only sums (a "
        "secure sum hides the rest) is bound by it: each round spends budget, and the accountant says how much"
    )
