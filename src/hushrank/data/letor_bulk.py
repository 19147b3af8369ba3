"""Many LETOR rows at once: the quick path of the reader, for rows that are written as nearly all files write them.

A row is `grade key:value key:value ...`. Marks are the bytes that end a token (space, colon, point, line end); every
number between two marks is read as one 64-bit word of up to eight digits. Whatever does not fit exactly (odd spacing,
text where a number belongs) makes `parse_bulk` answer None, and the line-by-line twin `letor_lines.parse_lines` reads
the rows or says what is wrong with them. Where it answers, the answer is the twin's (tests/data/test_letor.py).

Shapes: n_bytes, n_marks, n_pairs and n_rows of one chunk; [n_pairs] includes the `qid:ID` pairs until they are set
apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.data.letor_rows import MAX_FEATURES, NUMBER, LetorRows, as_float32
from hushrank.types import Array

_NEWLINE, _SPACE, _POINT, _COLON, _MINUS = b"\n .:-"
_ZEROS = np.uint64(0x3030303030303030)  # eight times the digit 0
# Why: a token of n digits fills the upper n bytes of its word; the lower 8 - n become leading zeros.
_LEADING = np.array([0x3030303030303030 >> (8 * n) if n < 8 else 0 for n in range(9)], dtype=np.uint64)
_POWERS = np.array([10**n for n in range(17)], dtype=np.uint64)
_EXACT = np.uint64(2**53)


@dataclass(frozen=True, slots=True)
class _Text:
    """One chunk of rows, as bytes and as 64-bit words."""

    characters: Array  # [n_bytes] uint8
    words: Array  # [n_bytes // 8 + 2] uint64, the same bytes, zeros behind them


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Where each `key:value` stands: byte positions, all [n_pairs] except the last two."""

    key: Array
    colon: Array
    point: Array  # the decimal point; the end of the value where there is none
    end: Array
    n_per_row: Array  # [n_rows]
    grade_end: Array  # [n_rows]


def parse_bulk(chunk: bytes, *, has_query_ids: bool, keep_comments: bool = False) -> LetorRows | None:
    """The rows of a chunk of whole lines, or None where only the line-by-line twin can tell."""
    lines = chunk.removesuffix(b"\n").split(b"\n")
    bodies = [line.partition(b"#")[0].rstrip(b" \t\r") for line in lines]
    if not all(bodies):
        return None
    body = (b"\n".join(bodies) + b"\n").replace(b"\t", b" ")
    text = _as_text(body)
    if np.count_nonzero(text.characters < _SPACE) != len(bodies):  # Why: other blanks part tokens, too
        return None
    pairs = _find_pairs(text)
    if pairs is None or (has_query_ids and not _start_with_qid(text, pairs)):
        return None
    comments = [line.partition(b"#")[2].strip() for line in lines] if keep_comments else None
    return _read_rows(body, text, pairs, has_query_ids=has_query_ids, comments=comments)


def _as_text(body: bytes) -> _Text:
    padded = np.zeros(8 * (len(body) // 8 + 2), dtype=np.uint8)
    padded[: len(body)] = np.frombuffer(body, dtype=np.uint8)
    return _Text(padded[: len(body)], padded.view("<u8"))


def _find_pairs(text: _Text) -> _Pairs | None:
    """Every mark must be a grade's end, or a pair's colon, point or end: None if one is left over or missing."""
    is_mark = (text.characters <= _SPACE) | (text.characters == _POINT) | (text.characters == _COLON)
    marks = np.flatnonzero(is_mark)
    kinds = text.characters[marks]
    line_ends = np.flatnonzero(kinds == _NEWLINE)
    firsts = np.concatenate([[0], line_ends[:-1] + 1])
    colons = np.flatnonzero(kinds == _COLON)
    if np.any(kinds[firsts] != _SPACE) or not len(colons):
        return None
    points = colons + 1
    ends = points + (kinds[points] == _POINT)
    if len(marks) != len(firsts) + 2 * len(colons) + int(np.sum(ends - points)) or np.any(kinds[colons - 1] != _SPACE):
        return None
    if np.any((kinds[ends] != _SPACE) & (kinds[ends] != _NEWLINE)):
        return None
    n_per_row = np.diff(np.searchsorted(colons, np.append(firsts, len(marks))))
    return _Pairs(marks[colons - 1] + 1, marks[colons], marks[points], marks[ends], n_per_row, marks[firsts])


def _start_with_qid(text: _Text, pairs: _Pairs) -> bool:
    first = np.cumsum(pairs.n_per_row) - pairs.n_per_row
    at = pairs.key[first]
    spelt = [np.all(text.characters[at + i] == letter) for i, letter in enumerate(b"qid")]
    return bool(np.all(pairs.n_per_row > 0) and np.all(pairs.colon[first] - at == 3) and all(spelt))


def _read_rows(
    body: bytes, text: _Text, pairs: _Pairs, *, has_query_ids: bool, comments: list[bytes] | None
) -> LetorRows | None:
    starts = np.concatenate([[0], np.flatnonzero(text.characters == _NEWLINE)[:-1] + 1])
    grades, are_digits = _read_digits(text, starts, pairs.grade_end - starts, longest=3)
    query_ids, n_pairs = None, pairs.n_per_row
    if has_query_ids:
        first = np.cumsum(n_pairs) - n_pairs
        spans = zip((pairs.colon[first] + 1).tolist(), pairs.end[first].tolist(), strict=True)
        query_ids, n_pairs = [body[a:b] for a, b in spans], n_pairs - 1
        keep = np.ones(len(pairs.key), dtype=bool)
        keep[first] = False
        pairs = _Pairs(pairs.key[keep], pairs.colon[keep], pairs.point[keep], pairs.end[keep], n_pairs, pairs.grade_end)
    features = _read_features(body, text, pairs)
    if features is None or not are_digits or np.any(grades > 255) or (query_ids is not None and not all(query_ids)):
        return None
    return LetorRows(grades.astype(np.uint8), query_ids, features, n_pairs, comments)


def _read_features(body: bytes, text: _Text, pairs: _Pairs) -> Array | None:
    """[n_rows, highest index] float32; None unless the indexes ascend from 1 and the values are finite numbers."""
    indexes, are_digits = _read_digits(text, pairs.key, pairs.colon - pairs.key, longest=6)
    values = _read_values(body, text, pairs)
    if values is None or not are_digits:
        return None
    n_rows, width = len(pairs.n_per_row), int(indexes.max(initial=0))
    row = np.repeat(np.arange(n_rows), pairs.n_per_row)
    ascends = (np.diff(indexes.astype(np.int64)) > 0) | (np.diff(row) > 0)
    if not np.all(ascends) or np.any(indexes == 0) or width > MAX_FEATURES:
        return None
    if len(indexes) == n_rows * width:  # Why: ascending and as many as there are cells, so every cell is there
        return as_float32(values).reshape(n_rows, width)
    features = np.zeros((n_rows, width), dtype=np.float32)
    features[row, indexes.astype(np.int64) - 1] = as_float32(values)
    return features


def _read_values(body: bytes, text: _Text, pairs: _Pairs) -> Array | None:
    """[n_pairs] float64. Exact: digits up to 2^53 over a power of ten are rounded once, as Python's float does."""
    is_negative = text.characters[pairs.colon + 1] == _MINUS
    whole_start = pairs.colon + 1 + is_negative
    whole_length = pairs.point - whole_start
    part_length = np.maximum(pairs.end - pairs.point - 1, 0)
    n_digits = whole_length + part_length
    whole, is_whole = _parse_words(text, whole_start, np.clip(whole_length, 0, 8))
    part, is_part = _read_decimals(text, pairs.point + 1, part_length)
    scale = _POWERS[np.minimum(part_length, 16)]
    digits = whole * scale + part
    is_plain = (whole_length <= 8) & (part_length <= 16) & (n_digits > 0) & (n_digits <= 19) & (digits <= _EXACT)
    values = digits.astype(np.float64) / scale.astype(np.float64)
    np.negative(values, out=values, where=is_negative)
    return _read_odd_values(body, pairs, values, np.flatnonzero(~(is_plain & is_whole & is_part)))


def _read_decimals(text: _Text, start: Array, length: Array) -> tuple[Array, Array]:
    """The up to 16 digits behind a point as one whole number, and where they are digits."""
    upper, is_upper = _parse_words(text, start, np.minimum(length, 8))
    if not np.any(length > 8):
        return upper, is_upper
    rest = np.clip(length - 8, 0, 8)
    lower, is_lower = _parse_words(text, np.where(rest > 0, start + 8, start), rest)
    return upper * _POWERS[rest] + lower, is_upper & is_lower


def _read_odd_values(body: bytes, pairs: _Pairs, values: Array, odd: Array) -> Array | None:
    """Long decimals and exponents, one by one; None if one is no finite number."""
    spans = zip((pairs.colon[odd] + 1).tolist(), pairs.end[odd].tolist(), strict=True)
    tokens = [body[a:b] for a, b in spans]
    if not all(NUMBER.fullmatch(token) for token in tokens):
        return None
    values[odd] = [float(token) for token in tokens]
    return values if np.all(np.isfinite(values[odd])) else None


def _read_digits(text: _Text, start: Array, length: Array, *, longest: int) -> tuple[Array, bool]:
    """Whole numbers of 1 to `longest` digits, and whether all of them are."""
    numbers, are_digits = _parse_words(text, start, np.clip(length, 0, 8))
    return numbers, bool(np.all(are_digits) and np.all(length >= 1) and np.all(length <= longest))


def _parse_words(text: _Text, start: Array, length: Array) -> tuple[Array, Array]:
    """The numbers of 0 to 8 digits at `start`, and where all their characters are digits: uint64 and bool."""
    place, shift = start >> 3, ((start & 7) << 3).astype(np.uint64)
    word = (text.words[place] >> shift) | (text.words[place + 1] << (np.uint64(64) - shift))
    word = ((word << ((8 - length) << 3).astype(np.uint64)) | _LEADING[length]) ^ _ZEROS
    are_digits = (((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)) == 0
    # Why: neighbouring digits are joined in pairs, fours and eights, each by one multiplication.
    word = (word * np.uint64(2561)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    return ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32), are_digits
