"""Which files of a directory are a data set: `FoldN/{train,vali,test}.txt`, three files, or LightGBM's pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hushrank.data.intents import FOLDER, find_intents
from hushrank.data.letor import side_file

ROLES = ("train", "vali", "test")
_FOLD = re.compile(r"fold(\d+)", re.IGNORECASE)
_SPLIT = re.compile(
    r"(?:(?P<set>.+)\.)?(?P<role>train|vali|valid|validation|test)(?:\.txt)?(?:\.gz|\.xz)?", re.IGNORECASE
)
_TEXT = re.compile(r"(?!readme).+\.txt(?:\.gz|\.xz)?", re.IGNORECASE)
_SPOKEN = "FoldN/{train,vali,test}.txt or {train,vali,test}.txt (also .gz, .xz), or LightGBM's NAME.train and NAME.test"


@dataclass(frozen=True, slots=True)
class SplitSource:
    """Where the queries of one split come from."""

    path: Path
    part: str = "all"  # all of its queries, or the first four fifths ("head"), or the last fifth ("tail")
    intents: tuple[Path, ...] = ()  # qrels of each intent; none: the rows' own grades are everybody's


@dataclass(frozen=True, slots=True)
class FoldSource:
    """The files of one fold."""

    number: int
    splits: dict[str, SplitSource]  # train, vali and test


def find_folds(directory: Path, folds: Sequence[int] | None = None) -> list[FoldSource]:
    """The folds of a directory: all that are present, or those that are named."""
    if not directory.is_dir():
        what = "is a file" if directory.exists() else "does not exist"
        raise FileNotFoundError(f"{directory} {what}. Name a directory that holds {_SPOKEN}.")
    places = _find_fold_places(directory)
    wanted = sorted(places) if folds is None else list(folds)
    absent = [number for number in wanted if number not in places]
    if absent:
        there = ", ".join(str(number) for number in sorted(places))
        raise ValueError(f"{directory} has no fold {absent[0]}; it has {there}. Name folds that are there.")
    intents = find_intents(directory)
    return [FoldSource(number, _find_splits(places[number], intents)) for number in wanted]


def _find_fold_places(directory: Path) -> dict[int, Path]:
    """Directories by fold number; the directory itself where the files stand in it."""
    matches = [(place, _FOLD.fullmatch(place.name)) for place in sorted(directory.iterdir()) if place.is_dir()]
    places = {int(match[1]): place for place, match in matches if match}
    if not places and (_files_by_role(directory) or _find_undivided(directory)):
        places = {1: directory}
    if not places:
        raise FileNotFoundError(f"{directory} is no data set. A data set's directory holds {_SPOKEN}.")
    return places


def _find_undivided(directory: Path) -> Path | None:
    """The one file of a set with intents that nobody has divided, as the published one is."""
    files = [path for path in sorted(directory.iterdir()) if path.is_file() and _TEXT.fullmatch(path.name)]
    return files[0] if (directory / FOLDER).is_dir() and len(files) == 1 else None


def _find_splits(place: Path, intents: tuple[Path, ...]) -> dict[str, SplitSource]:
    files = _files_by_role(place)
    if not files and (undivided := _find_undivided(place)) is not None:
        return {role: SplitSource(undivided, intents=intents) for role in ROLES}
    if "train" in files and "test" in files and "vali" not in files and side_file(files["train"]).is_file():
        train = files["train"]
        return {
            "train": SplitSource(train, "head", intents),
            "vali": SplitSource(train, "tail", intents),
            "test": SplitSource(files["test"], intents=intents),
        }
    for role in ROLES:
        if role not in files:
            raise FileNotFoundError(
                f"{place / role}.txt is missing (or .gz, .xz). Each fold needs train, vali and test."
            )
    return {role: SplitSource(files[role], intents=intents) for role in ROLES}


def _files_by_role(place: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in sorted(place.iterdir()):
        match = _SPLIT.fullmatch(path.name)
        if match is None or not path.is_file():
            continue
        role = "vali" if match["role"].lower().startswith("vali") else match["role"].lower()
        if role in files:
            raise ValueError(
                f"{place} has two {role} files, {files[role].name} and {path.name}. Keep one of them there."
            )
        files[role] = path
    return files
