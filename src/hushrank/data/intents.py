"""Grades by intent: a folder `intents/` beside a set's files, with `1.txt`, `2.txt`, ... in TREC's qrels format.

Each file has the grades of one intent, `query 0 document grade`; a pair that it lacks is not relevant. Documents are
named as in the comments of the LETOR rows. `0.txt`, the union of the intents, may be there and is not read: the grade
of a document is the highest of its intents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hushrank.data.letor import read_letor
from hushrank.data.letor_rows import LetorError
from hushrank.data.trec import read_qrels
from hushrank.types import QuerySet

FOLDER = "intents"
_FILE = re.compile(r"(\d+)(?:\.txt)?(?:\.gz|\.xz)?", re.IGNORECASE)


def find_intents(directory: Path) -> tuple[Path, ...]:
    """The files of the intents 1, 2, ...; none where there is no such folder."""
    folder = directory / FOLDER
    if not folder.is_dir():
        return ()
    named = [(path, _FILE.fullmatch(path.name)) for path in sorted(folder.iterdir()) if path.is_file()]
    files: dict[int, Path] = {}
    for path, match in named:
        if match and int(match[1]) > 0:
            first = files.setdefault(int(match[1]), path)
            if first is not path:
                raise ValueError(f"{folder} has two files of intent {int(match[1])}, {first.name} and {path.name}.")
    for number in range(1, max([2, *files]) + 1):
        if number not in files:
            raise FileNotFoundError(
                f"{folder / str(number)}.txt is missing. The folder needs 1.txt, 2.txt, ..., one file for each intent."
            )
    return tuple(files[number] for number in sorted(files))


def read_judged(path: Path, intents: Sequence[Path], *, keep_document_ids: bool = False) -> QuerySet:
    """One LETOR file, with the grades of the intents where there are any."""
    if not intents:
        return read_letor(path, keep_document_ids=keep_document_ids)
    queries = read_letor(path, keep_document_ids=True)
    judged = judge_by_intents(queries, {file: read_qrels(file) for file in intents}, path)
    return judged if keep_document_ids else replace(judged, document_ids=None)


def judge_by_intents(queries: QuerySet, qrels: Mapping[Path, Mapping[tuple[str, str], int]], path: Path) -> QuerySet:
    """The set with the grades of each file of qrels as an intent; `path` is where the set came from."""
    documents = queries.document_ids or ()
    if not all(documents):
        raise LetorError(
            f"{path}: a row has no document name, which the files in {FOLDER}/ need. End each row with #docid = NAME."
        )
    owners = [name for name, n in zip(queries.query_ids, queries.lengths.tolist(), strict=True) for _ in range(n)]
    pairs = list(zip(owners, documents, strict=True))
    intents = np.zeros((len(qrels), queries.n_documents), np.uint8)
    for intent, (file, grades) in zip(intents, qrels.items(), strict=True):
        if not any(pair in grades for pair in pairs):
            raise LetorError(f"{path}: none of its queries and documents is in {file}. Are they named alike there?")
        intent[:] = [grades.get(pair, 0) for pair in pairs]
    return replace(queries, grades=intents.max(axis=0), intents=intents)
