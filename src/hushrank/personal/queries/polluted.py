"""Logs as a search engine has them where users hide in them: several under one id, or mixed with cover queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushrank.personal.bm25 import Bm25Index, Candidates, find_candidates
from hushrank.personal.log import SearchLog
from hushrank.personal.sessions import divide_sessions
from hushrank.types import Array


def join_logs(logs: Sequence[SearchLog]) -> tuple[SearchLog, Array]:
    """The log of the id that these users share, and [n] whose search each is, by the place among `logs`.

    Sessions end after a pause of everybody: an engine that knows one id cannot tell whose search is whose.
    """
    owners = np.repeat(np.arange(len(logs)), [log.n_searches for log in logs])
    times = np.concatenate([log.times for log in logs])
    order = np.argsort(times, kind="stable")
    queries, times = np.concatenate([log.queries for log in logs])[order], times[order]
    lengths = np.concatenate([np.diff(log.starts) for log in logs])
    documents, is_clicked = (
        np.concatenate([getattr(log, name) for log in logs]) for name in ("documents", "is_clicked")
    )
    starts, rows = _order_lists(lengths, order)
    joined = SearchLog(queries, times, divide_sessions(queries, times), starts, documents[rows], is_clicked[rows])
    return joined, owners[order]


def mix_covers(log: SearchLog, covers: Array, index: Bm25Index) -> tuple[SearchLog, Array]:
    """The log with covers [n, k, 20] beside their queries, and [n (k + 1)] whether a search is the user's own.

    A cover has the time and session of its query, a list that the engine found for it, as long as the query's, and no
    click: nobody looks at it.
    """
    n, k, width = covers.shape
    lengths = np.diff(log.starts)
    found = find_candidates(index, covers.reshape(-1, width), np.repeat(lengths, k))
    whose = np.concatenate([np.arange(n), np.repeat(np.arange(n), k)])
    order = np.argsort(whose, kind="stable")  # a query, then its covers
    own = Candidates(log.starts, log.documents, np.zeros(0))
    starts, rows = _order_lists(np.concatenate([np.diff(own.starts), np.diff(found.starts)]), order)
    documents = np.concatenate([own.documents, found.documents])[rows]
    is_clicked = np.concatenate([log.is_clicked, np.zeros(len(found.documents), bool)])[rows]
    queries = np.concatenate([log.queries, covers.reshape(-1, width)])[order]
    whose = whose[order]
    mixed = SearchLog(queries, log.times[whose], log.sessions[whose], starts, documents, is_clicked)
    return mixed, np.asarray(order < n)


def _order_lists(lengths: Array, order: Array) -> tuple[Array, Array]:
    """Where the lists begin once they stand in another order, and [m] which row of before stands at each place."""
    before = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64)
    rows = np.repeat(before[order] - starts[:-1], lengths[order]) + np.arange(starts[-1])
    return starts, rows
