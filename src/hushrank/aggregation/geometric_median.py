"""The geometric median: the point with the smallest sum of distances to all updates [pillutla2022]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.median import median_aggregate
from hushrank.keys import above_zero, at_least, key
from hushrank.types import Array, Combined, Gathered

_STILL = 1e-9  # of the typical distance: a step that is shorter is the last


@dataclass(frozen=True, slots=True)
class GeometricMedian:
    """By Weiszfeld's steps, smoothed; each update pulls with its weight.

    Differs: the first point is the median of each coordinate and not the mean, which one huge update carries away, and
    the smoothing is relative to the typical distance, so that the rule follows a change of scale.
    """

    weiszfeld_steps: int = key(100, "most steps towards the geometric median", check=at_least(1))
    smoothing: float = key(1e-6, "of the typical distance: nearer updates pull no harder", check=above_zero)

    def __call__(self, gathered: Gathered) -> Combined:
        updates, point = gathered.updates.astype(np.float64), median_aggregate(gathered).update.astype(np.float64)
        distances = lengths(updates - point)
        typical = float(np.median(distances) or distances.mean() or 1.0)
        floor = self.smoothing * typical
        for _ in range(self.weiszfeld_steps):
            pulls = gathered.weights / np.maximum(distances, floor)  # [pillutla2022]
            moved = pulls @ updates / pulls.sum()
            step, point = float(np.linalg.norm(moved - point)), moved
            distances = lengths(updates - point)
            if step <= _STILL * typical:
                break
        trust = np.minimum(1, np.maximum(np.median(distances), floor) / np.maximum(distances, floor))  # nearer: in full
        return Combined(point, memory=gathered.memory, trust=trust)


def lengths(rows: Array) -> Array:
    """[n] Euclidean norms of rows [n, p]."""
    return np.sqrt(np.einsum("ip,ip->i", rows, rows))
