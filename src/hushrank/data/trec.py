"""TREC run files: `query Q0 document rank score tag`, for trec_eval and its kin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hushrank.files import write_text
from hushrank.types import Array, QuerySet


def write_trec_run(path: Path, queries: QuerySet, scores: Array, *, tag: str) -> None:
    """All documents of all queries by decreasing score; equal scores keep the order of the file."""
    write_text(path, "".join(trec_lines(queries, scores, tag=tag)))


def trec_lines(queries: QuerySet, scores: Array, *, tag: str) -> Iterator[str]:
    for query, query_id in enumerate(queries.query_ids):
        rows = queries.rows(query)
        order = np.argsort(-scores[rows], kind="stable")
        for rank, place in enumerate(order, start=1):
            row = rows.start + int(place)
            yield f"{query_id} Q0 {name_document(queries, query_id, row)} {rank} {scores[row]:.9g} {tag}\n"


def name_document(queries: QuerySet, query_id: str, row: int) -> str:
    """The file's own id, or the query's id and the row where the file has none."""
    return queries.document_ids[row] if queries.document_ids is not None else f"{query_id}-{row}"
