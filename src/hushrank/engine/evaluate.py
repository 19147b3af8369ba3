"""Offline quality during training: nDCG@k and expected MaxRR of many rankers on one split, without a loop over queries.

Twin of `metrics.ndcg.mean_ndcg` and `metrics.max_rr.mean_expected_max_rr`, in NumPy: the lists stay ragged, so nothing
is padded and nothing is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.clicks.table import ClickTable
from hushrank.metrics.ndcg import ideal_dcg
from hushrank.types import Array, QuerySet, Ranker

DIVERGED = "training diverged"  # in the message of the error below, also where only that is left of it


class DivergedError(ValueError):
    """A ranker has grown beyond what numbers can hold."""


@dataclass(frozen=True, slots=True)
class Examiner:
    """A split prepared for being ranked again and again."""

    queries: QuerySet
    ideals: Array  # [n_queries] DCG@k of the best list
    query_of: Array  # [n_documents]
    discounts: Array  # [n_documents] of the place within the query, 0 beyond k
    places: Array  # [n_queries, k] where the first k documents of each query stand, 0 beyond its end
    is_there: Array  # [n_queries, k]
    k: int


class Quality(NamedTuple):
    """How good a ranker is on a split."""

    ndcg: float  # over the queries that have a relevant document
    max_rr: float  # expected, over all queries; NaN for a person who is no click table, and where there are none


def prepare_examiner(queries: QuerySet, *, k: int = 10) -> Examiner:
    query_of = np.repeat(np.arange(queries.n_queries), queries.lengths)
    place = np.arange(queries.n_documents) - queries.starts[query_of]
    discounts = np.where(place < k, 1.0 / np.log2(2.0 + place), 0.0)
    first = np.arange(k)
    is_there = first < queries.lengths[:, None]
    places = np.where(is_there, queries.starts[:-1, None] + first, 0)
    return Examiner(queries, ideal_gains(queries, k), query_of, discounts, places, is_there, k)


def ideal_gains(queries: QuerySet, k: int) -> Array:
    """[n_queries] DCG@k of each query's best list."""
    return np.array([ideal_dcg(queries.grades[queries.rows(q)], k) for q in range(queries.n_queries)])


def score_finitely(ranker: Ranker, params: Array, queries: QuerySet) -> Array:
    """[n_documents] scores, refused where training has diverged."""
    scores = ranker.score(params, queries.features)
    if not np.isfinite(scores).all():
        raise DivergedError(
            f"the ranker's scores are no longer finite: {DIVERGED}. Try a smaller learning_rate or server_rate."
        )
    return scores


def examine(examiner: Examiner, ranker: Ranker, params: Array, table: ClickTable | None = None) -> Quality:
    """Mean nDCG@k, and the MaxRR@k that a person with this click table can expect; ties in the order of the file."""
    scores = score_finitely(ranker, params, examiner.queries)
    ranked = examiner.queries.grades[np.lexsort((-scores, examiner.query_of))]
    gains = (2.0**ranked - 1.0) * examiner.discounts
    dcg = np.bincount(examiner.query_of, weights=gains, minlength=examiner.queries.n_queries)
    counts = examiner.ideals > 0
    ndcg = float(np.mean(dcg[counts] / examiner.ideals[counts])) if counts.any() else float("nan")
    if table is None or not examiner.queries.n_queries:
        return Quality(ndcg, float("nan"))
    return Quality(ndcg, expect_max_rr(examiner, ranked, table))


def examine_many(examiner: Examiner, ranker: Ranker, rankers: Array) -> Array:
    """[m] mean nDCG@k of rankers [m, n_params] by the same queries: `examine`, faster where there are many."""
    queries, total = examiner.queries, np.zeros(len(rankers))
    scores = np.stack([score_finitely(ranker, params, queries) for params in rankers], axis=1)
    counted = np.flatnonzero(examiner.ideals > 0)
    for query in counted.tolist():
        rows = queries.rows(query)
        best = np.argsort(-scores[rows], axis=0, kind="stable")[: examiner.k]
        gains = 2.0 ** queries.grades[rows][best] - 1.0
        total += (1.0 / np.log2(2.0 + np.arange(len(best)))) @ gains / examiner.ideals[query]
    return total / len(counted) if len(counted) else np.full(len(rankers), np.nan)


def expect_max_rr(examiner: Examiner, ranked: Array, table: ClickTable) -> float:
    """The mean over queries of sum over ranks of P(first click there) / rank; ranked [n_documents] grades."""
    chances = np.array(table.click)[ranked[examiner.places]] * np.array(table.examine) * examiner.is_there
    above = np.cumprod(1.0 - chances, axis=1)
    first = chances * np.concatenate([np.ones((len(chances), 1)), above[:, :-1]], axis=1)
    return float(np.mean(first @ (1.0 / np.arange(1, examiner.k + 1))))
