"""LETOR rows one by one: the exact path of the reader. It reads whatever the format allows and says what it does not.

Its quick twin is `letor_bulk.parse_bulk`. Queries and documents may be personal: no message repeats what a line holds,
only its number and what is wrong where.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushrank.data.letor_rows import MAX_FEATURES, NUMBER, LetorError, LetorRows, as_float32

_ROW = "grade qid:ID index:value index:value ..."


@dataclass(frozen=True, slots=True)
class _Row:
    grade: int
    query_id: bytes | None
    indexes: list[int]
    values: list[float]
    comment: bytes


def parse_lines(
    chunk: bytes, *, path: str, first_line: int, has_query_ids: bool, keep_comments: bool = False
) -> LetorRows | None:
    """The rows of a chunk of whole lines that begins at line `first_line`; None if all are blank or comments."""
    rows = []
    for number, line in enumerate(chunk.removesuffix(b"\n").split(b"\n"), start=first_line):
        if line.partition(b"#")[0].strip():
            try:
                rows.append(_parse_row(line, has_query_ids=has_query_ids))
            except LetorError as error:
                raise LetorError(f"{path}, line {number}: {error}") from None
    return _join(rows, has_query_ids=has_query_ids, keep_comments=keep_comments) if rows else None


def _join(rows: list[_Row], *, has_query_ids: bool, keep_comments: bool) -> LetorRows:
    n_pairs = np.array([len(row.indexes) for row in rows], dtype=np.int64)
    width = max((row.indexes[-1] for row in rows if row.indexes), default=0)
    features = np.zeros((len(rows), width), dtype=np.float32)
    for place, row in enumerate(rows):
        features[place, np.array(row.indexes, dtype=np.int64) - 1] = as_float32(np.array(row.values))
    query_ids = [row.query_id or b"" for row in rows] if has_query_ids else None
    comments = [row.comment for row in rows] if keep_comments else None
    return LetorRows(np.array([row.grade for row in rows], dtype=np.uint8), query_ids, features, n_pairs, comments)


def _parse_row(line: bytes, *, has_query_ids: bool) -> _Row:
    body, _, comment = line.partition(b"#")
    grade, *pairs = body.split()
    query_id = None
    if has_query_ids:
        if not pairs or not pairs[0].startswith(b"qid:"):
            raise LetorError(
                f"{'something else' if pairs else 'nothing'} follows the grade, must be qid:ID ({_ROW}). "
                "For rows without qid, put the list lengths into a file of the same name with .query added."
            )
        query_id, pairs = pairs[0][4:], pairs[1:]
        _check_query_id(query_id)
    indexes, values = _parse_pairs(pairs)
    return _Row(_parse_grade(grade), query_id, indexes, values, comment.strip())


def _check_query_id(query_id: bytes) -> None:
    if not query_id:
        raise LetorError("qid: has no ID behind it, must be qid:ID. Is the file truncated?")
    try:
        query_id.decode("utf-8")
    except UnicodeDecodeError:
        raise LetorError("the qid is not valid UTF-8. Convert the file to UTF-8.") from None


def _parse_grade(token: bytes) -> int:
    number = float(token) if NUMBER.fullmatch(token) else math.nan
    if not (number.is_integer() and 0 <= number <= 255):
        raise LetorError(f"the grade is not a whole number from 0 to 255 ({_ROW}).")
    return int(number)


def _parse_pairs(pairs: list[bytes]) -> tuple[list[int], list[float]]:
    indexes: list[int] = []
    values: list[float] = []
    for place, pair in enumerate(pairs, start=1):
        name, colon, value = pair.partition(b":")
        if name == b"qid":
            raise LetorError(
                "a second qid stands where index:value is expected. A row names its query once, behind the grade, "
                "and not at all beside a .query file."
            )
        if not (colon and name.isdigit()):
            raise LetorError(f"pair {place} is not index:value. Is the line truncated or the pair broken?")
        indexes.append(_parse_index(name, after=indexes[-1] if indexes else 0))
        values.append(_parse_value(value, index=indexes[-1]))
    return indexes, values


def _parse_index(name: bytes, *, after: int) -> int:
    index = int(name) if len(name) <= 6 else MAX_FEATURES + 1
    if index == 0:
        raise LetorError("feature index 0; indexes start at 1. Add 1 to every index of the file.")
    if index > MAX_FEATURES:
        raise LetorError(f"a feature index is larger than {MAX_FEATURES}. Renumber the features from 1.")
    if index <= after:
        what = "is repeated" if index == after else f"stands after {after}"
        raise LetorError(f"feature index {index} {what}; indexes must ascend within a row. Sort the row's features.")
    return index


def _parse_value(token: bytes, *, index: int) -> float:
    if not token:
        raise LetorError(f"feature {index} has no value. Is the line truncated?")
    if not NUMBER.fullmatch(token):
        is_nan = token.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")
        hint = "Replace it, for instance by 0." if is_nan else "Is the pair broken?"
        raise LetorError(
            f"feature {index} is {'nan or infinite' if is_nan else 'no number'}, must be a finite number. {hint}"
        )
    value = float(token)
    if math.isinf(value):
        raise LetorError(f"feature {index} is too large for a number. Replace it.")
    return value
