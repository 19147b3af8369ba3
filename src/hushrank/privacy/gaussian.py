"""Gaussian noise on the sum of updates that were clipped in L2: what a whole training can be accounted with.

Shapes: noise [n_params], or [..., n_params] for batched keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from hushrank.privacy.draws import draw_discrete_gaussian
from hushrank.privacy.fixed_point import bound_with_noise
from hushrank.privacy.noisy_sum import FEWEST_STEPS, UNLIKELY, NoisySum
from hushrank.types import Array

_ROUNDED = math.sqrt(1.0 + 1.0 / FEWEST_STEPS**2)  # Why: a share's variance is rounded up to whole squared steps


@dataclass(frozen=True, slots=True)
class SoundGaussian(NoisySum):
    """Updates clipped in L2, discrete Gaussian noise of deviation noise_multiplier * clip_norm on their sum.

    Placed at the clients, each adds variance sigma^2 / n_honest: n_honest of them make sigma^2, whatever the others do.
    Why discrete Gaussian shares and not Skellam ones [agarwal2021], whose sum is Skellam exactly: on the grids that
    `check_grid` lets through, the sum of shares is a discrete Gaussian but for a factor of e^(10^-200)
    (`share_distance`), so that the curve of every ledger holds; Skellam noise costs a term of its own.
    """

    mechanism: ClassVar[str] = "gaussian"
    norm_order: ClassVar[int] = 2
    spread: ClassVar[str] = "standard deviation"

    def draw_noise(self, n_params: int, *, key: Array) -> Array:
        return draw_discrete_gaussian(key, n_params, variance=self.variance_steps(1))

    def draw_share(self, n_params: int, *, n_shares: int, key: Array) -> Array:
        return draw_discrete_gaussian(key, n_params, variance=self.variance_steps(n_shares))

    def variance_steps(self, n_shares: int) -> int:
        """Of one of n_shares, in squared steps, rounded up: never less noise than is accounted for."""
        return math.ceil(self.scale_steps**2 / n_shares)

    def spread_share(self, n_shares: int) -> float:
        return self.scale / math.sqrt(n_shares)

    def bound_share(self, *, n_values: int, failure: float) -> float:
        """As of normal numbers: the discrete Gaussian is as light in its tails [canonne2020]."""
        deviation = _ROUNDED * self.spread_share(self.n_honest or 1)
        return bound_with_noise(0.0, deviation, n_values=n_values, failure=failure)

    def bound_share_norm(self, n_params: int, *, n_shares: int) -> float:
        """|z| <= sqrt(n) + sqrt(2 t) except with probability e^-t."""
        return _ROUNDED * self.spread_share(n_shares) * (math.sqrt(n_params) + math.sqrt(2 * UNLIKELY))
