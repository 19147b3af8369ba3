"""How a round's weighted updates are written for a secure sum, and what is read out of the sum.

A client sends its update times its weight, and the weight itself, as whole numbers modulo 2^32: n_params + 1 entries.
Rounding comes before the weight, so that every entry is a whole number of steps and the sum of any clients is exact.
`add` gives the words that the protocol of `secure_sum.py` gives, without keys and masks: for the simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushrank.privacy.fixed_point import FixedPoint, decode_sum, encode_values
from hushrank.types import Array

_MOST_STEPS = 2.0**50  # Why: as many a float64 number holds exactly, times a weight of 1


@dataclass(frozen=True, slots=True)
class SumFormat:
    """What all clients of a federation agree on, so that their numbers can be added."""

    largest: float  # absolute value of a number of an update, noise included
    n_clients: int  # that may be added at most
    most_weight: int = 1  # of a client
    wraps: bool = False  # whether numbers beyond the range wrap, as noise may; otherwise they are refused

    def __post_init__(self) -> None:
        if self.most_weight < 1:
            raise ValueError(f"most_weight is {self.most_weight}, must be at least 1.")
        self.encoding  # noqa: B018 - refuses a range that cannot be

    @property
    def encoding(self) -> FixedPoint:
        return FixedPoint(self.largest * self.most_weight, self.n_clients)

    @property
    def step(self) -> float:
        """Between two numbers of an update; a power of two."""
        return 1.0 / self.encoding.scale

    @property
    def _unit(self) -> float:
        """What a weight of 1 is written as. Why a power of two: it is read back exactly."""
        return 2.0 ** math.floor(math.log2(self.largest))

    def write(self, updates: Array, weights: Array | float) -> Array:
        """[..., n_params + 1] float64, the entries of [..., n_params] updates with their weights [...]."""
        exact = np.asarray(updates, np.float64)
        most = _MOST_STEPS * self.step if self.wraps else self.largest
        self.check_range(exact.size - int(np.count_nonzero(np.abs(exact) <= most)))
        weight = np.asarray(weights, np.float64)[..., None]
        if not np.all((weight >= 0) & (weight <= self.most_weight) & (weight == np.rint(weight))):
            raise ValueError(f"a weight is no whole number from 0 to {self.most_weight}: it cannot be added.")
        return np.concatenate([weight * np.rint(exact / self.step) * self.step, weight * self._unit], axis=-1)

    def add(self, updates: Array, weights: Array) -> Array:
        """[n_params + 1] uint32, the sum modulo 2^32 of [n, n_params] updates with their weights [n]."""
        words = encode_values(self.write(updates, weights), self.encoding, wraps=self.wraps)
        return words.sum(axis=0, dtype=np.uint32)

    def decode(self, words: Array, *, n_summed: int) -> tuple[Array, float]:
        """`read` of the words [n_params + 1] that n_summed clients add up to."""
        return self.read(decode_sum(words, self.encoding, n_summed=n_summed))

    def read(self, total: Array) -> tuple[Array, float]:
        """[n_params] the sum of weight * update, and the sum of weights."""
        return total[:-1], float(total[-1] / self._unit)

    def check_range(self, n_outside: int) -> None:
        """Refuse a sum that could wrap, without saying which number it was."""
        if n_outside:
            raise ValueError(
                f"{n_outside} numbers of updates are beyond {self.largest:g}, the range of this secure sum, or no "
                "numbers: the sum could wrap. Set sum_bound higher, or clip updates with privacy=sound."
            )
