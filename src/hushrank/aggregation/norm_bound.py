"""Norm bounding: no update is longer than the others' [sun2019]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.geometric_median import lengths
from hushrank.aggregation.mean import mean_gathered
from hushrank.keys import above_zero, key
from hushrank.types import Array, Combined, Gathered


@dataclass(frozen=True, slots=True)
class NormBounding:
    """The weighted mean of updates that are scaled down to a bound."""

    norm_bound: float | None = key(
        None, "longest update that counts in full; default: the median length in the round", check=above_zero
    )
    norm_factor: float = key(1.0, "times that bound", check=above_zero)

    def __call__(self, gathered: Gathered) -> Combined:
        norms = lengths(gathered.updates.astype(np.float64))
        bound = self.norm_factor * float(np.median(norms) if self.norm_bound is None else self.norm_bound)
        shares = shares_within(norms, bound)
        update = mean_gathered(gathered.updates * shares[:, None], gathered.weights)  # [sun2019]
        return Combined(update, memory=gathered.memory, trust=shares)


def shares_within(norms: Array, bound: float) -> Array:
    """[n] min(1, bound / norm): what is left of vectors that are clipped to a length."""
    return np.asarray(np.where(norms > bound, bound / np.maximum(norms, np.finfo(np.float64).tiny), 1.0))
