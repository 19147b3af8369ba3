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
        None, "longest update that counts in full; default: the median of those that are not 0", check=above_zero
    )
    norm_factor: float = key(1.0, "times that bound", check=above_zero)

    def __call__(self, gathered: Gathered) -> Combined:
        norms = lengths(gathered.updates.astype(np.float64))
        bound = self.norm_factor * (
            median_learnt(norms, gathered.updates) if self.norm_bound is None else self.norm_bound
        )
        shares = shares_within(norms, bound)
        update = mean_gathered(gathered.updates * shares[:, None], gathered.weights)  # [sun2019]
        return Combined(update, memory=gathered.memory, trust=shares)


def median_learnt(norms: Array, updates: Array) -> float:
    """The median of norms [n] over the clients that learnt something, or over all where nobody did.

    Why: without clicks an update is zero, and most clients may have none; a bound of 0 would silence all the others.
    """
    has_learnt = updates.any(axis=1)
    return float(np.median(norms[has_learnt] if has_learnt.any() else norms))


def shares_within(norms: Array, bound: float) -> Array:
    """[n] min(1, bound / norm): what is left of vectors that are clipped to a length."""
    least = max(bound, np.finfo(np.float64).tiny)  # Why: a large bound over a small norm overflows
    return np.asarray(np.where(norms > bound, bound / np.maximum(norms, least), 1.0))
