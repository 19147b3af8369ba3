"""A whole data set as a directory of text, one file per split: complete, or not there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hushrank.data.intents import FOLDER
from hushrank.data.layout import ROLES
from hushrank.data.letor_write import write_letor
from hushrank.data.trec import qrels_lines, write_qrels, write_trec_run
from hushrank.files import write_text
from hushrank.types import Dataset, QuerySet

FORMATS = {"letor": ".txt", "qrels": ".qrels", "run": ".run"}  # and how the names of their files end


def check_destination(destination: Path) -> None:
    """Refuse a place where something already is."""
    if destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
        raise FileExistsError(f"{destination} exists already and is not empty. Name another place, or remove it first.")


def check_format(form: str, feature: int | None) -> None:
    """Refuse a format that does not exist, and a run by no feature."""
    if form not in FORMATS:
        raise ValueError(f"the format is {form!r}, must be one of {', '.join(FORMATS)}.")
    if (form == "run") != (feature is not None):
        raise ValueError(
            "a run ranks documents by one feature, other formats by none: give run and a feature, or neither."
        )


def write_dataset(
    dataset: Dataset,
    destination: Path,
    *,
    form: str = "letor",
    feature: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Write `FoldN/{train,vali,test}.*`, first beside the destination, then renamed into it; the names of the files.

    `form`: letor; qrels; or run, which ranks by the feature with that index, counted from 1 as in the files.
    """
    check_format(form, feature)
    if feature is not None and not 1 <= feature <= dataset.n_features:
        raise ValueError(f"feature is {feature}, {dataset.name} has features 1 to {dataset.n_features}.")
    check_destination(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    names = []
    try:
        for fold in dataset.folds:
            (making / f"Fold{fold.number}").mkdir()
            for role in ROLES:
                names.append(f"Fold{fold.number}/{role}{FORMATS[form]}")
                if progress is not None:
                    progress(f"writing {destination.name}/{names[-1]}")
                _write_split(name_rows(getattr(fold, role)), making / names[-1], form=form, feature=feature)
        names += _write_intents(dataset, making) if form == "letor" else []
        making.chmod(0o755)
        making.replace(destination)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    return names


def name_rows(queries: QuerySet) -> QuerySet:
    """A set with intents has a name for each document: its own, or the query's with its place in the list."""
    if not queries.n_intents or queries.document_ids is not None:
        return queries
    lengths = zip(queries.query_ids, queries.lengths.tolist(), strict=True)
    return replace(queries, document_ids=tuple(f"{query}-{place}" for query, n in lengths for place in range(n)))


def _write_intents(dataset: Dataset, directory: Path) -> list[str]:
    """`intents/1.txt`, ...: the grades of each intent, each query once; no file without intents."""
    splits = [name_rows(getattr(fold, role)) for fold in dataset.folds for role in ROLES]
    n_intents = min(split.n_intents for split in splits)
    names = [f"{FOLDER}/{intent + 1}.txt" for intent in range(n_intents)]
    for intent, name in enumerate(names):
        (directory / FOLDER).mkdir(exist_ok=True)
        judged = [replace(s, grades=s.intents[intent]) for s in splits if s.intents is not None]
        lines = dict.fromkeys(line for split in judged for line in qrels_lines(split))
        write_text(directory / name, "".join(lines))
    return names


def _write_split(queries: QuerySet, path: Path, *, form: str, feature: int | None) -> None:
    if form == "letor":
        write_letor(queries, path)
    elif feature is None:
        write_qrels(path, queries)
    else:
        write_trec_run(path, queries, queries.features[:, feature - 1], tag=f"feature-{feature}")
