"""Which public data set a directory is: by its name, as typed or behind links, or by what it holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from hushrank.data.catalog import CATALOG, CatalogEntry, split_counts
from hushrank.data.layout import ROLES, FoldSource, find_folds
from hushrank.data.letor import read_letor
from hushrank.data.shapes import SHAPES
from hushrank.types import QuerySet

_ALIKE = 2.0  # times as many documents, or as few, that a damaged or filtered copy may still have
_ROUNDING = 2.0  # documents that a generated set has more or fewer than queries times their mean
_MOST_FEATURES = 0.98  # share of the features that sparse files have at least; Why: Yahoo's lack one of 700


@dataclass(frozen=True, slots=True)
class Counts:
    """What a file, or all of a data set, holds."""

    n_queries: int
    n_documents: int
    n_features: int
    n_grades: int


def count_rows(queries: QuerySet) -> Counts:
    return Counts(queries.n_queries, queries.n_documents, queries.n_features, 1 + int(queries.grades.max()))


def add_counts(parts: Sequence[Counts]) -> Counts:
    """Of several files together."""
    return Counts(
        sum(part.n_queries for part in parts),
        sum(part.n_documents for part in parts),
        max(part.n_features for part in parts),
        max(part.n_grades for part in parts),
    )


def whole_files(folds: Sequence[FoldSource]) -> list[Path]:
    """The files that hold every query once. Why test: over all folds, each query is tested once."""
    roles = ("test",) if len(folds) > 1 else ROLES
    return list(dict.fromkeys(fold.splits[role].path for fold in folds for role in roles))


def directory_names(directory: Path) -> list[str]:
    """What a directory is called: as typed, and behind each link."""
    place = Path(os.path.abspath(directory))  # noqa: PTH100 - resolve() would follow the links
    names = [place.name]
    while place.is_symlink():
        place = place.parent / place.readlink()
        names.append(place.name)
    return [*names, directory.resolve().name]


def name_directory(directory: Path) -> str:
    """The first of its names that is a public set's, else as typed."""
    names = directory_names(directory)
    return next((name for name in names if name.lower() in CATALOG), names[0])


def recognise_set(directory: Path) -> str | None:
    """The public set that a directory has the name or exactly the counts of."""
    name = name_directory(directory).lower()
    if name in CATALOG:
        return name
    folds = find_folds(directory)
    if len(folds) not in {entry.n_folds for entry in CATALOG.values()}:
        return None
    return find_same(folds, {path: count_rows(read_letor(path)) for path in whole_files(folds)})


def find_same(folds: list[FoldSource], counts: dict[Path, Counts]) -> str | None:
    """The public set that has exactly these counts."""
    return next((name for name, entry in CATALOG.items() if _is_same(entry, folds, counts)), None)


def _is_same(entry: CatalogEntry, folds: list[FoldSource], counts: dict[Path, Counts]) -> bool:
    """Documents of every split where the catalogue has them, else all queries and documents."""
    if entry.n_folds != len(folds) or is_imitated(entry):
        return False
    came = {(f.number, role): counts.get(source.path) for f in folds for role, source in f.splits.items()}
    for split, n_documents in split_counts(entry.part_documents, entry.n_folds).items():
        if (found := came.get(split)) is not None and found.n_documents != n_documents:
            return False
    whole = add_counts([counts[path] for path in whole_files(folds)])
    known = [field for field in ("n_queries", "n_documents") if field not in entry.unverified]
    return whole.n_features <= entry.n_features and all(getattr(whole, f) == getattr(entry, f) for f in known)


def is_imitated(entry: CatalogEntry) -> bool:
    """Whether counts cannot tell a set from a generated one. Why: `mq2007-like` has those of MQ2007."""
    whole = Counts(entry.n_queries, entry.n_documents, entry.n_features, entry.n_grades)
    return not entry.part_documents and _is_shaped(whole)


def _is_shaped(whole: Counts) -> bool:
    """Whether these are the counts of a generated set, whatever its number of queries."""
    return any(
        shape.n_features == whole.n_features
        and abs(whole.n_documents - shape.mean_length * whole.n_queries) <= _ROUNDING
        for shape in SHAPES.values()
    )


def find_similar(directory: Path, folds: list[FoldSource], counts: dict[Path, Counts]) -> str | None:
    """The public set that a directory is, or may be a damaged copy of: as many features and grades, and a name that
    begins like its own, or as many folds and about as many documents. None for a generated set."""
    whole = add_counts([counts[path] for path in whole_files(folds)])
    if (same := find_same(folds, counts)) is not None or _is_shaped(whole):
        return same
    names = [name.lower() for name in directory_names(directory)]
    alike = [name for name, entry in CATALOG.items() if _is_alike(entry, whole)]
    named = [name for name in alike if any(other.startswith(name) for other in names)]
    near = _nearest([name for name in alike if CATALOG[name].n_folds == len(folds)], whole.n_documents)
    return next(iter(named), near)


def _is_alike(entry: CatalogEntry, whole: Counts) -> bool:
    least = _MOST_FEATURES * entry.n_features
    return entry.n_grades == whole.n_grades and least <= whole.n_features <= entry.n_features


def _nearest(names: Sequence[str], n_documents: int) -> str | None:
    """The set nearest in documents, if any is near."""
    distances = {name: abs(log(n_documents / CATALOG[name].n_documents)) for name in names}
    found = min(distances, key=lambda name: distances[name], default=None)
    return found if found is not None and distances[found] <= log(_ALIKE) else None
