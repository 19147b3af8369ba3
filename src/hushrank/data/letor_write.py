"""Query sets as LETOR text, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hushrank.files import replacing
from hushrank.types import Array, QuerySet

_QUERY_ID = re.compile(r"[^\s#]+")
_BLOCK_ROWS = 1024


def write_letor(queries: QuerySet, path: str | Path) -> None:
    """Write every feature of every document, whole or not at all; reading the file gives the same arrays."""
    path = Path(path)
    _check_writable(queries)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.writelines(_format_blocks(queries))


def _check_writable(queries: QuerySet) -> None:
    for number, query_id in enumerate(queries.query_ids, start=1):
        if not _QUERY_ID.fullmatch(query_id):
            raise ValueError(
                f"the id of query {number} cannot be written, must have no spaces and no #. Rename the query."
            )
    if not np.all(np.isfinite(queries.features)):
        raise ValueError(
            "a feature is not a finite number, and LETOR has no word for it. Replace it, for instance by 0."
        )


def _format_blocks(queries: QuerySet) -> Iterator[bytes]:
    owners = np.repeat(np.arange(queries.n_queries), queries.lengths).tolist()
    grades = queries.grades.tolist()
    for first in range(0, queries.n_documents, _BLOCK_ROWS):
        features = queries.features[first : first + _BLOCK_ROWS]
        row = _row_format(features)
        lines = [
            f"{grades[i]} qid:{queries.query_ids[owners[i]]} {row % tuple(values)}{_comment(queries, i)}\n"
            for i, values in enumerate(features.tolist(), start=first)
        ]
        yield "".join(lines).encode()


def _row_format(features: Array) -> str:
    """`1:%.6f 2:%.6f ...` where six decimals say it all, else nine digits, which every float32 survives."""
    rounded = (np.rint(features.astype(np.float64) * 1e6) / 1e6).astype(np.float32)
    number = "%.6f" if np.array_equal(rounded, features) and np.abs(features).max(initial=0) < 1e9 else "%.9g"
    return " ".join(f"{j}:{number}" for j in range(1, features.shape[1] + 1))


def _comment(queries: QuerySet, row: int) -> str:
    document_id = queries.document_ids[row] if queries.document_ids is not None else ""
    if not document_id:
        return ""
    text = " ".join(document_id.split())
    return f" #{text}" if " " in text else f" #docid = {text}"
