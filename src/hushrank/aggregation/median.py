"""The median of each coordinate [yin2018; thesis, section 5.3.2]."""

from __future__ import annotations

import numpy as np

from hushrank.aggregation.trimmed_mean import iterate_columns
from hushrank.types import Combined, Gathered


def median_aggregate(gathered: Gathered) -> Combined:
    """In each coordinate the middle value, of an even number the mean of the middle two. Weights do not count."""
    n, p = gathered.updates.shape
    medians = np.empty(p, gathered.updates.dtype)
    for columns, values in iterate_columns(gathered.updates):
        values.sort(axis=1)
        medians[columns] = 0.5 * values[:, (n - 1) // 2] + 0.5 * values[:, n // 2]  # [thesis, Eq. 5.5]
    return Combined(medians, memory=gathered.memory)
