"""Is this directory the data set that it is said to be? Every file read, every count compared with the catalogue's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushrank.data.catalog import CATALOG, CatalogEntry, explain_getting, split_counts
from hushrank.data.layout import ROLES, FoldSource, find_folds
from hushrank.data.letor import read_letor
from hushrank.data.load import check_catalogue_name, load_dataset, resolve_directory
from hushrank.data.notices import FeatureRanges, join_ranges, measure_ranges, notice_dataset, notice_features
from hushrank.data.shapes import SHAPES
from hushrank.types import Notice, QuerySet


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    compared_with: str | None  # the catalogue name whose counts were compared
    problems: tuple[str, ...]  # what is wrong
    notes: tuple[str, ...]  # what is worth knowing but wrong at most in the catalogue
    notices: tuple[Notice, ...] = ()  # what training on it as it is would suffer from


@dataclass(frozen=True, slots=True)
class _Counts:
    n_queries: int
    n_documents: int
    n_features: int
    n_grades: int
    ranges: FeatureRanges


def check_files(name_or_dir: str, *, known_as: str | None = None) -> Checked:
    """Read every file: the first problem of each, or else every count that is not the catalogue's.

    `known_as`: the catalogue name to compare with; by default the name given, or the directory's own if it is one.
    """
    if known_as is not None:
        check_catalogue_name(known_as)
    if name_or_dir.partition(":")[0] in SHAPES:
        return Checked(None, (), (), tuple(notice_dataset(load_dataset(name_or_dir))))
    directory, normalise = _find_directory(name_or_dir, known_as)
    name = next((n for n in (known_as, name_or_dir, directory.resolve().name) if n and n.lower() in CATALOG), None)
    folds = find_folds(directory)
    counts, problems = _read_all(folds)
    if problems:
        return Checked(name and name.lower(), tuple(problems), ())
    ranges = join_ranges(count.ranges for count in counts.values())
    # Why with none: values after a normalisation are not known here, and need none of this advice
    notices = tuple(notice_features(ranges, normalise=normalise)) if normalise == "none" else ()
    if name is None:
        return Checked(None, (), (), notices)
    wrong, notes = _compare(folds, counts, CATALOG[name.lower()])
    return Checked(name.lower(), tuple(wrong), tuple(notes), notices)


def _find_directory(name_or_dir: str, known_as: str | None) -> tuple[Path, str]:
    """The directory, and the normalisation that a run would apply to it."""
    if known_as is not None and name_or_dir.lower() not in CATALOG and not Path(name_or_dir).exists():
        how = explain_getting(known_as.lower(), where=name_or_dir)
        raise FileNotFoundError(f"{name_or_dir} does not exist. {how}")
    return resolve_directory(name_or_dir)


def _read_all(folds: list[FoldSource]) -> tuple[dict[Path, _Counts], list[str]]:
    """Counts of each file; the features are let go, since all folds of a large set would not fit together."""
    counts: dict[Path, _Counts] = {}
    problems = []
    for path in dict.fromkeys(split.path for fold in folds for split in fold.splits.values()):
        try:
            counts[path] = _count(read_letor(path))
        except (ValueError, OSError) as error:
            problems.append(str(error))
    return counts, problems


def _count(queries: QuerySet) -> _Counts:
    n_grades = 1 + int(queries.grades.max())
    return _Counts(queries.n_queries, queries.n_documents, queries.n_features, n_grades, measure_ranges([queries]))


def _compare(folds: list[FoldSource], counts: dict[Path, _Counts], entry: CatalogEntry) -> tuple[list[str], list[str]]:
    """Deviations that are wrong, and those that only say that the catalogue may be."""
    wrong, notes = [], []
    for field, what, came, expected in [*_whole(folds, counts, entry), *_splits(folds, counts, entry)]:
        if came == expected:
            continue
        said = f"{came:,} {what} came, {entry.title} has {expected:,}"
        if field == "n_features" and came < expected:
            notes.append(f"{said}. Sparse files may lack the last ones.")
        elif field in entry.unverified:
            notes.append(f"{said}, but that number is not verified.")
        else:
            wrong.append(f"{said}. Is the copy complete?")
    return wrong, notes


def _whole(
    folds: list[FoldSource], counts: dict[Path, _Counts], entry: CatalogEntry
) -> list[tuple[str, str, int, int]]:
    """(field, what, came, expected) of the set as a whole; queries and documents only where every fold is there."""
    roles = ("test",) if entry.n_folds > 1 else ROLES  # Why: over all folds, each query is tested once
    paths = dict.fromkeys(fold.splits[role].path for fold in folds for role in roles)
    parts = [counts[path] for path in paths]
    rows = [
        ("n_folds", "folds", len(folds), entry.n_folds),
        ("n_features", "features", max(count.n_features for count in counts.values()), entry.n_features),
        ("n_grades", "grades", max(count.n_grades for count in counts.values()), entry.n_grades),
    ]
    if len(folds) == entry.n_folds:
        rows.append(("n_queries", "queries", sum(part.n_queries for part in parts), entry.n_queries))
        rows.append(("n_documents", "documents", sum(part.n_documents for part in parts), entry.n_documents))
    return rows


def _splits(
    folds: list[FoldSource], counts: dict[Path, _Counts], entry: CatalogEntry
) -> list[tuple[str, str, int, int]]:
    """The same of each split, where the catalogue knows it."""
    rows = []
    for field, noun, attribute in (
        ("part_queries", "queries", "n_queries"),
        ("part_documents", "documents", "n_documents"),
    ):
        for (number, role), expected in split_counts(getattr(entry, field), entry.n_folds).items():
            for fold in folds:
                if fold.number == number:
                    came = getattr(counts[fold.splits[role].path], attribute)
                    rows.append((field, f"{noun} in fold {number}'s {role}", came, expected))
    return rows
