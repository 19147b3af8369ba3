"""Bulyan: Krum chooses clients again and again, then each coordinate is trimmed [elmhamdi2018]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.distances import DISTANCES, EUCLIDEAN, iterate_distances
from hushrank.aggregation.trimmed_mean import iterate_columns
from hushrank.keys import key
from hushrank.types import Array, Combined, Gathered

_EXACT = 2048  # clients up to which all distances are kept in float64; beyond in float32, to halve the memory
_FEW = 64  # clients up to which scores are summed anew for each pick: exact where two are each other's nearest
_ROWS = 256  # clients whose neighbours are sorted at once


@dataclass(frozen=True, slots=True)
class Bulyan:
    """Of the n - 2m updates that Krum chooses one after another, in each coordinate the weighted mean of the n - 4m
    values that are nearest to the median."""

    assumed_malicious: int = 0  # m
    distance: str = key(EUCLIDEAN, "what is summed: distances between updates, or their squares", choices=DISTANCES)

    @property
    def n_needed(self) -> int:
        return 4 * self.assumed_malicious + 3  # [elmhamdi2018]

    def count_bytes(self, n: int) -> int:
        """Of distances and of the order of neighbours, with n clients."""
        return n * n * ((8 if n <= _EXACT else 4) + 4)

    def __call__(self, gathered: Gathered) -> Combined:
        n, p = gathered.updates.shape
        n_kept = n - 4 * self.assumed_malicious
        chosen = choose_by_krum(gathered.updates, self.assumed_malicious, self.distance)
        weights = gathered.weights[chosen].astype(np.float64)
        update, counts = np.empty(p), np.zeros(len(chosen))
        for columns, values in iterate_columns(gathered.updates[chosen]):
            away = np.abs(values - np.median(values, axis=1, keepdims=True))
            nearest = np.argsort(away, axis=1, kind="stable")[:, :n_kept]
            counted = weights[nearest]
            update[columns] = (counted * np.take_along_axis(values, nearest, axis=1)).sum(axis=1) / counted.sum(axis=1)
            counts += np.bincount(nearest.ravel(), minlength=len(chosen))
        trust = np.zeros(n)
        trust[chosen] = counts / p  # the share of its coordinates that counted
        return Combined(update, memory=gathered.memory, trust=trust)


def choose_by_krum(updates: Array, assumed_malicious: int, distance: str = EUCLIDEAN) -> Array:
    """[n - 2m] whom Krum picks, then whom it picks among the others, and so on; in the order of the clients."""
    n = len(updates)
    is_left, n_picks = np.ones(n, dtype=bool), n - 2 * assumed_malicious
    if n_picks == n:
        return np.arange(n)
    n_few = min(n_picks, max(0, n - _FEW))  # picks until few enough are left to sum scores anew each time
    distances = keep_distances(updates, distance)
    if n_few:
        is_left[pick_many(distances, assumed_malicious, n_few)] = False
    for _ in range(n_picks - n_few):
        left = np.flatnonzero(is_left)
        # Differs: among the last three of m = 1 no neighbour would count; there the nearest does
        n_near = max(1, len(left) - assumed_malicious - 2)
        nearest = np.sort(distances[left[:, None], left], axis=1)[:, :n_near]
        is_left[left[np.argmin(nearest.sum(axis=1, dtype=np.float64))]] = False
    return np.flatnonzero(~is_left)


def pick_many(distances: Array, assumed_malicious: int, n_picks: int) -> Array:
    """[n_picks] whom Krum picks one after another, of [n, n] distances.

    Scores are not summed anew: when a client goes, each is the sum of one distance less. That is the distance to the
    client if it was among the nearest, and the largest of them otherwise.
    """
    n, n_near = len(distances), len(distances) - assumed_malicious - 2
    order = sort_nearest(distances, n_near)
    scores = sum_nearest(distances, order)
    last = np.full(n, n_near - 1)  # the place in `order` of the farthest client that counts
    left, picked = np.arange(n), np.empty(n_picks, np.int64)
    for pick in range(n_picks):
        chosen = picked[pick] = left[np.argmin(scores[left])]
        left = left[left != chosen]
        farthest = order[left, last[left]]
        to_chosen, to_farthest = distances[chosen, left], distances[left, farthest]
        was_near = (to_chosen < to_farthest) | ((to_chosen == to_farthest) & (chosen <= farthest))
        scores[left] -= np.where(was_near, to_chosen, to_farthest)
        last[left] -= ~was_near
        step_back(order, last, left)
    return picked


def step_back(order: Array, last: Array, left: Array) -> None:
    """Let every last place be that of a client that is still there."""
    is_gone = np.ones(len(order), dtype=bool)
    is_gone[left] = False
    moving = left
    while len(moving):
        moving = moving[(last[moving] >= 0) & is_gone[order[moving, last[moving]]]]
        last[moving] -= 1


def keep_distances(updates: Array, distance: str) -> Array:
    """[n, n] distances, to oneself infinite, and nobody else's: scores that were infinite could not be told apart."""
    n = len(updates)
    distances = np.empty((n, n), np.float64 if n <= _EXACT else np.float32)
    farthest = float(np.finfo(distances.dtype).max) / n
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, block in iterate_distances(updates, distance):
            distances[rows] = np.fmin(block, farthest, out=block)  # Why fmin: inf - inf is no number, and far too
    np.fill_diagonal(distances, np.inf)
    return distances


def sort_nearest(distances: Array, n_near: int) -> Array:
    """[n, n_near] the nearest of each client, of equally distant ones the first."""
    n = len(distances)
    order = np.empty((n, n_near), np.int32)
    for first in range(0, n, _ROWS):
        rows = slice(first, first + _ROWS)
        order[rows] = np.argsort(distances[rows], axis=1, kind="stable")[:, :n_near]
    return order


def sum_nearest(distances: Array, order: Array) -> Array:
    """[n] Krum's scores."""
    parts = [
        np.take_along_axis(distances[first : first + _ROWS], order[first : first + _ROWS], axis=1).sum(
            axis=1, dtype=np.float64
        )
        for first in range(0, len(distances), _ROWS)
    ]
    return np.concatenate(parts)
