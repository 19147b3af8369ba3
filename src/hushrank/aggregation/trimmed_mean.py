"""Rules that look at one coordinate at a time: Trimmed Mean and Median [yin2018; thesis, section 5.3.2]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.mean import mean_gathered
from hushrank.types import Array, Combined, Gathered

_BLOCK = 1 << 20  # numbers sorted at once; Why: they stay in the cache


def iterate_columns(updates: Array) -> Iterator[tuple[slice, Array]]:
    """(coordinates, [n_coordinates, n] what everybody says there, a copy) until all coordinates are through."""
    n, p = updates.shape
    step = max(1, _BLOCK // n)
    for first in range(0, p, step):
        columns = slice(first, min(first + step, p))
        yield columns, np.array(updates[:, columns].T, order="C")


@dataclass(frozen=True, slots=True)
class TrimmedMean:
    """In each coordinate the weighted mean without the m largest and the m smallest values; m = 0 is the mean."""

    assumed_malicious: int = 0  # m, the thesis' beta

    @property
    def n_needed(self) -> int:
        return 2 * self.assumed_malicious + 1

    def __call__(self, gathered: Gathered) -> Combined:
        updates, weights, n_cut = gathered.updates, gathered.weights, self.assumed_malicious
        if n_cut == 0:
            return Combined(mean_gathered(updates, weights), memory=gathered.memory)
        trimmed = np.empty(updates.shape[1])
        for columns, values in iterate_columns(updates):
            trimmed[columns] = trim_rows(values, weights, n_cut)
        return Combined(trimmed, memory=gathered.memory)


def trim_rows(values: Array, weights: Array, n_cut: int) -> Array:
    """[n_rows] of values [n_rows, n], which are sorted in place."""
    kept = slice(n_cut, values.shape[1] - n_cut)
    if (weights == weights[0]).all():
        values.sort(axis=1)
        return np.asarray(values[:, kept].mean(axis=1, dtype=np.float64))  # [thesis, Eq. 5.4]
    order = np.argsort(values, axis=1, kind="stable")[:, kept]
    counted = weights[order].astype(np.float64)
    return np.asarray((counted * np.take_along_axis(values, order, axis=1)).sum(axis=1) / counted.sum(axis=1))
