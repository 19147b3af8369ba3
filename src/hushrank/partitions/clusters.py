"""Clients who search for different things: the queries divided into clusters by their documents' features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.keys import at_least, key
from hushrank.partitions.division import Aspect, Division, Kind, Skew, Whole, check_even, hand_out
from hushrank.streams import draw_uniform, stream
from hushrank.types import Array, QuerySet

_MOST_STEPS = 100  # Why: Lloyd's algorithm settles in far fewer; what it has by then is a division all the same


@dataclass(frozen=True)
class Clusters:
    """k-means over the mean feature vectors of the training queries; a client has the queries of one cluster."""

    clusters: int | None = key(None, "of queries; default: one for each client", check=at_least(2))
    aspect = Aspect.documents
    is_redrawn = False

    def searches(self, n_clients: int) -> None:
        del n_clients

    def divide(self, whole: Whole) -> Division:
        n = self.clusters or whole.n_clients
        check_even(whole.n_clients, n, "clusters of queries")
        train = whole.fold.train
        if train.n_queries < n:
            raise ValueError(
                f"fold {whole.fold.number} has {train.n_queries} training queries, fewer than {n} clusters: take fewer "
                "clients, or set clusters."
            )
        scale = measure_scale(train)
        means, of_query = find_clusters(place_queries(train, scale), n, key=whole.key)
        parts = [hand_out_queries(train, of_query, n)]
        for split in (whole.fold.vali, whole.fold.test):
            nearest = _distances(place_queries(split, scale), means).argmin(axis=1)
            parts.append(hand_out_queries(split, nearest, n))
        kinds = tuple(Kind(f"cluster-{c + 1}", *own) for c, own in enumerate(zip(*parts, strict=True)))
        return Division(kinds, tuple(range(n)))

    def measure(self, whole: Whole, division: Division) -> Skew:
        train = whole.fold.train
        points = place_queries(train, measure_scale(train))
        by_id = {query_id: place for place, query_id in enumerate(train.query_ids)}
        within = 0.0
        for kind in division.kinds:
            own = points[[by_id[query_id] for query_id in (kind.train or train).query_ids]]
            within += float(np.sum((own - own.mean(axis=0)) ** 2))
        total = float(np.sum((points - points.mean(axis=0)) ** 2))
        rows = tuple((kind.name, (("queries", float((kind.train or train).n_queries)),)) for kind in division.kinds)
        measure = "share of the variance of the queries' mean feature vectors that lies between clients"
        return Skew("queries", 1 - within / total if total else 0.0, measure, "queries of a client", rows)


class FeatureScale(NamedTuple):
    """How feature vectors are centred and scaled before distances are taken, [n_features]."""

    mean: Array
    deviation: Array


def mean_vectors(queries: QuerySet) -> Array:
    """[n_queries, n_features] float64"""
    sums = np.add.reduceat(queries.features.astype(np.float64), queries.starts[:-1], axis=0)
    return np.asarray(sums / queries.lengths[:, None])


def measure_scale(queries: QuerySet) -> FeatureScale:
    means = mean_vectors(queries)
    deviation = means.std(axis=0)
    return FeatureScale(means.mean(axis=0), np.where(deviation > 0, deviation, 1.0))


def place_queries(queries: QuerySet, scale: FeatureScale) -> Array:
    """[n_queries, n_features] the queries' mean vectors, so that every feature counts alike."""
    return np.asarray((mean_vectors(queries) - scale.mean) / scale.deviation)


def hand_out_queries(queries: QuerySet, of_query: Array, n: int) -> list[QuerySet]:
    return hand_out(queries, np.repeat(of_query, queries.lengths), n)


def find_clusters(points: Array, n: int, *, key: Array) -> tuple[Array, Array]:
    """The means [n, n_features] of n clusters and each point's [n_points], by Lloyd's algorithm from k-means++ on."""
    means = choose_first(points, n, key=key)
    of_point = np.full(len(points), -1)
    for _ in range(_MOST_STEPS):
        nearest = fill_empty(_distances(points, means), n)
        if np.array_equal(nearest, of_point):
            break
        of_point = nearest
        means = np.stack([points[of_point == cluster].mean(axis=0) for cluster in range(n)])
    return means, of_point


def choose_first(points: Array, n: int, *, key: Array) -> Array:
    """[n, n_features] one after another, each with a chance that grows with its squared distance from those before."""
    draws = draw_uniform(stream(key, 1), n).astype(np.float64)
    chosen = [int(draws[0] * len(points))]
    for draw in draws[1:]:
        chances = np.cumsum(_distances(points, points[chosen]).min(axis=1))
        chosen.append(min(int(np.searchsorted(chances, draw * chances[-1], side="right")), len(points) - 1))
    return points[chosen]


def fill_empty(distances: Array, n: int) -> Array:
    """[n_points] the nearest mean; a cluster without a point takes the one that lies farthest from its own."""
    nearest = distances.argmin(axis=1)
    for cluster in range(n):
        if not (nearest == cluster).any():
            own = distances[np.arange(len(distances)), nearest]
            is_alone = np.bincount(nearest, minlength=n)[nearest] == 1
            nearest[np.argmax(np.where(is_alone, -1.0, own))] = cluster
    return np.asarray(nearest)


def _distances(points: Array, means: Array) -> Array:
    """[n_points, n_means] squared"""
    return np.stack([np.sum((points - mean) ** 2, axis=1) for mean in means], axis=1)
