"""Whether numbers fall into two groups: the gap statistic over the best division of a line [tibshirani2001]."""

from __future__ import annotations

from functools import cache

import numpy as np

from hushrank.streams import Purpose, draw_uniform, seed_key, stream
from hushrank.types import Array

_REFERENCES = 50  # samples of equally spread numbers that the division is compared with
_TINY = 1e-30  # Why: numbers of a group that are all equal have a spread of 0, which has no logarithm


def find_upper_group(values: Array) -> Array:
    """[n] whether a number belongs to the upper of two groups; nobody where there is no more than one."""
    low, high = float(values.min()), float(values.max())
    none = np.zeros(len(values), dtype=bool)
    if len(values) < 3 or low == high:
        return none
    ordered = np.sort(values)
    spreads, place = divide_line((ordered[None] - low) / (high - low))
    means, errors = reference_spreads(len(values))
    gaps = means - np.log(np.maximum(spreads[0], _TINY))
    if gaps[0] >= gaps[1] - errors[1]:  # one group is enough [tibshirani2001, section 3]
        return none
    return np.asarray(values >= ordered[place[0]])


def divide_line(ordered: Array) -> tuple[Array, Array]:
    """Of sorted rows [m, n]: [m, 2] squares around one mean and around two, [m] where the upper group begins."""
    n = ordered.shape[1]
    counts = np.arange(1, n)
    sums, squares = np.cumsum(ordered, axis=1), np.cumsum(ordered * ordered, axis=1)
    whole = squares[:, -1] - sums[:, -1] ** 2 / n
    lower = squares[:, :-1] - sums[:, :-1] ** 2 / counts
    upper = (squares[:, -1:] - squares[:, :-1]) - (sums[:, -1:] - sums[:, :-1]) ** 2 / (n - counts)
    within = np.maximum(lower, 0) + np.maximum(upper, 0)
    best = within.argmin(axis=1)
    return np.stack([np.maximum(whole, 0), within.min(axis=1)], axis=1), best + 1


@cache
def reference_spreads(n: int) -> tuple[Array, Array]:
    """[2] mean and [2] error of the logarithms of both sums of squares, of n numbers spread evenly by chance."""
    draws = draw_uniform(stream(seed_key(0), Purpose.BOOTSTRAP, n), _REFERENCES * n).astype(np.float64)
    logarithms = np.log(np.maximum(divide_line(np.sort(draws.reshape(_REFERENCES, n), axis=1))[0], _TINY))
    return logarithms.mean(axis=0), logarithms.std(axis=0) * np.sqrt(1 + 1 / _REFERENCES)
