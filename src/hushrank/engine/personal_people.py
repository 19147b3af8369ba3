"""Users as models see them: each log is read when its client is asked for, and made into arrays of fixed widths.

Logs, histories, features and words live in the memory of the simulator, which plays all clients; no file of a run holds
them. What follows from them does leave: an update tells of a client's words unless there is noise, and so do personal
vectors, which checkpoints hold until the training ends (`personal_store.py`). A bounded number of logs is kept, so that
any number of users fits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hushrank.personal.features import N_FEATURES, FeatureSource, make_features
from hushrank.personal.inputs import (
    N_LONG,
    N_WINDOW,
    NO_ROW,
    NO_SESSION,
    HistoryTable,
    InputWidths,
    PersonalInputs,
    find_own_words,
    gather_inputs,
    pad_inputs,
    stack_inputs,
    take_queries,
)
from hushrank.personal.log import N_TITLE_WORDS, SearchLog, SearchPopulation, slice_log
from hushrank.personal.queries.ids import IdLog, OwnIds, SearchIds
from hushrank.types import Array

MOST_OWN = 200  # words with a personal vector. Why: bounds a client's memory; of more, the first ones are kept, because
# how often a word will be searched for is not known when it is
MOST_SEARCHES = 512  # of a span that a client trains on: the latest. Why a constant: what one client trains on must not
# depend on how much another one searched, or noise on its own update would not hide that one
MOST_LISTED = 50  # documents of a list, where the data state no size
MOST_SCANNED = 2000  # users over whom a mean is taken for a description. Why: of 100,000 all would take minutes
MOST_KEPT = 3000  # clients whose logs and searches are kept in memory, about half a megabyte each


class Span(NamedTuple):
    """A stretch of time, in seconds: searches from `first` on and before `stop`."""

    first: float
    stop: float


class Record(NamedTuple):
    """What one client has; or, in one place, what is there under one id."""

    log: SearchLog
    features: Array  # [m, n_features]
    own_words: Array  # [n_own] int32 ascending, those that have or will have a personal vector in this run
    own_since: Array  # [n_own] int64, when each was first searched for


@dataclass(frozen=True)
class People:
    """The users of a run. `end`: when the last training data come, after which no word gets a personal vector.

    A client's table has one row for each word until then, whose place never changes; a row is used from the training on
    that has seen its word, and until then the global vector stands in.
    """

    population: SearchPopulation
    source: FeatureSource
    end: float
    hidden: SearchIds | None = None  # ids under which one place has all searches; None: each user's own
    kept: OrderedDict[Hashable, IdLog | Record | PersonalInputs] = field(default_factory=OrderedDict, repr=False)
    learners: dict[tuple[Span, ...], Array] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_features(self) -> int:
        return N_FEATURES

    @cached_property
    def under(self) -> SearchIds:
        return OwnIds(self.population) if self.hidden is None else self.hidden

    @cached_property
    def ids(self) -> Array:
        """[n_users] of each user."""
        return self.under.ids

    @property
    def most_own(self) -> int:
        """Words of an id with a personal vector."""
        return MOST_OWN * self.under.room

    @cached_property
    def n_own(self) -> int:
        """Rows of a table of personal vectors, padding included. Where users hide, no more than any id needs."""
        if self.hidden is None:
            return self.most_own
        _, firsts = np.unique(self.ids, return_index=True)
        return max(1, *(len(self.record_of(int(user)).own_words) for user in firsts))

    @property
    def title_words(self) -> int:
        """Of the longest title."""
        return max(int(self.population.collection.lengths.max(initial=1)), 1)

    def log_of(self, user: int) -> IdLog:
        """Of the user's id; read once, and kept as long as there is room."""
        id = int(self.ids[user])
        found = self.kept.get(("log", id))
        if not isinstance(found, IdLog):
            found = self.under.log_of(id)
            self._keep(("log", id), found)
        return found

    def record_of(self, user: int) -> Record:
        """Made once, and kept as long as there is room. Why not for every question: features take most of the time."""
        name = ("record", int(self.ids[user]))
        found = self.kept.get(name)
        if not isinstance(found, Record):
            log = self.log_of(user).log
            known = slice_log(log, 0, int(np.searchsorted(log.times, self.end, side="left")))
            found = Record(log, make_features(self.source, log), *find_own_words(known, most=self.most_own))
            self._keep(name, found)
        self.kept.move_to_end(name)  # Why: what many users share is asked for again and again
        return found

    def searches_in(self, user: int, span: Span) -> Array:
        """[n] the user's searches of a span with something clicked: the others have nothing to learn or measure."""
        log, owners = self.log_of(user)
        first, stop = np.searchsorted(log.times, span, side="left")
        has_click = np.zeros(log.n_searches, dtype=bool)
        has_click[log.owners()[log.is_clicked]] = True
        return np.arange(first, stop)[has_click[first:stop] & (owners[first:stop] == user)]

    def has_pairs(self, user: int, span: Span) -> bool:
        """Whether a training has something to learn from: a clicked and an unclicked document in one list, of what is
        left after the cuts of `fit_inputs`."""
        log, width = self.log_of(user).log, count_listed(self.population, has_test=False)
        lists = (log.is_clicked[log.rows(search)][:width] for search in self.searches_in(user, span)[-MOST_SEARCHES:])
        return any(clicked.any() and not clicked.all() for clicked in lists)

    def find_learners(self, spans: tuple[Span, ...]) -> Array:
        """[n_spans, n_users] bool: who `has_pairs` in which span. Each log is read for it once, and the bits stay."""
        if spans not in self.learners:
            found = np.zeros((len(spans), self.population.n_users), dtype=bool)
            for user in range(self.population.n_users):
                found[:, user] = [self.has_pairs(user, span) for span in spans]
            self.learners.clear()  # Why: a run asks for the spans of its trainings, always the same ones
            self.learners[spans] = found
        return self.learners[spans]

    def inputs_of(self, user: int, span: Span, *, trained: float | None = None) -> PersonalInputs:
        """The searches of a span with their history, as wide as they are.

        trained: when the data of the training ended; later words have no personal vector. None: with the span.
        """
        trained = span.stop if trained is None else trained
        found = self.kept.get((user, span, trained))
        if not isinstance(found, PersonalInputs):
            record, searches = self.record_of(user), self.searches_in(user, span)
            collection = self.population.collection
            found = gather_inputs(
                record.log,
                collection,
                record.features,
                searches=searches,
                own_words=record.own_words,
                is_apart=self.hidden is not None,
            )
            is_known = np.append(record.own_since < trained, False)  # Why: the last one is that of NO_ROW
            found = found._replace(
                document_words=found.document_words[..., : self.title_words],
                query_rows=np.where(is_known[found.query_rows], found.query_rows, np.int32(NO_ROW)),
            )
            self._keep((user, span, trained), found)
        return found

    def _keep(self, name: Hashable, value: IdLog | Record | PersonalInputs) -> None:
        self.kept[name] = value
        while len(self.kept) > 3 * MOST_KEPT:
            self.kept.popitem(last=False)


def state_widths(people: People, *, queries: int, history: int, has_test: bool) -> InputWidths:
    """Widths by what the data state and by constants, never by anybody's log; a client cuts what has no room.

    has_test: whether lists of the test period must fit, too. A history row has room for two titles. history: rows; each
    search has its own where users hide.
    """
    history = history if people.hidden is None else N_WINDOW * queries
    documents, n_words = count_listed(people.population, has_test=has_test), people.population.n_query_words
    return InputWidths(queries, documents, history, n_words, min(2 * people.title_words, N_TITLE_WORDS))


def count_listed(population: SearchPopulation, *, has_test: bool) -> int:
    """Documents of a list that there is room for."""
    sizes = population.list_sizes
    stated = [sizes.other, sizes.test] if has_test else [sizes.other]
    return MOST_LISTED if 0 in stated else max(stated)


def training_widths(people: People) -> InputWidths:
    """Of clients that train."""
    return state_widths(people, queries=MOST_SEARCHES, history=MOST_SEARCHES + N_LONG, has_test=False)


def narrow_widths(people: People, spans: Iterable[Span]) -> InputWidths:
    """No wider than anybody's searches need, for training in one place, which holds all of them in memory at once."""
    widest = np.ones(5, dtype=np.int64)
    for span in spans:
        for user in range(people.population.n_users):
            widest = np.maximum(widest, _measure(people.inputs_of(user, span)))
    return InputWidths(*np.minimum(widest, astuple(training_widths(people))).tolist())


def count_cut(inputs: PersonalInputs, widths: InputWidths) -> int:
    """Searches that are left out, or lose documents or words of the query, where inputs get these widths."""
    n_left_out = max(len(inputs.is_query) - widths.queries, 0)
    n_beyond = np.count_nonzero(inputs.is_document[n_left_out:, widths.documents :], axis=1)
    n_beyond += np.count_nonzero(inputs.query_words[n_left_out:, widths.query_words :], axis=1)
    return n_left_out + int(np.count_nonzero(n_beyond))


def _measure(inputs: PersonalInputs) -> Array:
    texts = (inputs.query_words, inputs.history.query_words), (inputs.document_words, inputs.history.clicked_words)
    words = [max(int(np.count_nonzero(text, axis=-1).max(initial=0)) for text in kind) for kind in texts]
    return np.array([*inputs.is_document.shape, len(inputs.history.sessions), *words])


def fit_inputs(inputs: PersonalInputs, widths: InputWidths, *, title_words: int) -> PersonalInputs:
    """In arrays of these widths: padding is cut or added; of what does not fit, the latest searches stay.

    title_words: of a candidate. Why not as wide as a history row: that holds several clicked titles, and candidates are
    what most of the time goes into.
    """
    n, n_rows = len(inputs.is_query), len(inputs.history.sessions)
    inputs = take_queries(inputs, np.arange(max(n - widths.queries, 0), n))
    left_out, n_documents = max(n_rows - widths.history, 0), widths.documents
    history = type(inputs.history)(
        inputs.history.query_words[left_out:, : widths.query_words],
        inputs.history.clicked_words[left_out:, : widths.document_words],
        inputs.history.sessions[left_out:],
    )
    cut = inputs._replace(
        query_words=inputs.query_words[:, : widths.query_words],
        query_rows=inputs.query_rows[:, : widths.query_words],
        document_words=inputs.document_words[:, :n_documents, : widths.document_words],
        is_document=inputs.is_document[:, :n_documents],
        features=inputs.features[:, :n_documents],
        is_clicked=inputs.is_clicked[:, :n_documents],
        n_long=np.maximum(inputs.n_long - left_out, 0).astype(np.int32),
        n_before=np.maximum(inputs.n_before - left_out, 0).astype(np.int32),
        history=history,
    )
    padded = pad_inputs(cut, widths)  # candidates' words are narrower already, and are padded to be cut again
    return padded._replace(document_words=padded.document_words[..., :title_words])


def empty_inputs(like: PersonalInputs) -> PersonalInputs:
    """Of a client that is none: fills up a block."""
    history = HistoryTable(
        np.zeros_like(like.history.query_words),
        np.zeros_like(like.history.clicked_words),
        np.full_like(like.history.sessions, NO_SESSION),
    )
    zeros = {name: np.zeros_like(getattr(like, name)) for name in like._fields if name != "history"}
    return PersonalInputs(**zeros, history=history)


def stack_block(people: People, clients: Sequence[PersonalInputs], widths: InputWidths, *, size: int) -> PersonalInputs:
    """[size, ...] clients of one block; where there are fewer, the rest is empty."""
    fitted = [fit_inputs(client, widths, title_words=people.title_words) for client in clients]
    return stack_inputs([*fitted, *[empty_inputs(fitted[0])] * (size - len(fitted))])
