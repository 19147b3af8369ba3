"""TREC files for trec_eval and its kin: runs, `query Q0 document rank score tag`, and qrels, `query 0 document grade`.

A document has the same name in both. trec_eval sorts a run again, by score and then by name: only documents of
different scores keep the order written here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hushrank.data.letor_rows import LetorError
from hushrank.data.source import read_chunks
from hushrank.files import write_text
from hushrank.types import Array, QuerySet

_GRADE = re.compile(r"-?\d{1,9}")


def write_trec_run(path: Path, queries: QuerySet, scores: Array, *, tag: str) -> None:
    """All documents of all queries by decreasing score; equal scores keep the order of the file."""
    write_text(path, "".join(trec_lines(queries, scores, tag=tag)))


def write_qrels(path: Path, queries: QuerySet) -> None:
    """The grade of every document of every query, 0 included, as in the data (not as gains 2^grade - 1)."""
    write_text(path, "".join(qrels_lines(queries)))


def read_qrels(path: Path) -> dict[tuple[str, str], int]:
    """{(query, document): grade}; grades below 0, which TREC gives to spam, are 0.

    Queries and documents may be personal: no message repeats what a line holds.
    """
    grades: dict[tuple[str, str], int] = {}
    lines = (line for chunk in read_chunks(path) for line in chunk.splitlines())
    for number, line in enumerate(lines, start=1):
        fields = line.decode("utf-8", "replace").split()
        if not fields:
            continue
        where = f"{path}, line {number}"
        if len(fields) != 4:
            raise LetorError(f"{where}: {len(fields)} words came, must be 4: query 0 document grade.")
        if not _GRADE.fullmatch(fields[3]) or int(fields[3]) > 255:
            raise LetorError(f"{where}: the grade must be a whole number up to 255.")
        pair, grade = (fields[0], fields[2]), max(0, int(fields[3]))
        if grades.setdefault(pair, grade) != grade:
            raise LetorError(f"{where}: its query and document had another grade before. Keep one of the lines.")
    return grades


def trec_lines(queries: QuerySet, scores: Array, *, tag: str) -> Iterator[str]:
    for query, query_id in enumerate(queries.query_ids):
        rows, names = queries.rows(query), name_documents(queries, query)
        for rank, place in enumerate(np.argsort(-scores[rows], kind="stable").tolist(), start=1):
            yield f"{query_id} Q0 {names[place]} {rank} {scores[rows.start + place]:.9g} {tag}\n"


def qrels_lines(queries: QuerySet) -> Iterator[str]:
    for query, query_id in enumerate(queries.query_ids):
        grades = queries.grades[queries.rows(query)].tolist()
        for name, grade in zip(name_documents(queries, query), grades, strict=True):
            yield f"{query_id} 0 {name} {grade}\n"


def name_documents(queries: QuerySet, query: int) -> list[str]:
    """One name for each document of a query: the file's own id, where it is one word that no other document has.

    Otherwise the query's id and the row in the split, since trec_eval would take equal names for one document.
    """
    rows, query_id = queries.rows(query), queries.query_ids[query]
    made = [f"{query_id}-{row}" for row in range(rows.start, rows.stop)]
    if queries.document_ids is None:
        return made
    ids = queries.document_ids[rows]
    taken = Counter(ids)
    return [own if len(own.split()) == 1 and taken[own] == 1 else name for own, name in zip(ids, made, strict=True)]
