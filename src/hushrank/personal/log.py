"""The nouns of personalised search: the documents, one user's log, the periods of an experiment, a population.

Words are whole numbers: 0 is padding, 1 a word outside the vocabulary, the vocabulary begins at 2. Shapes: n searches
of one user with m listed documents in all; search i lists documents[starts[i]:starts[i + 1]] in the order in which the
general engine showed them. A log never leaves its client, and no error here holds a word, a document or a click: errors
say in which search something is wrong, and what is expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from hushrank.types import Array

N_TITLE_WORDS, N_QUERY_WORDS = 50, 20  # longer titles and queries are cut
PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
BACKGROUND, TRAIN, VALIDATION, TEST = range(4)  # the periods of an experiment, in the order of time
PERIODS = ("background", "train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Collection:
    """All documents that can be found, as the words of their titles. `make_collection` counts what BM25 needs."""

    titles: Array  # [n_documents, 50] int32, padded with 0 at the end
    words: tuple[str, ...]  # [n_words] the word of each number; the first two stand for padding and unknown words
    document_frequency: Array  # [n_words] int64, in how many titles a word stands; 0 for padding
    lengths: Array  # [n_documents] int32, words of each title

    def __post_init__(self) -> None:
        _check_collection(self)

    @property
    def n_documents(self) -> int:
        return len(self.titles)

    @property
    def n_words(self) -> int:
        """Padding and unknown included: the height of a table of word vectors."""
        return len(self.words)

    @property
    def mean_length(self) -> float:
        return float(self.lengths.mean()) if len(self.lengths) else 0.0


@dataclass(frozen=True, slots=True)
class SearchLog:
    """What one user searched for, was shown and clicked on, in the order of time."""

    queries: Array  # [n, 20] int32 words, padded with 0 at the end
    times: Array  # [n] int64, seconds; never descending
    sessions: Array  # [n] int32: 0, 1, 2, ..., each begins where the one before ends
    starts: Array  # [n + 1] int64
    documents: Array  # [m] int32, rows of the collection, as the general engine ordered them
    is_clicked: Array  # [m] bool, satisfied clicks
    dwell: Array | None = None  # [m] float32 seconds on a clicked document, 0 where there was no click; None: unknown

    def __post_init__(self) -> None:
        _check_log(self)

    @property
    def n_searches(self) -> int:
        return len(self.times)

    def rows(self, search: int) -> slice:
        """Where the documents of one search stand."""
        return slice(int(self.starts[search]), int(self.starts[search + 1]))

    def owners(self) -> Array:
        """[m] the search of each listed document."""
        return np.repeat(np.arange(self.n_searches), np.diff(self.starts))


class Search(NamedTuple):
    """One search, as an application sees it."""

    time: int  # seconds
    query: tuple[int, ...]  # words; cut after 20
    documents: tuple[int, ...]  # as listed
    clicked: tuple[int, ...] = ()  # documents with a satisfied click


@dataclass(frozen=True, slots=True)
class Periods:
    """When training, validation and test begin; what lies before is background: history to know a user by."""

    train: int  # seconds, as the times of logs
    validation: int
    test: int

    def __post_init__(self) -> None:
        if not self.train <= self.validation <= self.test:
            raise ValueError(
                f"the periods begin at {self.train}, {self.validation} and {self.test} seconds. "
                "Training comes first, then validation, then test: put them in this order."
            )

    def of(self, times: Array) -> Array:
        """[n] BACKGROUND, TRAIN, VALIDATION or TEST for each time."""
        return np.searchsorted([self.train, self.validation, self.test], times, side="right")


class SearchPopulation(Protocol):
    """Users with their logs. A log is made or read when it is asked for, and comes out the same every time."""

    @property
    def name(self) -> str:
        """What recipes and reports call it; for a generated one with everything that it depends on."""

    @property
    def description(self) -> str:
        """One sentence for people."""

    @property
    def n_users(self) -> int:
        """Users are numbered 0, 1, ..., n_users - 1."""

    @property
    def collection(self) -> Collection:
        """The documents of all logs."""

    @property
    def periods(self) -> Periods:
        """The same for all users."""

    def log_of(self, user: int) -> SearchLog:
        """Everything that one user did, in all periods."""


def make_collection(titles: Array, words: tuple[str, ...]) -> Collection:
    """Count words of titles [n_documents, 50] and in how many titles each word stands."""
    titles = np.asarray(titles, dtype=np.int32)
    if titles.size and not (int(titles.min()) >= 0 and int(titles.max()) < len(words)):
        raise ValueError(f"titles hold word numbers outside 0 to {len(words) - 1}. Give the vocabulary they belong to.")
    frequency = np.zeros(len(words), dtype=np.int64)
    for first in range(0, len(titles), 1 << 16):  # Why: sorting all titles at once would double their memory
        ordered = np.sort(titles[first : first + (1 << 16)], axis=1)
        is_first = np.diff(ordered, axis=1, prepend=-1) != 0
        frequency += np.bincount(ordered[is_first], minlength=len(words))
    frequency[PADDING] = 0
    return Collection(titles, words, frequency, np.count_nonzero(titles, axis=1).astype(np.int32))


def make_log(searches: Iterable[Search], sessions: Array | None = None) -> SearchLog:
    """A log from searches in the order of time; without `sessions` all of it is one session."""
    given = list(searches)
    for i, search in enumerate(given):
        if not set(search.clicked) <= set(search.documents):
            raise ValueError(f"search {i}: a click on a document that was not listed. Log clicks on listed ones only.")
    flat = [(document, document in set(search.clicked)) for search in given for document in search.documents]
    return SearchLog(
        queries=pad_words([search.query for search in given], N_QUERY_WORDS),
        times=np.array([search.time for search in given], dtype=np.int64),
        sessions=np.zeros(len(given), dtype=np.int32) if sessions is None else np.asarray(sessions, dtype=np.int32),
        starts=np.array([0, *accumulate(len(search.documents) for search in given)], dtype=np.int64),
        documents=np.array([document for document, _ in flat], dtype=np.int32),
        is_clicked=np.array([clicked for _, clicked in flat], dtype=bool),
    )


def slice_log(log: SearchLog, first: int, stop: int) -> SearchLog:
    """The searches first, ..., stop - 1 as a log; their sessions are counted from 0 again."""
    rows = slice(int(log.starts[first]), int(log.starts[stop]))
    sessions = log.sessions[first:stop]
    return SearchLog(
        queries=log.queries[first:stop],
        times=log.times[first:stop],
        sessions=sessions - sessions[:1].sum(dtype=np.int32),
        starts=log.starts[first : stop + 1] - log.starts[first],
        documents=log.documents[rows],
        is_clicked=log.is_clicked[rows],
        dwell=None if log.dwell is None else log.dwell[rows],
    )


def pad_words(texts: Iterable[Iterable[int]], width: int) -> Array:
    """[n, width] int32: each text cut after `width` words, or filled with 0."""
    cut = [tuple(text)[:width] for text in texts]
    padded = np.zeros((len(cut), width), dtype=np.int32)
    for row, text in zip(padded, cut, strict=True):
        row[: len(text)] = text
    return padded


def _check_collection(collection: Collection) -> None:
    titles, n_words = collection.titles, len(collection.words)
    claims = {
        f"titles have shape {titles.shape}, must be [n_documents, {N_TITLE_WORDS}]": (
            titles.ndim == 2 and titles.shape[1] == N_TITLE_WORDS
        ),
        f"words has {n_words} entries, must have at least 2 (padding and unknown words)": n_words >= FIRST_WORD,
        f"document_frequency has shape {collection.document_frequency.shape}, must be [{n_words}]": (
            collection.document_frequency.shape == (n_words,)
        ),
        f"lengths has shape {collection.lengths.shape}, must be [{len(titles)}]": (
            collection.lengths.shape == titles.shape[:1]
        ),
    }
    for claim, holds in claims.items():
        if not holds:
            raise ValueError(f"{claim}. Use make_collection.")


def _check_log(log: SearchLog) -> None:
    n, m = len(log.times), len(log.documents)
    expected = {"queries": (n, N_QUERY_WORDS), "sessions": (n,), "starts": (n + 1,), "is_clicked": (m,)}
    if log.dwell is not None:
        expected["dwell"] = (m,)
    for name, shape in expected.items():
        if getattr(log, name).shape != shape:
            raise ValueError(f"{name} of a log has shape {getattr(log, name).shape}, must be {shape}.")
    if log.is_clicked.dtype != bool:
        raise ValueError(f"is_clicked of a log is {log.is_clicked.dtype}, must be bool.")
    if int(log.starts[0]) != 0 or int(log.starts[-1]) != m:
        raise ValueError(f"starts of a log go from {log.starts[0]} to {log.starts[-1]}, must go from 0 to {m}.")
    _check_places(log)


def _check_places(log: SearchLog) -> None:
    """What can be wrong at one search; the first such search is named."""
    lengths, steps = np.diff(log.starts), np.diff(log.sessions)
    is_late = np.diff((log.queries != PADDING).astype(np.int8), axis=1) > 0
    _refuse(np.diff(log.times, prepend=log.times[:1]) < 0, "earlier than the search before it. Sort the log by time")
    _refuse(lengths < 0, "starts descend here. List starts in the order of the searches")
    starts_wrong = log.sessions[:1] != 0
    _refuse(np.concatenate([starts_wrong, (steps != 0) & (steps != 1)]), "sessions must be 0, 1, 2, ... without gaps")
    _refuse(np.asarray((log.queries < 0).any(axis=1)), "a negative word number; words are whole numbers from 1")
    _refuse(
        np.asarray(is_late.any(axis=1)),
        "padding before a word; padding comes last",
    )
    owners = np.repeat(np.arange(len(lengths)), lengths)
    _refuse(_mark(owners[log.documents < 0], len(lengths)), "a negative document number; documents are rows, from 0")
    order = np.lexsort((log.documents, owners))
    same = (np.diff(log.documents[order]) == 0) & (np.diff(owners[order]) == 0)
    _refuse(_mark(owners[order][1:][same], len(lengths)), "a document is listed twice. List each once")
    if log.dwell is not None and not (np.isfinite(log.dwell) & (log.dwell >= 0)).all():
        raise ValueError("dwell times of a log must be finite and not negative. Write 0 where there was no click.")


def _mark(searches: Array, n: int) -> Array:
    is_wrong = np.zeros(n, dtype=bool)
    is_wrong[searches] = True
    return is_wrong


def _refuse(is_wrong: Array, why: str) -> None:
    if is_wrong.any():
        raise ValueError(f"search {int(np.argmax(is_wrong))} of a log (counted from 0): {why}.")
