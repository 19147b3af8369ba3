"""Updates that nearly equal another one of the same round."""

from __future__ import annotations

import numpy as np

from hushrank.aggregation.distances import SQUARED, iterate_distances
from hushrank.aggregation.geometric_median import lengths
from hushrank.types import Array

_SAME = 0.95  # cosine; Why: two honest clients draw their own queries and clicks


def find_copies(updates: Array) -> Array:
    """[n] whether another client's update [n, p] points nearly the same way; nothing learnt copies nothing."""
    each = lengths(updates)
    is_there = np.flatnonzero(each > 0)
    is_copy = np.zeros(len(updates), np.bool_)
    if len(is_there) > 1:
        units = updates[is_there] / each[is_there, None]
        for rows, squares in iterate_distances(units, SQUARED):  # |a - b|^2 = 2 - 2 cos(a, b)
            squares.partition(1, axis=1)  # Why one: everybody is nearest to himself, at 0
            is_copy[is_there[rows]] = squares[:, 1] < 2 - 2 * _SAME
    return is_copy
