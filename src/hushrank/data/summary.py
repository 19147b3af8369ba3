"""What a data set holds, in numbers, and whether those are the catalogue's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hushrank.data.catalog import CATALOG, CatalogEntry
from hushrank.data.layout import ROLES, find_folds
from hushrank.data.letor import read_letor
from hushrank.data.load import load_dataset, resolve_directory
from hushrank.data.shapes import SHAPES
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


def check_files(name_or_dir: str) -> list[str]:
    """Read every file; the first problem of each, and counts that are not as published."""
    if name_or_dir.partition(":")[0] in SHAPES:
        load_dataset(name_or_dir)
        return []
    directory, _ = resolve_directory(name_or_dir)
    problems: list[str] = []
    read: dict[Path, QuerySet] = {}
    folds = find_folds(directory)
    for path in dict.fromkeys(split.path for fold in folds for split in fold.splits.values()):
        try:
            read[path] = read_letor(path)
        except (ValueError, OSError) as error:
            problems.append(str(error))
    entry = CATALOG.get(name_or_dir.lower()) or CATALOG.get(directory.resolve().name.lower())
    if problems or entry is None:
        return problems
    roles = ("test",) if len(folds) > 1 else ROLES  # Why: over all folds, each query is tested once
    parts = [read[path] for path in dict.fromkeys(fold.splits[role].path for fold in folds for role in roles)]
    return _compare_counts(parts, entry, n_folds=len(folds))


def _compare_counts(parts: list[QuerySet], entry: CatalogEntry, *, n_folds: int) -> list[str]:
    seen = {
        "folds": (n_folds, entry.n_folds),
        "queries": (sum(part.n_queries for part in parts), entry.n_queries),
        "documents": (sum(part.n_documents for part in parts), entry.n_documents),
        "features": (max(part.n_features for part in parts), entry.n_features),
        "grades": (1 + max(int(part.grades.max()) for part in parts), entry.n_grades),
    }
    return [
        f"{came:,} {what} came, {entry.title} has {expected:,}. Is the copy complete?"
        for what, (came, expected) in seen.items()
        if (came > expected if what == "features" else came != expected)  # Why: sparse files may lack the last ones
    ]
