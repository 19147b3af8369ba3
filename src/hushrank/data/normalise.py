"""Normalisation of features: none, per query to [0, 1], or by the mean and spread of the training documents.

Shapes: features [n_documents, n_features]; means and deviations [n_features]. A constant feature becomes 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from hushrank.types import Array, QuerySet

METHODS = ("none", "query-minmax", "standard")
_BLOCK_ROWS = 4096  # Why: the float64 copies of a block stay small beside the arrays


def check_method(method: str) -> None:
    """Refuse a normalisation that does not exist."""
    if method not in METHODS:
        raise ValueError(f"normalise is {method!r}, must be one of {', '.join(METHODS)}.")


def normalise_queries(queries: QuerySet, method: str, *, train: QuerySet | None = None) -> QuerySet:
    """Apply a normalisation by name; `standard` measures `train`, or the set itself where none is given."""
    check_method(method)
    if method == "none":
        return queries
    if method == "query-minmax":
        return dataclasses.replace(queries, features=query_minmax(queries.features, queries.starts))
    mean, deviation = measure_features((train or queries).features)
    return dataclasses.replace(queries, features=standardise(queries.features, mean=mean, deviation=deviation))


def query_minmax(features: Array, starts: Array) -> Array:
    """(x - min) / (max - min) over the documents of each query, feature by feature; 0 where max = min."""
    scaled = np.empty(features.shape, dtype=np.float32)
    for first, stop in _blocks_of_queries(starts):
        rows = slice(int(starts[first]), int(starts[stop]))
        block, bounds = features[rows].astype(np.float64), starts[first:stop] - starts[first]
        low, high = (extreme.reduceat(block, bounds, axis=0) for extreme in (np.minimum, np.maximum))
        span = np.where(high > low, high - low, np.inf)
        owner = np.repeat(np.arange(stop - first), np.diff(starts[first : stop + 1]))
        scaled[rows] = (block - low[owner]) / span[owner]
    return scaled


def measure_features(features: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (over n) of each feature, in float64; the deviation of a constant is exactly 0."""
    blocks = [features[i : i + _BLOCK_ROWS] for i in range(0, len(features), _BLOCK_ROWS)]
    mean = sum(np.sum(block, axis=0, dtype=np.float64) for block in blocks) / len(features)
    squares = sum(np.sum((block - mean) ** 2, axis=0) for block in blocks)
    is_constant = features.min(axis=0) == features.max(axis=0)
    return np.asarray(mean), np.where(is_constant, 0.0, np.sqrt(squares / len(features)))


def standardise(features: Array, *, mean: Array, deviation: Array) -> Array:
    """(x - mean) / deviation; 0 where the deviation is 0, and for features beyond those that were measured."""
    n_known = min(len(mean), features.shape[1])
    scaled = np.zeros(features.shape, dtype=np.float32)
    divisor = np.where(deviation > 0, deviation, np.inf)[:n_known]
    for i in range(0, len(features), _BLOCK_ROWS):
        scaled[i : i + _BLOCK_ROWS, :n_known] = (features[i : i + _BLOCK_ROWS, :n_known] - mean[:n_known]) / divisor
    return scaled


def _blocks_of_queries(starts: Array) -> Iterator[tuple[int, int]]:
    """Runs of whole queries of about `_BLOCK_ROWS` documents."""
    first, n_queries = 0, len(starts) - 1
    while first < n_queries:
        stop = int(np.searchsorted(starts, starts[first] + _BLOCK_ROWS, side="right")) - 1
        stop = min(max(stop, first + 1), n_queries)
        yield first, stop
        first = stop
