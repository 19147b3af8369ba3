"""Gaussian noise on the sum of updates that were clipped in L2: what a whole training can be accounted with.

Shapes: noise [n_params], or [..., n_params] for batched keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.privacy.draws import draw_fine_normal
from hushrank.privacy.fixed_point import bound_with_noise
from hushrank.privacy.noisy_sum import UNLIKELY, NoisySum
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class SoundGaussian(NoisySum):
    """Updates clipped in L2, Gaussian noise of standard deviation noise_multiplier * clip_norm on their sum.

    Placed at the clients, each adds variance sigma^2 / n_honest: n_honest of them make sigma^2, whatever the others do.
    """

    mechanism: ClassVar[str] = "gaussian"
    norm_order: ClassVar[int] = 2
    spread: ClassVar[str] = "standard deviation"
    has_normal_noise: ClassVar[bool] = True

    def draw_noise(self, n_params: int, *, key: Array) -> Array:
        return self.scale * draw_fine_normal(key, n_params)

    def draw_share(self, n_params: int, *, n_shares: int, key: Array) -> Array:
        return self.scale / math.sqrt(n_shares) * draw_fine_normal(key, n_params)

    def bound_share(self, *, n_values: int, failure: float) -> float:
        deviation = self.scale / math.sqrt(self.n_honest or 1)
        return bound_with_noise(0.0, deviation, n_values=n_values, failure=failure)

    def bound_share_norm(self, n_params: int, *, n_shares: int) -> float:
        """|z| <= sqrt(n) + sqrt(2 t) except with probability e^-t."""
        return self.scale / math.sqrt(n_shares) * (math.sqrt(n_params) + math.sqrt(2 * UNLIKELY))

    def widest_update(self, n_params: int) -> Array:
        """Every direction is as visible. Why one with both signs: numbers that share their noise give it away."""
        return self.clip_norm / math.sqrt(n_params) * (-1.0) ** np.arange(n_params)

    def log_ratio(self, noise: Array, moved: Array) -> Array:
        """(z . m - |m|^2 / 2) / sigma^2"""
        return (noise @ moved - moved @ moved / 2) / self.scale**2
