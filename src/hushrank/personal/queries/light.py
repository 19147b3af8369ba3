"""A light personal ranker: one weight for each feature of `features.py`, in NumPy, for devices and quick comparisons.

It is fitted on pairs of a clicked and an unclicked document of the same list, x the difference of their features:

    minimise  sum over pairs of lambda log(1 + e^-(w x)) + ridge |w|^2 / 2,   lambda = |change of AP when they swap|

by Newton's method. Each step needs, of every client, a gradient [F] and a matrix [F, F], and only their sums over
clients: so a federation that adds these up finds the same weights as one place with all logs. Shapes: F features,
P pairs, n searches, m listed documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hushrank.metrics.clicked import measure_clicked
from hushrank.personal.features import FEATURES, N_FEATURES
from hushrank.personal.log import SearchLog
from hushrank.personal.loss import weigh_pairs
from hushrank.types import Array

_STEPS = 12
_RIDGE = 1e-2
# Fitted on the training period of 300 generated users (personal-like, seed 101), by `python -m benchmarks.queries
# --weights`. Features that are the same for a whole list have none.
STARTING_WEIGHTS = {
    "reciprocal_rank": 0.871,
    "bm25": -2.744,
    "bm25_share": 2.094,
    "coverage": 5.636,
    "query_topic": 0.08,
    "clicks": 0.558,
    "clicks_session": -0.375,
    "clicks_same_query": 3.322,
    "clicks_similar_query": -0.352,
    "skips": -0.027,
    "skips_same_query": -0.077,
    "times_listed": 0.046,
    "click_recency": 0.386,
    "topic_long": 2.063,
    "topic_short": 2.148,
    "topic_last": 0.476,
    "topic_recent": 0.476,
}


class PairTable(NamedTuple):
    """Of one client: what it learns from, or the sums of which it sends."""

    differences: Array  # [P, F] float64, clicked minus unclicked
    weights: Array  # [P]


def starting_weights() -> Array:
    """[F] what a device has before any federation."""
    return np.array([STARTING_WEIGHTS.get(name, 0.0) for name in FEATURES])


def make_pairs(log: SearchLog, features: Array, searches: Array) -> PairTable:
    """From some searches of a log and the features [m, F] of all its documents."""
    differences, weights = [np.zeros((0, N_FEATURES))], [np.zeros(0)]
    for search in searches:
        rows = log.rows(int(search))
        clicked, unclicked = (np.flatnonzero(which) for which in (log.is_clicked[rows], ~log.is_clicked[rows]))
        if not len(clicked) or not len(unclicked):
            continue
        listed = features[rows].astype(np.float64)
        differences.append((listed[clicked][:, None] - listed[unclicked][None]).reshape(-1, N_FEATURES))
        if len(clicked) == 1:  # AP is 1 / rank
            weights.append(np.abs(1 / (1 + clicked[0]) - 1 / (1 + unclicked)))
        else:
            weights.append(weigh_pairs(log.is_clicked[rows])[np.ix_(clicked, unclicked)].ravel())
    return PairTable(np.concatenate(differences), np.concatenate(weights))


def sum_client(pairs: PairTable, weights: Array) -> tuple[Array, Array]:
    """Gradient [F] and curvature [F, F] of one client's loss at these weights [F]."""
    share = 0.5 * (1 - np.tanh(0.5 * pairs.differences @ weights))  # 1 / (1 + e^(w x))
    pull, bend = pairs.weights * share, pairs.weights * share * (1 - share)
    return -pairs.differences.T @ pull, (pairs.differences * bend[:, None]).T @ pairs.differences


def fit_light(clients: Sequence[PairTable]) -> Array:
    """[F] the weights that all these clients' pairs have together."""
    weights = np.zeros(N_FEATURES)
    for _ in range(_STEPS):
        gradient, curvature = _RIDGE * weights, _RIDGE * np.eye(N_FEATURES)
        for pairs in clients:
            slope, bend = sum_client(pairs, weights)
            gradient, curvature = gradient + slope, curvature + bend
        weights = weights - np.linalg.solve(curvature, gradient)
    return weights


def average_precisions(log: SearchLog, scores: Array, searches: Iterable[int]) -> Array:
    """[n] AP of each of these searches, which all have a click, when lists are ordered by scores [m]."""
    found = []
    for search in searches:
        rows = log.rows(int(search))
        is_clicked = log.is_clicked[rows][None]
        measured = measure_clicked(scores[rows][None], is_clicked, np.ones_like(is_clicked))
        found += measured.average_precision.tolist()
    return np.array(found)
