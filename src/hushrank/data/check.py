"""Is this directory the data set that it is said to be? Every file read, every count compared with the catalogue's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushrank.data.catalog import CATALOG, CatalogEntry, explain_getting, split_counts
from hushrank.data.intents import read_judged
from hushrank.data.layout import FoldSource, find_folds
from hushrank.data.load import check_catalogue_name, load_dataset, resolve_directory
from hushrank.data.notices import FeatureRanges, join_ranges, measure_ranges, notice_dataset, notice_features
from hushrank.data.recognise import Counts, add_counts, count_rows, find_similar, name_directory, whole_files
from hushrank.data.shapes import SHAPES
from hushrank.types import Notice

NO_SET = "none"  # `--as` that compares with nothing
_PLURALS = {"query": "queries"}


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    compared_with: str | None  # the catalogue name whose counts were compared
    problems: tuple[str, ...]  # what is wrong
    notes: tuple[str, ...]  # what is worth knowing but wrong at most in the catalogue
    notices: tuple[Notice, ...] = ()  # what training on it as it is would suffer from


@dataclass(frozen=True, slots=True)
class _Count:
    """One number of a data set beside the catalogue's."""

    field: str  # of the entry
    noun: str  # one of them
    came: int
    expected: int
    where: str = ""  # which of them, in words

    def __str__(self) -> str:
        nouns = self.noun if self.came == 1 else _PLURALS.get(self.noun, f"{self.noun}s")
        return f"{self.came:,} {nouns}{self.where} came"


def check_files(name_or_dir: str, *, known_as: str | None = None) -> Checked:
    """Read every file: the first problem of each, or else every count that is not the catalogue's.

    `known_as`: the catalogue name to compare with, or none. By default the name given, or the directory's own if it is
    one, or the public set that the directory is like.
    """
    if known_as not in (None, NO_SET):
        check_catalogue_name(known_as)
    if name_or_dir.partition(":")[0] in SHAPES:
        return Checked(None, (), (), tuple(notice_dataset(load_dataset(name_or_dir))))
    directory, normalise = _find_directory(name_or_dir, known_as)
    names = (name.lower() for name in (known_as, name_or_dir, name_directory(directory)) if name)
    said = None if known_as == NO_SET else next((name for name in names if name in CATALOG), None)
    folds = find_folds(directory)
    counts, ranges, problems = _read_all(folds)
    if problems:
        return Checked(said, tuple(problems), ())
    # Why with none: values after a normalisation are not known here, and need none of this advice
    notices = tuple(notice_features(join_ranges(ranges), normalise=normalise)) if normalise == "none" else ()
    name = None if known_as == NO_SET else said or find_similar(directory, folds, counts)
    if name is None:
        return Checked(None, (), (), notices)
    wrong, notes = _compare(folds, counts, CATALOG[name])
    if wrong and said is None:
        notes.append(
            f"{name_or_dir} was compared with {name}, which it is like. Compare it with another set by --as NAME, with "
            f"none by --as {NO_SET}."
        )
    return Checked(name, tuple(wrong), tuple(notes), notices)


def _find_directory(name_or_dir: str, known_as: str | None) -> tuple[Path, str]:
    """The directory, and the normalisation that a run would apply to it."""
    if known_as is not None and name_or_dir.lower() not in CATALOG and not Path(name_or_dir).exists():
        how = explain_getting(known_as.lower(), where=name_or_dir)
        raise FileNotFoundError(f"{name_or_dir} does not exist. {how}")
    return resolve_directory(name_or_dir)


def _read_all(folds: list[FoldSource]) -> tuple[dict[Path, Counts], list[FeatureRanges], list[str]]:
    """Counts and ranges of each file, and problems; features are let go: all folds of a large set would not fit."""
    counts: dict[Path, Counts] = {}
    ranges, problems = list[FeatureRanges](), list[str]()
    for path, intents in {split.path: split.intents for fold in folds for split in fold.splits.values()}.items():
        try:
            queries = read_judged(path, intents)
            counts[path] = count_rows(queries)
            ranges.append(measure_ranges([queries]))
        except (ValueError, OSError) as error:
            problems.append(str(error))
    return counts, ranges, problems


def _compare(folds: list[FoldSource], counts: dict[Path, Counts], entry: CatalogEntry) -> tuple[list[str], list[str]]:
    """Deviations that are wrong, and those that only say that the catalogue may be."""
    wrong, notes = [], []
    for count in [*_whole(folds, counts, entry), *_splits(folds, counts, entry)]:
        if count.came == count.expected:
            continue
        said = f"{count}, {entry.title} has {count.expected:,}"
        if count.field == "n_features" and count.came < count.expected:
            notes.append(f"{said}. Sparse files may lack the last ones.")
        elif count.field in entry.unverified:
            notes.append(f"{said}, but that number is not verified.")
        else:
            wrong.append(f"{said}. Is the copy complete?")
    return wrong, notes


def _whole(folds: list[FoldSource], counts: dict[Path, Counts], entry: CatalogEntry) -> list[_Count]:
    """Of the set as a whole; queries and documents only where every fold is there."""
    files = add_counts(list(counts.values()))
    found = [
        _Count("n_folds", "fold", len(folds), entry.n_folds),
        _Count("n_features", "feature", files.n_features, entry.n_features),
        _Count("n_grades", "grade", files.n_grades, entry.n_grades),
    ]
    if len(folds) == entry.n_folds:
        whole = add_counts([counts[path] for path in whole_files(folds)])
        found.append(_Count("n_queries", "query", whole.n_queries, entry.n_queries))
        found.append(_Count("n_documents", "document", whole.n_documents, entry.n_documents))
    return found


def _splits(folds: list[FoldSource], counts: dict[Path, Counts], entry: CatalogEntry) -> list[_Count]:
    """Of each split, where the catalogue knows it."""
    found = []
    for field, noun, attribute in (
        ("part_queries", "query", "n_queries"),
        ("part_documents", "document", "n_documents"),
    ):
        for (number, role), expected in split_counts(getattr(entry, field), entry.n_folds).items():
            for fold in folds:
                if fold.number == number:
                    came = getattr(counts[fold.splits[role].path], attribute)
                    found.append(_Count(field, noun, came, expected, f" in fold {number}'s {role}"))
    return found
