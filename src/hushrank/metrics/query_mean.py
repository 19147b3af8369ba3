"""The mean of a measure over the queries of a set. One rule for all offline measures:

queries without a relevant document (grade >= 1) are skipped and counted, because every ranking of them is as good.
Differs: trec_eval counts them as 0, which turns .70 on MQ2008 into about .50.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hushrank.types import Array, QuerySet


@dataclass(frozen=True, slots=True)
class QueryMean:
    """A measure averaged over queries, with what it is an average of."""

    value: float  # NaN when every query was skipped
    n_queries: int  # queries in the mean
    n_skipped: int  # queries without a relevant document, left out


def rank_by_score(scores: Array) -> Array:
    """[n] document indices by decreasing score; equal scores keep the order of the file."""
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("scores hold NaN, so there is no ranking. Did training diverge? Try a smaller learning_rate.")
    return np.argsort(-values, kind="stable")


def mean_over_queries(
    queries: QuerySet, scores: Array, measures: Mapping[str, Callable[[Array], float]]
) -> dict[str, QueryMean]:
    """Each measure, a function of a query's grades as ranked, averaged over the queries that are not skipped."""
    if np.shape(scores) != (queries.n_documents,):
        raise ValueError(f"scores have shape {np.shape(scores)}, must be one per document: ({queries.n_documents},).")
    ranked = [queries.grades[queries.rows(q)][rank_by_score(scores[queries.rows(q)])] for q in range(queries.n_queries)]
    counted = [grades for grades in ranked if (grades > 0).any()]
    n_skipped = len(ranked) - len(counted)
    return {
        name: QueryMean(
            float(np.mean([measure(grades) for grades in counted])) if counted else float("nan"),
            len(counted),
            n_skipped,
        )
        for name, measure in measures.items()
    }
