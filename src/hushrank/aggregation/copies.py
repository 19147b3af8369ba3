"""Updates that nearly equal another one of the same round."""

from __future__ import annotations

import numpy as np

from hushrank.aggregation.distances import SQUARED, iterate_distances
from hushrank.aggregation.geometric_median import lengths
from hushrank.types import Array

_SAME = 0.95  # cosine; Why: two honest clients draw their own queries and clicks


def find_copies(updates: Array, is_trusted: Array) -> Array:
    """[n] whether another client's update [n, p] points nearly the same way; nothing learnt copies nothing.

    Who is not trusted cannot make a trusted client a copy: otherwise a liar could frame whom it copies.
    """
    each = lengths(updates)
    there = np.flatnonzero(each > 0)
    is_copy, trusted = np.zeros(len(updates), np.bool_), is_trusted[there]
    if len(there) > 1:
        units = updates[there] / each[there, None]
        for rows, squares in iterate_distances(units, SQUARED):  # |a - b|^2 = 2 - 2 cos(a, b)
            squares[np.arange(len(squares)), np.arange(len(there))[rows]] = np.inf
            squares[np.ix_(trusted[rows], ~trusted)] = np.inf
            is_copy[there[rows]] = squares.min(axis=1) < 2 - 2 * _SAME
    return is_copy
