"""Real numbers as whole numbers modulo 2^32, so that masked values add up exactly and a sum can never wrap unseen.

A value v with |v| <= bound becomes round(v scale), a 32-bit word in two's complement. The scale is the largest power of
two at which n_clients values at the bound still fit below 2^31, so the sum of any clients is exact to rounding: the
error is at most 1 / (2 scale) for each client added. With bound 1: 2^21 steps per unit for 1,000 clients, 2^24 for 100.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushrank.types import Array

_LARGEST_SUM = 2**31 - 1  # what a signed 32-bit word holds


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """How everyone in a sum writes numbers. Two who disagree on it would add nonsense."""

    bound: float  # the largest absolute value that a client may send in any entry
    n_clients: int  # the largest number of clients that may be added

    def __post_init__(self) -> None:
        if not 2.0**-100 <= self.bound <= 2.0**100:
            raise ValueError(f"bound is {self.bound}, must be from 2^-100 to 2^100: the largest value to be sent.")
        if not 1 <= self.n_clients <= 2**20:
            raise ValueError(f"n_clients is {self.n_clients}, must be from 1 to 2^20: more leave no digits for values.")

    @property
    def scale(self) -> float:
        """Steps per unit, a power of two. Why: multiplying and dividing by it loses nothing."""
        return 2.0 ** (math.frexp(_LARGEST_SUM // self.n_clients / self.bound)[1] - 1)

    @property
    def largest_step(self) -> int:
        """The largest whole number that one client sends."""
        return round(self.bound * self.scale)


def encode_values(values: Array, encoding: FixedPoint, *, wraps: bool = False) -> Array:
    """[...] uint32 words of the values [...]. Refuses what could wrap, without saying which value it was.

    Words are taken as they are. wraps: so are numbers beyond the bound, modulo 2^32, for sums whose noise must not be
    cut off.
    """
    if values.dtype == np.uint32:
        return values
    numbers = np.asarray(values, dtype=np.float64)
    if wraps:
        return np.rint(numbers * encoding.scale).astype(np.int64).astype(np.uint32)
    n_outside = numbers.size - int(np.count_nonzero(np.abs(numbers) <= encoding.bound))  # NaN counts as outside
    if n_outside:
        raise ValueError(
            f"{n_outside} of {numbers.size} values are beyond the bound of {encoding.bound:g} or no numbers: their sum "
            "could wrap. Clip them, or agree on a larger bound."
        )
    return np.rint(numbers * encoding.scale).astype(np.int64).astype(np.uint32)


def decode_sum(words: Array, encoding: FixedPoint, *, n_summed: int) -> Array:
    """[...] float64, the sum that the words [...] of `n_summed` clients add up to modulo 2^32."""
    if not 1 <= n_summed <= encoding.n_clients:
        raise ValueError(f"{n_summed} clients were added, the encoding allows from 1 to {encoding.n_clients}.")
    steps = np.ascontiguousarray(words, dtype=np.uint32).view(np.int32).astype(np.int64)
    if np.any(np.abs(steps) > n_summed * encoding.largest_step):
        raise ValueError(
            "the sum is larger than its clients could make it: a mask was not removed, or a value wrapped."
        )
    return steps / encoding.scale


def bound_with_noise(largest: float, deviation: float, *, n_values: int, failure: float = 1e-9) -> float:
    """A bound that `n_values` values of at most `largest`, each with Gaussian noise, keep with probability 1 - failure.

    P(|noise| > t deviation) <= 2 e^(-t^2 / 2), for all values together at most `failure`. Beyond it a number wraps. Why
    not clip after the noise: then the sum's noise has another law than the guarantee was worked out for.
    """
    if not (largest >= 0 and deviation >= 0 and n_values >= 1 and 0 < failure < 1):
        raise ValueError("needs largest >= 0, deviation >= 0, n_values >= 1 and failure between 0 and 1.")
    return largest + deviation * math.sqrt(2.0 * math.log(2.0 * n_values / failure))
