"""AOL4FOLTR: clicks of 10,000 AOL users with 20 candidates for each search [gregoriadis2025].

Known from its description and from the program that made it: `metadata.csv` has the columns qid, user_id, timestamp,
query, target_doc_id (the one clicked document) and candidate_doc_ids (a Python set or list of 20 AOL-IA document ids
with the target among them), sorted by time. `letor.txt` has 20 rows of 103 raw features per qid, grade 1 for the
target. Candidates were kept as a set: their order, in either file, says nothing, and but for the target a row of
letor.txt cannot be matched with a document id. Titles are not part of it: they come from AOL-IA, as a side file.

Chosen here: the general list is BM25 over titles, as for the AOL log, and the periods are those of the AOL log.
Candidates without a title are left out; a search whose target has none, too. Rows of letor.txt are for rankers that
need no documents: `stream_user_queries` gives them with user and time. These are real people's queries: no error or
count repeats any, and nothing of it may be published.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hushrank.data.letor import stream_letor
from hushrank.personal.aol import PERIODS, is_number, parse_time
from hushrank.personal.log import N_QUERY_WORDS, ListSizes, Search, make_log, pad_words
from hushrank.personal.sessions import LEAST_SIMILARITY, divide_sessions
from hushrank.personal.spool import PopulationWriter, SpooledPopulation
from hushrank.personal.titles import BadLines, TitledDocuments, check_files, read_text_lines, read_titles
from hushrank.types import Array, QuerySet

N_LETOR_FEATURES = 103
COLUMNS = ("qid", "user_id", "timestamp", "query", "target_doc_id", "candidate_doc_ids")
_MOST_CANDIDATES = 32


class MetadataRow(NamedTuple):
    """One search."""

    qid: int
    user: int
    time: int  # seconds
    query: str
    target: str  # document id
    candidates: tuple[str, ...]  # document ids, in no order


@dataclass(slots=True)
class Aol4FoltrCounts:
    """What became of the rows."""

    bad_lines: BadLines = field(default_factory=lambda: BadLines(f"{', '.join(COLUMNS)}"))
    n_rows: int = 0
    n_users: int = 0
    n_searches: int = 0
    n_without_title: int = 0  # searches whose target has no title

    def as_json(self) -> dict[str, object]:
        counts = {key: value for key, value in dataclasses.asdict(self).items() if key != "bad_lines"}
        return {**counts, "n_bad_lines": self.bad_lines.n, "first_bad_line": self.bad_lines.first}


class UserQueries(NamedTuple):
    """Some queries of letor.txt with who searched, and when."""

    users: Array  # [n] int64, as metadata.csv numbers them
    times: Array  # [n] int64, seconds
    queries: QuerySet


def import_aol4foltr(
    metadata: Path, titles: Path, directory: Path, *, hear: Callable[[int], None] = lambda _: None
) -> tuple[SpooledPopulation, Aol4FoltrCounts]:
    """Read metadata.csv, with `titles` (AOL-IA document id, tab, title), into a new directory.

    Users come in the order of their numbers. Rows are spooled to disk, because a user's rows do not stand together.
    hear: hears after each row how many were read.
    """
    check_files([metadata], "AOL4FOLTR's metadata.csv")
    check_files([titles], "the file of titles, one AOL-IA document id, tab and title in a line")
    documents, counts = read_titles(titles), Aol4FoltrCounts()
    with PopulationWriter(directory) as writer:
        scratch = directory / "scratch.bin"
        try:
            users = _spool_rows(metadata, documents, counts, scratch, hear)
            rows = np.memmap(scratch, dtype=_SCRATCH, mode="r") if len(users) else np.zeros(0, dtype=_SCRATCH)
            order = np.argsort(users, kind="stable")
            edges = np.flatnonzero(np.diff(users[order])) + 1
            for places in np.split(order, edges) if len(users) else []:
                _add_user(writer, rows[places])
            del rows
        finally:
            scratch.unlink(missing_ok=True)
        counts.n_users, counts.n_searches = writer.n_users, len(users)
        if not writer.n_users:
            raise ValueError(f"{metadata}: no search has a titled target. {_explain(counts)}")
        about = {
            "name": "aol4foltr",
            "description": f"{counts.n_users:,} users of AOL4FOLTR",
            "counts": counts.as_json(),
        }
        writer.finish(documents.collection, PERIODS, ListSizes(test=0, other=0), about)
    return SpooledPopulation(directory), counts


def stream_user_queries(letor: Path, metadata: Path, *, n_features: int = N_LETOR_FEATURES) -> Iterator[UserQueries]:
    """letor.txt piece by piece, in bounded memory, each query with its user and time."""
    qids, users, times = array("q"), array("q"), array("q")
    for row in read_metadata(metadata, Aol4FoltrCounts()):
        for column, value in zip((qids, users, times), (row.qid, row.user, row.time), strict=True):
            column.append(value)
    known = np.frombuffer(qids, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    for queries in stream_letor(letor, n_features=n_features):
        wanted = np.array([int(name) if is_number(name) else -1 for name in queries.query_ids])
        places = np.minimum(np.searchsorted(known[order], wanted), max(len(known) - 1, 0))
        if not len(known) or (known[order][places] != wanted).any():
            raise ValueError(f"{letor} has a qid that {metadata} has not. The two files must belong together.")
        found = order[places]
        yield UserQueries(np.array(users, dtype=np.int64)[found], np.array(times, dtype=np.int64)[found], queries)


def read_metadata(path: Path, counts: Aol4FoltrCounts) -> Iterator[MetadataRow]:
    """Row by row; malformed ones are counted and left out.

    Why each line by itself: no query of the log has a line end, and a quote that is never closed would hide all rows
    up to the next quote.
    """
    lines = read_text_lines(path)
    header = _split_columns(next(lines, (1, ""))[1])
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise ValueError(f"{path}, line 1: column {missing[0]} is missing. The header must name {', '.join(COLUMNS)}.")
    places = [header.index(name) for name in COLUMNS]
    for number, line in lines:
        counts.n_rows += 1
        fields = _split_columns(line)
        row = _parse_row([fields[i] for i in places]) if len(fields) == len(header) else None
        if row is None:
            counts.bad_lines.add(path, number)
        else:
            yield row


def _explain(counts: Aol4FoltrCounts) -> str:
    bad = f" Malformed lines: {counts.bad_lines.n}; the first: {counts.bad_lines.first}" if counts.bad_lines.n else ""
    return f"Check that the titles are those of AOL-IA.{bad}"


def _split_columns(line: str) -> list[str]:
    """The columns of one line; none: it is malformed."""
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return []


def _parse_row(fields: list[str]) -> MetadataRow | None:
    qid, user, timestamp, query, target, listed = fields
    time, candidates = parse_time(timestamp), _parse_candidates(listed)
    if time is None or not (is_number(qid) and is_number(user)) or target not in candidates:
        return None
    return MetadataRow(int(qid), int(user), time, query, target, candidates)


def _parse_candidates(listed: str) -> tuple[str, ...]:
    """The documents of a Python set, list or tuple; none: it is malformed."""
    try:
        candidates = ast.literal_eval(listed)
        is_list = isinstance(candidates, set | list | tuple)
        return tuple(sorted({str(candidate) for candidate in candidates})) if is_list else ()
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ()


_SCRATCH = np.dtype(
    [("time", "<i8"), ("query", "<i4", (N_QUERY_WORDS,)), ("target", "<i4"), ("documents", "<i4", (_MOST_CANDIDATES,))]
)


def _spool_rows(
    metadata: Path, documents: TitledDocuments, counts: Aol4FoltrCounts, scratch: Path, hear: Callable[[int], None]
) -> Array:
    """[n] the user of each search that is written to the scratch file."""
    users = array("q")
    with scratch.open("wb") as file:
        for row in read_metadata(metadata, counts):
            hear(counts.n_rows)
            target = documents.rows.get(row.target)
            if target is None:
                counts.n_without_title += 1
                continue
            listed = [documents.rows[name] for name in row.candidates if name in documents.rows]
            others = [document for document in listed if document != target][: _MOST_CANDIDATES - 1]
            packed = np.zeros(1, dtype=_SCRATCH)
            packed["time"], packed["target"] = row.time, target
            packed["query"] = pad_words([documents.encode(row.query)], N_QUERY_WORDS)
            packed["documents"] = -1
            packed["documents"][0, : len(others) + 1] = [target, *others]
            file.write(packed.tobytes())
            users.append(row.user)
    return np.array(users, dtype=np.int64)


def _add_user(writer: PopulationWriter, rows: Array) -> None:
    rows = rows[np.argsort(rows["time"], kind="stable")]
    searches = [
        Search(
            int(row["time"]),
            tuple(row["query"][row["query"] > 0].tolist()),
            tuple(row["documents"][row["documents"] >= 0].tolist()),
            (int(row["target"]),),
        )
        for row in rows
    ]
    sessions = divide_sessions(rows["query"], rows["time"], least_similarity=LEAST_SIMILARITY)
    writer.add(make_log(searches, sessions))
