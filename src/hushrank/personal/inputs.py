"""What a personalised model sees: searches of one user, their candidates, and what the user did before.

Words are numbers of one vocabulary that everybody shares: 0 is padding, 1 any unknown word, the others begin at 2.
Every array has a fixed width. Padding never changes a score: word 0, candidates outside `is_document`, history items of
session -1, searches outside `is_query`. The tuples are trees of arrays, so that clients of equal widths can be stacked.
Shapes: B searches, D candidates, F features, H history items, P words with a personal vector, Lq and Ld words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.personal.log import FIRST_WORD, Collection, SearchLog
from hushrank.types import Array

N_LONG, N_SHORT = 50, 10  # history rows that a model reads: before the session of a search, and in it
N_WINDOW = N_LONG + N_SHORT
NO_ROW = -1  # in `query_rows`: this word has no personal vector, the global one stands in
NO_SESSION = -1  # of a history item that is padding


class HistoryTable(NamedTuple):
    """Earlier searches of one user, oldest first; one row is a query and what was clicked after it."""

    query_words: Array  # [H, Lq] int32
    clicked_words: Array  # [H, Ld] int32, words of the clicked document; all 0 where nothing was clicked
    sessions: Array  # [H] int32, the same number in one session, never decreasing; -1 is padding


class PersonalInputs(NamedTuple):
    """Searches of one user. The candidates stand in their original order, the one of the non-personal search engine."""

    query_words: Array  # [B, Lq] int32
    query_rows: Array  # [B, Lq] int32, row of the personal vector of each query word, or -1
    document_words: Array  # [B, D, Ld] int32
    is_document: Array  # [B, D] bool, False for padding, which stands behind the candidates
    features: Array  # [B, D, F] float32
    is_clicked: Array  # [B, D] bool; models do not read it, the loss and the metrics do
    is_query: Array  # [B] bool, False for padding
    n_long: Array  # [B] int32, history rows before the session of this search: rows 0 to n_long - 1
    n_before: Array  # [B] int32, history rows before this search; n_long to n_before - 1 are of its session
    history: HistoryTable


@dataclass(frozen=True, slots=True)
class InputWidths:
    """How wide the arrays of a block of users are."""

    queries: int = 64  # B
    documents: int = 30  # D
    history: int = 64  # H
    query_words: int = 20  # Lq
    document_words: int = 50  # Ld


def find_own_rows(own_words: Array, words: Array) -> Array:
    """int32 as `words`: where each word stands among the user's `own_words` [P] (ascending, without 0 and 1), or -1."""
    places = np.minimum(np.searchsorted(own_words, words), max(len(own_words) - 1, 0))
    is_own = (own_words[places] == words) & (words >= FIRST_WORD) if len(own_words) else np.zeros(words.shape, bool)
    return np.where(is_own, places, NO_ROW).astype(np.int32)


def find_own_words(log: SearchLog, *, most: int) -> tuple[Array, Array]:
    """[at most `most`] int32 ascending: the words of the user's queries, the earliest ones if there are more.

    And int64, the time of the first query with each.
    """
    is_word = log.queries >= FIRST_WORD
    words, firsts = np.unique(log.queries[is_word], return_index=True)
    kept = np.sort(np.argsort(firsts, kind="stable")[:most])
    return words[kept].astype(np.int32), log.times[np.nonzero(is_word)[0][firsts[kept]]]


def gather_inputs(
    log: SearchLog,
    collection: Collection,
    features: Array,
    *,
    searches: Array,
    own_words: Array,
    is_apart: bool = False,
) -> PersonalInputs:
    """The given searches of a log (ascending) and their history, as wide as these need it; `features` are [m, F].

    A history row has the words of the documents that were clicked, one after the other, as far as they fit. Only the
    rows that a model can reach are kept: `N_LONG` before the session of the first search, and all later ones; or, where
    `is_apart`, `N_WINDOW` for each search. That is less where searches are few among many of a log; no score changes.
    """
    lengths = np.diff(log.starts)[searches]
    is_document = np.arange(lengths.max(initial=1)) < lengths[:, None]
    rows = np.where(is_document, log.starts[searches, None] + np.arange(is_document.shape[1]), 0)
    gather_history = _gather_apart if is_apart else _gather_together
    history, n_long, n_before = gather_history(log, collection, searches)
    return PersonalInputs(
        query_words=log.queries[searches],
        query_rows=find_own_rows(own_words, log.queries[searches]),
        document_words=np.where(is_document[..., None], collection.titles[log.documents[rows]], 0).astype(np.int32),
        is_document=is_document,
        features=np.where(is_document[..., None], features[rows], 0).astype(np.float32),
        is_clicked=is_document & log.is_clicked[rows],
        is_query=np.ones(len(searches), dtype=bool),
        n_long=n_long,
        n_before=n_before,
        history=history,
    )


def _gather_together(log: SearchLog, collection: Collection, searches: Array) -> tuple[HistoryTable, Array, Array]:
    """Rows that all searches share; and n_long and n_before [B]."""
    heads = np.searchsorted(log.sessions, log.sessions[searches]).astype(np.int32)
    first, last = (max(int(heads[0]) - N_LONG, 0), int(searches[-1]) + 1) if len(searches) else (0, 0)
    history = _gather_rows(log, collection, np.arange(first, last))
    return history, heads - np.int32(first), (searches - first).astype(np.int32)


def _gather_apart(log: SearchLog, collection: Collection, searches: Array) -> tuple[HistoryTable, Array, Array]:
    """As `_gather_together`, with `N_WINDOW` rows for each search, those first that are padding."""
    heads = np.searchsorted(log.sessions, log.sessions[searches])[:, None]
    long, short = heads - N_LONG + np.arange(N_LONG), searches[:, None] - N_SHORT + np.arange(N_SHORT)
    places = np.concatenate([np.maximum(long, -1), np.where(short >= heads, short, -1)], axis=1).ravel()
    found, back = np.unique(np.maximum(places, 0), return_inverse=True)
    is_item = places >= 0
    known = HistoryTable(*(rows[back] for rows in _gather_rows(log, collection, found)))
    history = HistoryTable(
        np.where(is_item[:, None], known.query_words, 0).astype(np.int32),
        np.where(is_item[:, None], known.clicked_words, 0).astype(np.int32),
        np.where(is_item, known.sessions, NO_SESSION).astype(np.int32),
    )
    ends = N_WINDOW * np.arange(1, len(searches) + 1, dtype=np.int32)
    return history, ends - np.int32(N_SHORT), ends


def _gather_rows(log: SearchLog, collection: Collection, searches: Array) -> HistoryTable:
    width = collection.titles.shape[1]
    clicked = [_join_clicked(log, collection, int(search)) for search in searches]
    return HistoryTable(
        log.queries[searches],
        np.array(clicked, dtype=np.int32).reshape(len(searches), width),
        log.sessions[searches].astype(np.int32),
    )


def _join_clicked(log: SearchLog, collection: Collection, search: int) -> Array:
    """[Ld] the words of the clicked documents of one search, one document after the other."""
    rows = log.rows(search)
    words = collection.titles[log.documents[rows][log.is_clicked[rows]]]
    joined = words[words > 0][: collection.titles.shape[1]]
    return np.pad(joined, (0, collection.titles.shape[1] - len(joined)))


def pad_inputs(inputs: PersonalInputs, widths: InputWidths) -> PersonalInputs:
    """The same searches in wider arrays; what does not fit is refused."""
    b, d, h = widths.queries, widths.documents, widths.history
    lq, ld = widths.query_words, widths.document_words
    history = HistoryTable(
        _widen(inputs.history.query_words, (h, lq)),
        _widen(inputs.history.clicked_words, (h, ld)),
        _widen(inputs.history.sessions, (h,), fill=NO_SESSION),
    )
    return PersonalInputs(
        query_words=_widen(inputs.query_words, (b, lq)),
        query_rows=_widen(inputs.query_rows, (b, lq), fill=NO_ROW),
        document_words=_widen(inputs.document_words, (b, d, ld)),
        is_document=_widen(inputs.is_document, (b, d)),
        features=_widen(inputs.features, (b, d, inputs.features.shape[2])),
        is_clicked=_widen(inputs.is_clicked, (b, d)),
        is_query=_widen(inputs.is_query, (b,)),
        n_long=_widen(inputs.n_long, (b,)),
        n_before=_widen(inputs.n_before, (b,)),
        history=history,
    )


def take_queries(inputs: PersonalInputs, places: Array) -> PersonalInputs:
    """Some of the searches, with the whole history; works on NumPy and on JAX arrays."""
    return PersonalInputs._make((*(array[places] for array in inputs[:-1]), inputs.history))


def trim_history(inputs: PersonalInputs) -> PersonalInputs:
    """The same searches (at least one) with the rows alone that models can reach: no score changes."""
    first, last = max(int(inputs.n_long.min()) - N_LONG, 0), int(inputs.n_before.max())
    history = HistoryTable(*(array[first:last] for array in inputs.history))
    return inputs._replace(
        n_long=inputs.n_long - np.int32(first), n_before=inputs.n_before - np.int32(first), history=history
    )


def stack_inputs(users: Sequence[PersonalInputs]) -> PersonalInputs:
    """Users of equal widths as one tree: every array gets a first axis [n_users]."""
    history = HistoryTable(*(np.stack(arrays) for arrays in zip(*(user.history for user in users), strict=True)))
    rest = [np.stack(arrays) for arrays in zip(*(user[:-1] for user in users), strict=True)]
    return PersonalInputs._make((*rest, history))


def _widen(array: Array, shape: tuple[int, ...], *, fill: int = 0) -> Array:
    if any(have > want for have, want in zip(array.shape, shape, strict=True)):
        raise ValueError(
            f"an array of shape {array.shape} does not fit into {shape}: widen the widths or cut the data."
        )
    wide = np.full(shape, fill, dtype=array.dtype)
    wide[tuple(slice(n) for n in array.shape)] = array
    return wide
