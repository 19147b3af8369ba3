"""What a data set holds, in numbers."""

from __future__ import annotations

import numpy as np

from hushrank.data.layout import ROLES
from hushrank.types import Dataset, QuerySet

Row = dict[str, int | float | str | list[float]]


def summarise_dataset(dataset: Dataset) -> list[Row]:
    """One row per fold and split."""
    return [
        {"fold": fold.number, "split": role, **summarise_queries(getattr(fold, role))}
        for fold in dataset.folds
        for role in ROLES
    ]


def summarise_queries(queries: QuerySet) -> Row:
    """Queries, documents, list lengths, the share of each grade, and of queries without a relevant document."""
    highest = np.maximum.reduceat(queries.grades, queries.starts[:-1])
    return {
        "n_queries": queries.n_queries,
        "n_documents": queries.n_documents,
        "shortest": int(queries.lengths.min()),
        "mean_length": round(float(queries.lengths.mean()), 2),
        "longest": int(queries.lengths.max()),
        "grade_shares": [round(share, 4) for share in (np.bincount(queries.grades) / queries.n_documents).tolist()],
        "empty_share": round(float(np.mean(highest == 0)), 4),
    }
