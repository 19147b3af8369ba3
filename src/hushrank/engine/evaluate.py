"""Offline quality during training: nDCG@k and expected MaxRR of many rankers on one split, without a loop over queries.

Twin of `metrics.ndcg.mean_ndcg` and `metrics.max_rr.mean_expected_max_rr`, in NumPy: the lists stay ragged, so nothing
is padded. Where Numba is installed, only the best k documents of each query are sorted.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hushrank.clicks.table import ClickTable
from hushrank.extras import has_package
from hushrank.metrics.ndcg import ideal_dcg
from hushrank.types import Array, QuerySet, Ranker

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

DIVERGED = "training diverged"  # in the message of the error below, also where only that is left of it


class DivergedError(ValueError):
    """A ranker has grown beyond what numbers can hold."""


@dataclass(frozen=True, slots=True)
class Examiner:
    """A split prepared for being ranked again and again."""

    queries: QuerySet
    ideals: Array  # [n_queries] DCG@k of the best list
    is_there: Array  # [n_queries, k] whether a query has so many documents
    k: int


class Quality(NamedTuple):
    """How good a ranker is on a split."""

    ndcg: float  # over the queries that have a relevant document
    max_rr: float  # expected, over all queries; NaN for a person who is no click table, and where there are none


def prepare_examiner(queries: QuerySet, *, k: int = 10) -> Examiner:
    is_there = np.arange(k) < queries.lengths[:, None]
    return Examiner(queries, ideal_gains(queries, k), is_there, k)


def ideal_gains(queries: QuerySet, k: int) -> Array:
    """[n_queries] DCG@k of each query's best list."""
    return np.array([ideal_dcg(queries.grades[queries.rows(q)], k) for q in range(queries.n_queries)])


def score_finitely(ranker: Ranker, params: Array, queries: QuerySet) -> Array:
    """[n_documents] scores, refused where training has diverged."""
    with use_one_thread():
        scores = ranker.score(params, queries.features)
    if not np.isfinite(scores).all():
        raise DivergedError(
            f"the ranker's scores are no longer finite: {DIVERGED}. Try a smaller learning_rate or server_rate."
        )
    return scores


def use_one_thread() -> AbstractContextManager[object]:
    """For products of matrices. Why: with several threads their last digits depend on how many there are, and runs side
    by side, each with a thread for every processor, mostly wait for each other."""
    return find_thread_pools().limit(limits=1, user_api="blas") if has_package("threadpoolctl") else nullcontext()


@lru_cache(maxsize=1)  # Why: to look through the loaded libraries takes a millisecond
def find_thread_pools() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def examine(examiner: Examiner, ranker: Ranker, params: Array, table: ClickTable | None = None) -> Quality:
    """Mean nDCG@k, and the MaxRR@k that a person with this click table can expect; ties in the order of the file."""
    scores = score_finitely(ranker, params, examiner.queries)
    ranked = examiner.queries.grades[find_best(scores, examiner.queries.starts, examiner.k)]
    discounts = examiner.is_there * (1.0 / np.log2(2.0 + np.arange(examiner.k)))
    dcg = np.cumsum((2.0**ranked - 1.0) * discounts, axis=1)[:, -1]  # Why: adds up from the first place to the last
    counts = examiner.ideals > 0
    ndcg = float(np.mean(dcg[counts] / examiner.ideals[counts])) if counts.any() else float("nan")
    if table is None or not examiner.queries.n_queries:
        return Quality(ndcg, float("nan"))
    return Quality(ndcg, expect_max_rr(examiner, ranked, table))


def find_best(scores: Array, starts: Array, k: int) -> Array:
    """[n_queries, k] rows of each query's best documents, equal scores in the order of the file; 0 beyond its end."""
    if not has_package("numba"):
        return sort_best(scores, starts, k)
    from hushrank.engine.evaluate_kernel import pick_best

    best = np.zeros((len(starts) - 1, k), np.int64)
    pick_best(best, np.ascontiguousarray(scores), np.ascontiguousarray(starts, np.int64))
    return best


def sort_best(scores: Array, starts: Array, k: int) -> Array:
    """As `find_best`, plainly."""
    lengths = np.diff(starts)
    order = np.lexsort((-scores, np.repeat(np.arange(len(lengths)), lengths)))
    places = starts[:-1, None] + np.arange(k)
    return np.where(places < starts[1:, None], order[np.minimum(places, len(scores) - 1)], 0)


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
    """The mean over queries of sum over ranks of P(first click there) / rank; ranked [n_queries, k] grades."""
    chances = np.array(table.click)[ranked] * np.array(table.examine) * examiner.is_there
    above = np.cumprod(1.0 - chances, axis=1)
    first = chances * np.concatenate([np.ones((len(chances), 1)), above[:, :-1]], axis=1)
    return float(np.mean(first @ (1.0 / np.arange(1, examiner.k + 1))))
