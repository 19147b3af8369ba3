"""The log that a person's own device keeps of searches with a remote engine: what was asked, shown and clicked.

It never leaves the device. The general list is kept beside the one that was shown: a ranker learns from the general
one, so that an earlier order leaves no trace in a later one [fedps, section 3.2]. Documents are known by the engine's
names and by their titles. Whoever stores a log stores its `LoggedSearch`es; everything else follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.personal.bm25 import make_index
from hushrank.personal.features import FeatureSource
from hushrank.personal.log import (
    FIRST_WORD,
    N_QUERY_WORDS,
    N_TITLE_WORDS,
    UNKNOWN,
    Collection,
    Search,
    SearchLog,
    make_log,
    pad_words,
)
from hushrank.personal.sessions import divide_sessions
from hushrank.personal.titles import split_words
from hushrank.personal.topics import TopicSpace, mix_words
from hushrank.types import Array

_NOWHERE = -1  # the row of a document that no search listed, for `make_log` to refuse


class FoundDocument(NamedTuple):
    """One entry of an engine's list."""

    name: str  # the engine's
    title: str


class LoggedSearch(NamedTuple):
    """One search of the person."""

    time: int  # seconds; never before the search before it
    query: str
    general: tuple[FoundDocument, ...]  # as the engine ordered them
    shown: tuple[str, ...]  # names, as the person saw them
    clicked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedWords:
    """What everybody's devices get of the engine's documents; nothing in it belongs to a user."""

    words: tuple[str, ...]  # [V] of each number; the first two stand for padding and unknown words
    document_frequency: Array  # [V] int64
    n_documents: int
    mean_length: float  # of titles, in words
    topics: Array  # [V, n_topics] float32, `words` of a TopicSpace

    def __post_init__(self) -> None:
        n = len(self.words)
        if n < FIRST_WORD or self.document_frequency.shape != (n,) or self.topics.shape[:1] != (n,):
            raise ValueError(
                f"{n} words, {len(self.document_frequency)} frequencies and {len(self.topics)} mixes of topics, must "
                "be equally many, padding and unknown words included. Use share_words."
            )

    def number_words(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words) if number >= FIRST_WORD}


def share_words(source: FeatureSource) -> SharedWords:
    """From what the lab, or an engine, has of its whole collection."""
    whole = source.collection
    return SharedWords(whole.words, whole.document_frequency, whole.n_documents, whole.mean_length, source.topics.words)


def encode_words(text: str, numbers: Mapping[str, int], *, most: int) -> list[int]:
    return [numbers.get(word, UNKNOWN) for word in split_words(text)[:most]]


def read_searches(
    searches: Sequence[LoggedSearch], shared: SharedWords, numbers: Mapping[str, int]
) -> tuple[FeatureSource, SearchLog]:
    """The documents of a local log with the statistics of the whole collection, and the log itself, as the lab has it.

    numbers: of `shared.number_words`. Of a document with two titles the last one counts. A click on a document that was
    not listed raises ValueError, without its name.
    """
    titles = {document.name: document.title for search in searches for document in search.general}
    rows = {name: row for row, name in enumerate(titles)}
    encoded = pad_words((encode_words(title, numbers, most=N_TITLE_WORDS) for title in titles.values()), N_TITLE_WORDS)
    lengths = np.count_nonzero(encoded, axis=1).astype(np.int32)
    collection = Collection(encoded, shared.words, shared.document_frequency, lengths)
    index = make_index(collection, n_documents=shared.n_documents, mean_length=shared.mean_length)
    source = FeatureSource(collection, index, TopicSpace(shared.topics, mix_words(shared.topics, encoded)))
    return source, make_log(*_number_searches(searches, rows, numbers))


def _number_searches(
    searches: Iterable[LoggedSearch], rows: Mapping[str, int], numbers: Mapping[str, int]
) -> tuple[list[Search], Array]:
    found = [
        Search(
            search.time,
            tuple(encode_words(search.query, numbers, most=N_QUERY_WORDS)),
            tuple(rows[document.name] for document in search.general),
            tuple(rows.get(name, _NOWHERE) for name in search.clicked),
        )
        for search in searches
    ]
    queries = pad_words((search.query for search in found), N_QUERY_WORDS)
    return found, divide_sessions(queries, np.array([search.time for search in found], dtype=np.int64))
