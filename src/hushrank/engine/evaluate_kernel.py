"""The best documents of every query without sorting them all, compiled by Numba: twin of `evaluate.sort_best`."""

from __future__ import annotations

from typing import Any

from numba import types

from hushrank.engine.compiled import array_type, f4, f8, i8, keep_compiled
from hushrank.engine.search import rank_places


@keep_compiled([types.void(types.Array(i8, 2, "C"), array_type(kind, 1), array_type(i8, 1)) for kind in (f4, f8)])
def pick_best(
    best: Any,  # [n_queries, k] written: rows of the best documents, best first; beyond a query's end as they are
    scores: Any,  # [n_documents]
    starts: Any,  # [n_queries + 1] first row of each query
) -> None:
    """Equal scores in the order of the file."""
    for query in range(len(best)):
        begin, end = starts[query], starts[query + 1]
        for i in range(rank_places(scores[begin:end], end - begin, best.shape[1], best[query])):
            best[query, i] += begin
