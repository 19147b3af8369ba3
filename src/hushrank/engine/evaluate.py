"""Offline quality during training: nDCG@k of many rankers on one split, without a loop over queries.

Twin of `metrics.ndcg.mean_ndcg`, in NumPy: the lists stay ragged, so nothing is padded and nothing is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.metrics.ndcg import ideal_dcg
from hushrank.types import Array, QuerySet, Ranker


@dataclass(frozen=True, slots=True)
class Examiner:
    """A split prepared for being ranked again and again."""

    queries: QuerySet
    ideals: Array  # [n_queries] DCG@k of the best list
    query_of: Array  # [n_documents]
    discounts: Array  # [n_documents] of the place within the query, 0 beyond k
    k: int


def prepare_examiner(queries: QuerySet, *, k: int = 10) -> Examiner:
    query_of = np.repeat(np.arange(queries.n_queries), queries.lengths)
    place = np.arange(queries.n_documents) - queries.starts[query_of]
    discounts = np.where(place < k, 1.0 / np.log2(2.0 + place), 0.0)
    return Examiner(queries, ideal_gains(queries, k), query_of, discounts, k)


def ideal_gains(queries: QuerySet, k: int) -> Array:
    """[n_queries] DCG@k of each query's best list."""
    return np.array([ideal_dcg(queries.grades[queries.rows(q)], k) for q in range(queries.n_queries)])


def examine(examiner: Examiner, ranker: Ranker, params: Array) -> float:
    """Mean nDCG@k over the queries that have a relevant document; equal scores keep the order of the file."""
    scores = ranker.score(params, examiner.queries.features)
    if not np.isfinite(scores).all():
        raise ValueError(
            "the ranker's scores are no longer finite: training diverged. Try a smaller learning_rate or server_rate."
        )
    ranked = examiner.queries.grades[np.lexsort((-scores, examiner.query_of))]
    gains = (2.0**ranked - 1.0) * examiner.discounts
    dcg = np.bincount(examiner.query_of, weights=gains, minlength=examiner.queries.n_queries)
    counts = examiner.ideals > 0
    return float(np.mean(dcg[counts] / examiner.ideals[counts])) if counts.any() else float("nan")
