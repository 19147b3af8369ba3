"""Logs of real searches: which lists people saw and what they clicked, as JSON Lines beside the features.

One line is one impression:

    {"client": "u17", "query": "10002", "shown": ["d3", "d8"], "clicked": ["d8"], "propensities": [0.21, 0.4]}

`shown` are candidates of the query, best first: document ids as text, or rows within the query as whole numbers from
0. `clicked` are some of them, written the same way. `propensities[i]` is the probability with which the logging policy
put that document into position i, given those above it. Other fields are ignored, blank lines too.

Queries, documents and clicks are personal: no message here repeats what a line holds, only its number and the field.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushrank.data.source import read_chunks
from hushrank.files import Json, replacing
from hushrank.types import Array, QuerySet

_FIELDS = ("client", "query", "shown", "clicked", "propensities")
_LEARNS_NOTHING = (
    "a list that could not have been another one says nothing about pairs of documents. Log lists that were drawn at "
    "random, with the probabilities of the draws"
)


class ClickLogError(ValueError):
    """A log that cannot be read: file, line, field and what was expected; never what the line holds."""


@dataclass(frozen=True, slots=True)
class ClickLog:
    """Impressions of one query set, in the order of the file, their shown documents stored end to end."""

    clients: Array  # [n_impressions] int64, index into client_names
    queries: Array  # [n_impressions] int64, index of the query in the query set
    starts: Array  # [n_impressions + 1] int64; impression i owns the places starts[i]:starts[i + 1]
    shown: Array  # [n_shown] int64, rows within the query from 0, best first
    is_clicked: Array  # [n_shown] bool
    propensities: Array  # [n_shown] float64, P(document at its position | those above it) of the logging policy
    client_names: tuple[str, ...]  # [n_clients] every client of the file, so that an index means the same in all splits
    n_skipped: int = 0  # impressions whose query is not in the query set

    @property
    def n_impressions(self) -> int:
        return len(self.queries)

    @property
    def n_clients(self) -> int:
        return len(self.client_names)

    def places(self, impression: int) -> slice:
        """Where the shown documents of one impression stand."""
        return slice(int(self.starts[impression]), int(self.starts[impression + 1]))


def read_click_log(
    path: str | Path,
    queries: QuerySet,
    *,
    known_queries: Collection[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> ClickLog:
    """Read a log, plain, gzip or xz. Impressions whose query is not in `queries` are checked, counted and left out.

    `known_queries`: ids of the whole data set; a query that is none of them is then an error. `progress` hears the
    number of lines read so far.
    """
    path = Path(path)
    reading = _Reading(_Candidates(queries), known_queries)
    for number, line in _read_lines(path):
        try:
            reading.add(_parse_line(line))
        except ClickLogError as error:
            raise ClickLogError(f"{path}, line {number}: {error}") from None
        if progress is not None and number % 10_000 == 0:
            progress(number)
    if not reading.queries:
        there = f"none of its {reading.n_skipped:,} impressions is" if reading.n_skipped else "no impression is"
        raise ClickLogError(f"{path}: {there} of a query of this split. Does the log belong to this data?")
    return reading.finish()


def write_click_log(path: str | Path, log: ClickLog, queries: QuerySet) -> None:
    """Write a log that `read_click_log` reads back, whole or not at all.

    A document is named by its id, or by its row where it has none or shares it with another of the query.
    """
    _check_writable(log, queries)
    candidates = _Candidates(queries)
    with replacing(Path(path)) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for impression in range(log.n_impressions):
            file.write(json.dumps(_describe_impression(log, impression, candidates), separators=(",", ":")) + "\n")


@dataclass(frozen=True, slots=True)
class _Impression:
    client: str
    query: str
    shown: list[str | int]
    clicked: list[str | int]
    propensities: list[float]


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    candidates: _Candidates
    known_queries: Collection[str] | None
    client_places: dict[str, int] = field(default_factory=dict)
    clients: array[int] = field(default_factory=lambda: array("q"))
    queries: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    shown: array[int] = field(default_factory=lambda: array("q"))
    is_clicked: bytearray = field(default_factory=bytearray)
    propensities: array[float] = field(default_factory=lambda: array("d"))
    n_skipped: int = 0

    def add(self, impression: _Impression) -> None:
        client = self.client_places.setdefault(impression.client, len(self.client_places))
        query = self.candidates.query_places.get(impression.query)
        if query is None:
            if self.known_queries is not None and impression.query not in self.known_queries:
                raise ClickLogError("query is not in the data set. Does the log belong to this data?")
            self.n_skipped += 1
            return
        rows = self.candidates.find_rows(query, impression.shown)
        _check_chance(impression.propensities, n_candidates=self.candidates.count(query))
        clicked = set(impression.clicked)
        self.clients.append(client)
        self.queries.append(query)
        self.lengths.append(len(rows))
        self.shown.extend(rows)
        self.is_clicked.extend(document in clicked for document in impression.shown)
        self.propensities.extend(impression.propensities)

    def finish(self) -> ClickLog:
        return ClickLog(
            np.array(self.clients, dtype=np.int64),
            np.array(self.queries, dtype=np.int64),
            np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64),
            np.array(self.shown, dtype=np.int64),
            np.frombuffer(bytes(self.is_clicked), dtype=bool),
            np.array(self.propensities, dtype=np.float64),
            tuple(self.client_places),
            self.n_skipped,
        )


class _Candidates:
    """Rows of the documents of each query by id; made when a query is first asked for."""

    def __init__(self, queries: QuerySet) -> None:
        self.query_set = queries
        self.query_places = {query_id: place for place, query_id in enumerate(queries.query_ids)}
        self._lengths: list[int] = queries.lengths.tolist()
        self._rows: dict[int, dict[str, int]] = {}

    def count(self, query: int) -> int:
        return self._lengths[query]

    def rows_by_id(self, query: int) -> dict[str, int]:
        """Row of each document id of the query; -1 for an id that several of its rows have."""
        if query not in self._rows:
            ids, place = self.query_set.document_ids, self.query_set.rows(query)
            rows: dict[str, int] = {}
            for row, document_id in enumerate(ids[place] if ids is not None else ()):
                rows[document_id] = -1 if document_id in rows else row
            self._rows[query] = rows
        return self._rows[query]

    def find_rows(self, query: int, shown: list[str | int]) -> list[int]:
        """Rows of the shown documents, which must be different candidates."""
        n_candidates, by_id = self._lengths[query], self.rows_by_id(query)
        if len(shown) > n_candidates:
            raise ClickLogError(
                f"shown has {len(shown)} documents, the query has {n_candidates} candidates. Are the features complete?"
            )
        rows = [document if isinstance(document, int) else by_id.get(document) for document in shown]
        found = [row for row in rows if row is not None and 0 <= row < n_candidates]
        if len(found) != len(rows):
            raise ClickLogError(self._explain_unknown(rows, n_candidates))
        if len(set(found)) != len(found):
            raise ClickLogError("shown has a document twice, each must be shown once.")
        return found

    def _explain_unknown(self, rows: list[int | None], n_candidates: int) -> str:
        if None in rows and self.query_set.document_ids is None:
            return (
                "shown has document ids, but the features have none. Read them with their ids, or write rows within "
                "the query as whole numbers from 0."
            )
        if None in rows:
            return "shown has a document that is no candidate of the query. Does the log belong to this data?"
        if any(row is not None and row < 0 for row in rows):
            return (
                "shown has an id that several candidates of the query share, or a row below 0. Write rows within the "
                "query as whole numbers from 0."
            )
        return f"shown has a row beyond the query's {n_candidates} candidates; rows count from 0 within the query."


def _read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, and their numbers."""
    first = 1
    for chunk in read_chunks(path):
        for number, line in enumerate(chunk.split(b"\n"), start=first):
            if line.strip():
                yield number, line
        first += chunk.count(b"\n")


def _parse_line(line: bytes) -> _Impression:
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):  # Why from None: the decoder's error holds the line
        raise ClickLogError("not a JSON object in UTF-8. Is the line truncated? One object per line.") from None
    if not isinstance(value, dict):
        raise ClickLogError(f"not a JSON object, must have {', '.join(_FIELDS)}.")
    for name in _FIELDS:
        if name not in value:
            raise ClickLogError(f"{name} is missing. An impression has {', '.join(_FIELDS)}.")
    for name in ("client", "query"):
        if not (isinstance(value[name], str) and value[name]):
            raise ClickLogError(f"{name} must be a text that is not empty.")
    impression = _Impression(*(value[name] for name in _FIELDS))
    _check_lists(impression)
    return impression


def _check_lists(impression: _Impression) -> None:
    """What can be said of shown, clicked and propensities without knowing the query."""
    _check_documents("shown", impression.shown)
    _check_documents("clicked", impression.clicked)
    if not impression.shown:
        raise ClickLogError("shown is empty, must have at least one document.")
    shown = set(impression.shown)
    if len(shown) != len(impression.shown):
        raise ClickLogError("shown has a document twice, each must be shown once.")
    if not shown.issuperset(impression.clicked):
        raise ClickLogError("clicked has a document that is not in shown, written the same way.")
    if len(set(impression.clicked)) != len(impression.clicked):
        raise ClickLogError("clicked has a document twice, each must be named once.")
    _check_propensities(impression.propensities, n_shown=len(impression.shown))


def _check_documents(name: str, documents: object) -> None:
    # Why exact types: True is an int, and 1.0 equals 1.
    if not (isinstance(documents, list) and set(map(type, documents)) <= {str, int}):
        raise ClickLogError(f"{name} must be a list of document ids (texts) or of rows within the query (from 0).")


def _check_propensities(propensities: object, *, n_shown: int) -> None:
    if not (isinstance(propensities, list) and set(map(type, propensities)) <= {float, int}):
        raise ClickLogError("propensities must be a list of numbers.")
    if len(propensities) != n_shown:
        raise ClickLogError(
            f"propensities has {len(propensities)} numbers, shown has {n_shown} documents: one for each."
        )
    if not all(0 < p <= 1 for p in propensities):
        raise ClickLogError(
            "propensities has a number outside (0, 1]. A shown document was shown with some probability."
        )


def _check_chance(propensities: list[float], *, n_candidates: int) -> None:
    if n_candidates > 1 and min(propensities) == 1:
        raise ClickLogError(f"propensities are all 1: {_LEARNS_NOTHING}.")


def _check_writable(log: ClickLog, queries: QuerySet) -> None:
    """Refuse arrays that could not be read back."""
    p = log.propensities
    if not (
        len(log.clients) == log.n_impressions == len(log.starts) - 1 and len(log.shown) == len(p) == log.starts[-1]
    ):
        raise ValueError("the arrays of the log do not fit together: one client, query and start per impression.")
    if not np.all((p > 0) & (p <= 1)):
        raise ValueError("a propensity of the log is outside (0, 1].")
    if log.n_impressions and (np.diff(log.starts) < 1).any():
        raise ValueError("an impression of the log shows nothing, must have at least one document.")
    if log.n_impressions and np.any(
        (np.minimum.reduceat(p, log.starts[:-1]) == 1) & (queries.lengths[log.queries] > 1)
    ):
        raise ValueError(f"an impression has propensities that are all 1: {_LEARNS_NOTHING}.")


def _describe_impression(log: ClickLog, impression: int, candidates: _Candidates) -> Json:
    query, places = int(log.queries[impression]), log.places(impression)
    names: dict[int, str | int] = {row: name for name, row in candidates.rows_by_id(query).items() if name}
    rows = log.shown[places].tolist()
    clicked = log.is_clicked[places].tolist()
    return {
        "client": log.client_names[int(log.clients[impression])],
        "query": candidates.query_set.query_ids[query],
        "shown": [names.get(row, row) for row in rows],
        "clicked": [names.get(row, row) for row, is_clicked in zip(rows, clicked, strict=True) if is_clicked],
        "propensities": log.propensities[places].tolist(),
    }
