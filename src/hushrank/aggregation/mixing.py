"""Nearest-neighbour mixing: every update becomes the mean of its neighbours, then a rule follows [allouah2023]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.aggregation.distances import EUCLIDEAN, iterate_distances
from hushrank.aggregation.geometric_median import GeometricMedian
from hushrank.aggregation.krum import Krum, MultiKrum
from hushrank.aggregation.median import median_aggregate
from hushrank.aggregation.trimmed_mean import TrimmedMean
from hushrank.keys import key
from hushrank.types import Array, Combined, Gathered, Rule

INNER = ("trimmed-mean", "median", "krum", "multi-krum", "geometric-median")
_ROWS = 256  # clients whose neighbours are counted at once


@dataclass(frozen=True, slots=True)
class Mixing:
    """`inner_rule` over the weighted means of everybody's n - m nearest updates, one's own among them.

    The means count alike in that rule: weights have had their say, and many of the means are equal.
    """

    assumed_malicious: int = 0  # m
    inner_rule: str = key("trimmed-mean", "the rule that follows the mixing", choices=INNER)

    @property
    def inner(self) -> Rule:
        m = self.assumed_malicious
        rules: tuple[Rule, ...] = (TrimmedMean(m), median_aggregate, Krum(m), MultiKrum(m), GeometricMedian())
        return rules[INNER.index(self.inner_rule)]

    @property
    def n_needed(self) -> int:
        return max(2 * self.assumed_malicious + 1, int(getattr(self.inner, "n_needed", 1)))

    def count_bytes(self, n: int) -> int:
        """Of who is near to whom, with n clients."""
        return n * n

    def __call__(self, gathered: Gathered) -> Combined:
        n, n_near = len(gathered.ids), len(gathered.ids) - self.assumed_malicious
        updates, weights = gathered.updates.astype(np.float64), gathered.weights.astype(np.float64)
        mixed, near = np.empty_like(updates), np.empty((n, n), dtype=bool)
        for rows, distances in iterate_distances(updates, EUCLIDEAN):
            near[rows] = mark_nearest(distances, n_near)
            counted = near[rows] * weights
            mixed[rows] = counted @ updates / counted.sum(axis=1, keepdims=True)  # [allouah2023]
        combined = self.inner(replace(gathered, updates=mixed, weights=np.ones(n)))
        who = np.ones(n) if combined.trust is None else combined.trust
        chosen = sum(who[i : i + _ROWS] @ near[i : i + _ROWS] for i in range(0, n, _ROWS)) / who.sum()
        return combined._replace(trust=np.minimum(1, chosen * n / n_near))  # how often those who counted had it near


def mark_nearest(distances: Array, n_near: int) -> Array:
    """[n_rows, n] whether a client is among the nearest of a row; of equally distant ones the first."""
    farthest = np.partition(distances, n_near - 1, axis=1)[:, n_near - 1, None]
    is_near = distances < farthest
    ties = distances == farthest
    n_open = n_near - np.count_nonzero(is_near, axis=1)[:, None]
    if np.any(np.count_nonzero(ties, axis=1)[:, None] > n_open):
        ties &= np.cumsum(ties, axis=1) <= n_open
    return np.asarray(is_near | ties)
