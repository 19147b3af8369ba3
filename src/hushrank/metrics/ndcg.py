"""Normalised discounted cumulative gain, the plain version. `ndcg_fast.py` is its twin for the simulator.

    DCG@k = sum over ranks i = 1..k of (2^grade_i - 1) / log2(1 + i),     nDCG@k = DCG@k / (DCG@k of the best order)

The best order is over all documents of the query, shown or not. Shapes: grades are [n_documents of one query].
"""

from __future__ import annotations

import numpy as np

from hushrank.metrics.query_mean import QueryMean, mean_over_queries, rank_by_score
from hushrank.types import Array, QuerySet

__all__ = ["QueryMean", "dcg", "ideal_dcg", "mean_ndcg", "ndcg", "ndcg_variant", "rank_by_score"]


def ndcg_variant(k: int = 10) -> str:
    """The full name of our nDCG, as ir-measures spells it."""
    return f"nDCG(dcg='exp-log2')@{k}"


def dcg(ranked_grades: Array, k: int = 10) -> float:
    """Discounted cumulative gain of the first k documents of a list."""
    shown = np.asarray(ranked_grades, dtype=np.float64)[: _at_least_one(k)]
    return float(np.sum((2.0**shown - 1.0) / np.log2(1.0 + np.arange(1, len(shown) + 1))))


def ideal_dcg(grades: Array, k: int = 10) -> float:
    """The DCG of the best possible order of these documents."""
    return dcg(np.sort(grades)[::-1], k=k)


def ndcg(ranked_grades: Array, all_grades: Array, k: int = 10) -> float:
    """DCG of a list over that of the best order of all the query's documents; 0 when none of them is relevant."""
    ideal = ideal_dcg(all_grades, k=k)
    return dcg(ranked_grades, k=k) / ideal if ideal > 0 else 0.0


def mean_ndcg(queries: QuerySet, scores: Array, *, k: int = 10) -> QueryMean:
    """Offline nDCG@k of a ranker's scores [n_documents]; queries without a relevant document are skipped."""
    return mean_over_queries(queries, scores, {"ndcg": lambda grades: ndcg(grades, grades, k=k)})["ndcg"]


def _at_least_one(k: int) -> int:
    if k < 1:
        raise ValueError(f"k is {k}, must be at least 1.")
    return k
