"""Updates that nearly equal another one of the same round, and which of them counts."""

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


def find_voices(updates: Array, weights: Array, is_alike: Array, may_copy: Array) -> Array:
    """[n] whose update speaks for each client: its own, or, where it may copy, a nearly equal one that moves the mean
    at least as much.

    Why the one that moves it most: a copy that is longer or shorter must not take anything from whom it copies.

    is_alike: [n] who sent something near another's update, and counts; may_copy: [n] who has often done so.
    """
    voices, near = np.arange(len(updates)), np.flatnonzero(is_alike)
    if not may_copy[near].any():
        return voices
    x = updates[near].astype(np.float64)
    each = lengths(x)
    x /= each[:, None]
    order = np.lexsort((may_copy[near], -weights[near] * each))  # the strongest first; of equals, the unsuspected
    x, near, n = x[order], near[order], 0  # the first n rows become those who speak
    for row, who in enumerate(near):
        cosines = x[:n] @ x[row]
        if may_copy[who] and (cosines > _SAME).any():
            voices[who] = near[int(cosines.argmax())]
        else:
            x[n], near[n], n = x[row], who, n + 1
    return voices
