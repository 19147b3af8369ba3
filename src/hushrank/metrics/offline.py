"""All offline measures of a ranker at once, under the names that users type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from hushrank.metrics.ndcg import ndcg, ndcg_variant
from hushrank.metrics.query_mean import QueryMean, mean_over_queries
from hushrank.metrics.relevant import average_precision, precision, reciprocal_rank
from hushrank.types import Array, QuerySet


def _ndcg_of_all(ranked_grades: Array, *, k: int) -> float:
    return ndcg(ranked_grades, ranked_grades, k=k)


MEASURES: Mapping[str, Callable[[Array], float]] = MappingProxyType(
    {
        "nDCG@10": partial(_ndcg_of_all, k=10),
        "nDCG@5": partial(_ndcg_of_all, k=5),
        "MRR": reciprocal_rank,
        "MAP": average_precision,
        "P@10": partial(precision, k=10),
    }
)

# The same measures as ir-measures names them, for exports.
VARIANTS: Mapping[str, str] = MappingProxyType(
    {"nDCG@10": ndcg_variant(10), "nDCG@5": ndcg_variant(5), "MRR": "RR", "MAP": "AP", "P@10": "P@10"}
)


def evaluate(queries: QuerySet, scores: Array) -> dict[str, QueryMean]:
    """Every measure of `MEASURES` for scores [n_documents]; queries without a relevant document are skipped."""
    return mean_over_queries(queries, scores, MEASURES)
