"""LETOR / SVMlight ranking files: `grade qid:ID index:value index:value ... #comment`, one document per line.

Dense and sparse rows (a feature that is not written is 0), plain, gzip or xz, LF or CRLF. LightGBM's form has no qid;
a side file `<file>.query` holds the number of documents of each query, one per line. The file is read in chunks: a
quick path (`letor_bulk`) for regular rows, an exact one (`letor_lines`) for the rest, with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from hushrank.data.letor_bulk import parse_bulk
from hushrank.data.letor_lines import parse_lines
from hushrank.data.letor_rows import LetorError, LetorRows
from hushrank.data.source import CHUNK_BYTES, read_chunks
from hushrank.types import Array, QuerySet

__all__ = ["LetorError", "read_letor", "side_file", "stream_letor"]

_DOCUMENT_ID = re.compile(rb"docid\s*=\s*(\S+)")


def read_letor(
    path: str | Path,
    *,
    n_features: int | None = None,
    keep_document_ids: bool = False,
    progress: Callable[[int], None] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    is_exact: bool = False,
) -> QuerySet:
    """Read one file. `n_features` widens the rows (and is the most that may come); `progress` hears the bytes read.

    `is_exact` reads line by line throughout: slower, with the same result.
    """
    path = Path(path)
    # Why: once glibc has freed a large piece it keeps the pages of smaller ones; reading takes a third less time.
    np.empty(30 << 20, dtype=np.uint8)
    lengths = _read_side_file(path)
    chunks = _parse_chunks(
        path,
        has_query_ids=lengths is None,
        keep_comments=keep_document_ids,
        progress=progress,
        chunk_bytes=chunk_bytes,
        is_exact=is_exact,
    )
    parts = list(_check_rows(chunks, path=path, n_features=n_features))
    if not parts:
        raise LetorError(f"{path}: no rows in the file, at least one is needed. Is it the right file, and complete?")
    if max(rows.features.shape[1] for rows in parts) == 0:
        raise LetorError(f"{path}: no row has a feature, at least one index:value is needed. Is it the right file?")
    ids, starts = _divide_by_lengths(parts, lengths, path) if lengths is not None else _divide_by_ids(parts)
    document_ids = tuple(_name_document(c) for p in parts for c in p.comments or []) if keep_document_ids else None
    grades = np.concatenate([part.grades for part in parts])
    return QuerySet(_stack_features(parts, n_features), grades, starts, ids, document_ids)


def stream_letor(path: str | Path, *, n_features: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[QuerySet]:
    """A file with query ids piece by piece, in bounded memory: each piece holds whole queries, in the file's order."""
    path, waiting = Path(path), list[LetorRows]()
    chunks = _parse_chunks(
        path, has_query_ids=True, keep_comments=False, progress=None, chunk_bytes=chunk_bytes, is_exact=False
    )
    for rows in _check_rows(chunks, path=path, n_features=n_features):
        ids = rows.query_ids or []
        last = max(place for place, _ in _find_changes(ids, None))
        before = waiting[-1].query_ids[-1] if waiting and waiting[-1].query_ids else None
        if last > 0 or (before is not None and before != ids[0]):
            yield _join_rows([*waiting, _cut_rows(rows, slice(0, last))], n_features)
            waiting = []
        waiting.append(_cut_rows(rows, slice(last, None)))
    if not waiting:
        raise LetorError(f"{path}: no rows in the file, at least one is needed. Is it the right file, and complete?")
    yield _join_rows(waiting, n_features)


def _cut_rows(rows: LetorRows, places: slice) -> LetorRows:
    ids = (rows.query_ids or [])[places]
    return LetorRows(rows.grades[places], ids, rows.features[places], rows.n_pairs[places], None)


def _join_rows(parts: list[LetorRows], n_features: int) -> QuerySet:
    ids, starts = _divide_by_ids(parts)
    grades = np.concatenate([part.grades for part in parts])
    return QuerySet(_stack_features(parts, n_features), grades, starts, ids)


def side_file(path: Path) -> Path:
    """Where LightGBM's list lengths stand: `<file>.query`, with a compressed file's ending left out."""
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    return path.with_name(name + ".query")


def _parse_chunks(
    path: Path,
    *,
    has_query_ids: bool,
    keep_comments: bool,
    progress: Callable[[int], None] | None,
    chunk_bytes: int,
    is_exact: bool,
) -> Iterator[tuple[LetorRows, bytes, int]]:
    """Each chunk's rows, its text and the number of its first line."""
    first_line = 1
    for chunk in read_chunks(path, chunk_bytes=chunk_bytes):
        rows = None if is_exact else parse_bulk(chunk, has_query_ids=has_query_ids, keep_comments=keep_comments)
        if rows is None or not _are_utf8(rows.query_ids):
            rows = parse_lines(
                chunk, path=str(path), first_line=first_line, has_query_ids=has_query_ids, keep_comments=keep_comments
            )
        if rows is not None:
            yield rows, chunk, first_line
        first_line += chunk.count(b"\n")
        if progress is not None:
            progress(len(chunk))


def _are_utf8(query_ids: list[bytes] | None) -> bool:
    """Whether the exact path has nothing to complain about."""
    try:
        b"".join(query_ids or []).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _check_rows(
    chunks: Iterator[tuple[LetorRows, bytes, int]], *, path: Path, n_features: int | None
) -> Iterator[LetorRows]:
    """What spans rows: queries in one piece, no index beyond the asked width, no last row cut short."""
    seen: set[bytes] = set()
    last: bytes | None = None
    widths: set[int] = set()  # how many features the complete rows have
    for rows, chunk, first_line in chunks:
        if n_features is not None and rows.features.shape[1] > n_features:
            raise _too_wide(chunk, path=path, n_features=n_features, first_line=first_line)
        for place, query_id in _find_changes(rows.query_ids, last):
            if query_id in seen:
                raise _comes_again(path=path, line=_line_of(chunk, place, first_line))
            seen.add(query_id)
        last = rows.query_ids[-1] if rows.query_ids else None
        is_cut = not chunk.endswith(b"\n")
        widths.update(np.unique(rows.n_pairs[:-1] if is_cut else rows.n_pairs).tolist())
        if is_cut and len(widths) == 1 and max(widths) > rows.n_pairs[-1]:
            raise _truncated(int(rows.n_pairs[-1]), max(widths), path=path, line=first_line + chunk.count(b"\n"))
        yield rows


def _too_wide(chunk: bytes, *, path: Path, n_features: int, first_line: int) -> LetorError:
    lasts = [line.partition(b"#")[0].rpartition(b":")[0].split()[-1:] for line in chunk.split(b"\n")]
    indexes = [int(last[0]) if last and last[0].isdigit() else 0 for last in lasts]
    place = next(place for place, index in enumerate(indexes) if index > n_features)
    return LetorError(
        f"{path}, line {first_line + place}: feature index {indexes[place]} is larger than n_features = {n_features}. "
        "Ask for more features, or check that the file belongs to this data set."
    )


def _comes_again(*, path: Path, line: int) -> LetorError:
    return LetorError(
        f"{path}, line {line}: this line's qid comes again after another query; a query's rows must stand together. "
        "Sort the file by qid, keeping the order of rows."
    )


def _truncated(n_pairs: int, width: int, *, path: Path, line: int) -> LetorError:
    return LetorError(
        f"{path}, line {line}: the last line has {n_pairs} features and no line end, every other line has {width}. "
        "The file is truncated: get it again."
    )


def _find_changes(query_ids: list[bytes] | None, last: bytes | None) -> Iterator[tuple[int, bytes]]:
    """The rows where another query begins, and its id."""
    for place, query_id in enumerate(query_ids or []):
        if query_id != last:
            yield place, query_id
            last = query_id


def _line_of(chunk: bytes, row: int, first_line: int) -> int:
    """The line number of a chunk's row, not counting blank lines and comments."""
    lines = enumerate(chunk.split(b"\n"), start=first_line)
    return [number for number, line in lines if line.partition(b"#")[0].strip()][row]


def _divide_by_ids(parts: list[LetorRows]) -> tuple[tuple[str, ...], Array]:
    ids = [query_id for part in parts for query_id in part.query_ids or []]
    changes = list(_find_changes(ids, None))
    starts = np.array([place for place, _ in changes] + [len(ids)], dtype=np.int64)
    return tuple(query_id.decode() for _, query_id in changes), starts


def _divide_by_lengths(parts: list[LetorRows], lengths: list[int], path: Path) -> tuple[tuple[str, ...], Array]:
    n_rows = sum(len(part.grades) for part in parts)
    if sum(lengths) != n_rows:
        raise LetorError(
            f"{side_file(path)}: the list lengths add up to {sum(lengths)}, but {path.name} has {n_rows} rows. "
            "The two files must belong together: get both again."
        )
    return tuple(str(i + 1) for i in range(len(lengths))), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _read_side_file(path: Path) -> list[int] | None:
    side = side_file(path)
    if not side.is_file():
        return None
    lengths = []
    for number, line in enumerate(side.read_bytes().splitlines(), start=1):
        token = line.strip()
        if token and not (token.isdigit() and len(token) <= 9 and int(token) > 0):
            raise LetorError(
                f"{side}, line {number}: not a list length, must be a whole number > 0. Write one number per query."
            )
        lengths += [int(token)] if token else []
    return lengths


def _name_document(comment: bytes) -> str:
    """What stands behind `docid =`, or else the whole comment."""
    found = _DOCUMENT_ID.search(comment)
    return (found[1] if found else comment).decode("utf-8", "replace")


def _stack_features(parts: list[LetorRows], n_features: int | None) -> Array:
    """[n_documents, n_features] float32, in place of the parts: each is let go once it is copied."""
    width = n_features or max(part.features.shape[1] for part in parts)
    features = np.zeros((sum(len(part.grades) for part in parts), width), dtype=np.float32)
    end = len(features)
    while parts:
        part = parts.pop().features
        features[end - len(part) : end, : part.shape[1]] = part
        end -= len(part)
    return features
