"""Gaussian noise on the sum of updates that were clipped in L2: what a whole training can be accounted with.

Shapes: updates and noise [n_params], or [..., n_params] for batched keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.privacy.clipping import check_norm, clip_update, grid_step, round_towards_zero
from hushrank.privacy.draws import draw_fine_normal
from hushrank.privacy.noisy_sum import (
    Adjacency,
    Placement,
    average_sum,
    check_answers,
    check_mechanism,
    describe_message,
)
from hushrank.privacy.renyi import Spend
from hushrank.types import Array, DenseUpdate, PrivateUpdate


@dataclass(frozen=True, slots=True)
class SoundGaussian:
    """Updates clipped in L2, Gaussian noise of standard deviation noise_multiplier * clip_norm on their sum.

    Placed at the clients, each adds variance sigma^2 / n_honest: n_honest of them make sigma^2, whatever the others do.
    """

    clip_norm: float  # L2
    noise_multiplier: float  # standard deviation of the sum's noise / clip_norm
    placement: str = "server"  # or clients: who adds the noise
    n_honest: int | None = None  # placement clients: among how many the noise is divided

    def __post_init__(self) -> None:
        check_norm(self.clip_norm)
        check_mechanism(self.noise_multiplier, self.placement, self.n_honest)

    @property
    def sigma(self) -> float:
        """Standard deviation of the sum's noise."""
        return self.noise_multiplier * self.clip_norm

    @property
    def guarantee(self) -> str:
        """Of one message."""
        return describe_message(
            noise=f"Gaussian noise of standard deviation {self.sigma:.4g}",
            norm=f"L2 norm at most {self.clip_norm:g}",
            noise_multiplier=self.noise_multiplier,
            placement=self.placement,
            n_honest=self.n_honest,
        )

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        """The clipped update, with this client's share of the noise where clients add it; weight 1."""
        clipped = clip_update(update.delta, self.clip_norm, ord=2)
        if self.noise_multiplier == 0:
            return PrivateUpdate(clipped, 1.0, self.guarantee)
        delta = round_towards_zero(clipped, grid_step(self.clip_norm))
        if self.n_honest is not None:
            delta = delta + self._draw_noise(delta.shape[-1], self.sigma / math.sqrt(self.n_honest), key)
        return PrivateUpdate(delta, 1.0, self.guarantee)

    def server_noise(self, n_params: int, *, key: Array) -> Array:
        """[n_params] what the server adds to the sum of a round; key: stream(key, SERVER_NOISE, round)."""
        if self.placement == Placement.clients or self.noise_multiplier == 0:
            return np.zeros(n_params)
        return self._draw_noise(n_params, self.sigma, key)

    def combine(self, messages: Sequence[PrivateUpdate], *, n_params: int, cohort: float, key: Array) -> Array:
        """[n_params] the noisy mean over the expected cohort; key: stream(key, SERVER_NOISE, round)."""
        check_answers(len(messages), self.n_honest or 0)
        return average_sum(messages, n_params=n_params, noise=self.server_noise(n_params, key=key), cohort=cohort)

    def spend(self, adjacency: str = Adjacency.add_remove) -> Spend:
        """What one round costs a client that takes part, seen through the noisy sum."""
        if self.noise_multiplier == 0:
            raise ValueError("noise_multiplier is 0: without noise there is no guarantee to account for.")
        return Spend("gaussian", Adjacency(adjacency).factor / self.noise_multiplier)

    def _draw_noise(self, n_params: int, deviation: float, key: Array) -> Array:
        """[n_params] on the grid of the updates: `grid_step` says why."""
        step = grid_step(self.clip_norm)
        return np.rint(deviation * draw_fine_normal(key, n_params) / step) * step
