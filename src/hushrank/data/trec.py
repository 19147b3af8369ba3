"""TREC files for trec_eval and its kin: runs, `query Q0 document rank score tag`, and qrels, `query 0 document grade`.

A document has the same name in both. trec_eval sorts a run again, by score and then by name: only documents of
different scores keep the order written here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hushrank.files import write_text
from hushrank.types import Array, QuerySet


def write_trec_run(path: Path, queries: QuerySet, scores: Array, *, tag: str) -> None:
    """All documents of all queries by decreasing score; equal scores keep the order of the file."""
    write_text(path, "".join(trec_lines(queries, scores, tag=tag)))


def write_qrels(path: Path, queries: QuerySet) -> None:
    """The grade of every document of every query, 0 included, as in the data (not as gains 2^grade - 1)."""
    write_text(path, "".join(qrels_lines(queries)))


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
