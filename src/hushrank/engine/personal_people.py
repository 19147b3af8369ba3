"""Users as models see them: each log is read when its client is asked for, and made into arrays of fixed widths.

Nothing here leaves a client: logs, histories, features and words live in the memory of the simulator, which plays all
clients, and in no message, checkpoint or report. A bounded number of logs is kept, so that any number of users fits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hushrank.personal.features import N_FEATURES, FeatureSource, make_features
from hushrank.personal.inputs import (
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
from hushrank.personal.log import SearchLog, SearchPopulation, slice_log
from hushrank.types import Array

MOST_OWN = 200  # words with a personal vector. Why: bounds a client's memory; of more, the most frequent ones are kept
MOST_SCANNED = 2000  # users by whose logs widths are found. Why: of 100,000 all would take minutes; who needs more room
# than these is cut to the latest searches, the first documents and the first words
MOST_KEPT = 3000  # clients whose logs and searches are kept in memory, about half a megabyte each


class Span(NamedTuple):
    """A stretch of time, in seconds: searches from `first` on and before `stop`."""

    first: float
    stop: float


class Record(NamedTuple):
    """What one client has."""

    log: SearchLog
    features: Array  # [m, n_features]
    own_words: Array  # [n_own] int32, those that have a personal vector


@dataclass(frozen=True)
class People:
    """The users of a run. `end`: when the last training data come, after which no word gets a personal vector."""

    population: SearchPopulation
    source: FeatureSource
    end: float
    kept: OrderedDict[Hashable, Record | PersonalInputs] = field(default_factory=OrderedDict, repr=False)

    @property
    def n_features(self) -> int:
        return N_FEATURES

    @property
    def title_words(self) -> int:
        """Of the longest title."""
        return max(int(self.population.collection.lengths.max(initial=1)), 1)

    def record_of(self, user: int) -> Record:
        """Read once, and kept as long as there is room."""
        found = self.kept.get(user)
        if not isinstance(found, Record):
            log = self.population.log_of(user)
            known = slice_log(log, 0, int(np.searchsorted(log.times, self.end, side="left")))
            found = Record(log, make_features(self.source, log), find_own_words(known, most=MOST_OWN))
            self._keep(user, found)
        return found

    def searches_in(self, user: int, span: Span) -> Array:
        """[n] the user's searches of a span with something clicked: the others have nothing to learn or measure."""
        log = self.record_of(user).log
        first, stop = np.searchsorted(log.times, span, side="left")
        has_click = np.zeros(log.n_searches, dtype=bool)
        has_click[log.owners()[log.is_clicked]] = True
        return np.arange(first, stop)[has_click[first:stop]]

    def inputs_of(self, user: int, span: Span) -> PersonalInputs:
        """The searches of a span with their history, as wide as they are."""
        found = self.kept.get((user, span))
        if not isinstance(found, PersonalInputs):
            record, searches = self.record_of(user), self.searches_in(user, span)
            collection = self.population.collection
            found = gather_inputs(
                record.log, collection, record.features, searches=searches, own_words=record.own_words
            )
            found = found._replace(document_words=found.document_words[..., : self.title_words])
            self._keep((user, span), found)
        return found

    def _keep(self, name: Hashable, value: Record | PersonalInputs) -> None:
        self.kept[name] = value
        while len(self.kept) > 2 * MOST_KEPT:
            self.kept.popitem(last=False)


def measure_widths(people: People, visits: Iterable[tuple[int, Span]]) -> InputWidths:
    """How wide the arrays of all users must be, by the visits to the first users; the same whoever is asked first."""
    widest = np.ones(5, dtype=np.int64)
    for user, span in visits:
        if user < MOST_SCANNED:
            widest = np.maximum(widest, _measure(people.inputs_of(user, span)))
    queries, documents, history, query_words, title_words = (int(width) for width in widest)
    return InputWidths(queries, documents, history, query_words, title_words)


def list_scanned(people: People, spans: Iterable[Span]) -> list[tuple[int, Span]]:
    """Visits of spans to the users by whose logs widths are found."""
    return [(user, span) for user in range(min(people.population.n_users, MOST_SCANNED)) for span in spans]


def most_own_words(people: People) -> int:
    """Rows that every client's table of personal vectors has room for."""
    n_scanned = min(people.population.n_users, MOST_SCANNED)
    scanned = max((len(people.record_of(user).own_words) for user in range(n_scanned)), default=0)
    return max(1, scanned if n_scanned == people.population.n_users else MOST_OWN)


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
