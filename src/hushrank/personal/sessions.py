"""Where a user's searches fall apart into sessions: after a pause, or where a query is unlike the one before."""

from __future__ import annotations

import numpy as np

from hushrank.personal.log import FIRST_WORD
from hushrank.types import Array

PAUSE_SECONDS = 30 * 60
LEAST_SIMILARITY = 0.5  # of consecutive queries of a session, for logs without reliable pauses such as AOL's


def divide_sessions(
    queries: Array,
    times: Array,
    *,
    pause: int = PAUSE_SECONDS,
    least_similarity: float | None = None,
    vectors: Array | None = None,
) -> Array:
    """[n] int32 session of each search: 0, 1, 2, ...

    A session ends after `pause` seconds without a search and, where `least_similarity` is given, before a query whose
    cosine with the one before is lower. The cosine is that of word counts, or of the sums of word vectors
    [n_words, d] where these are given: then other words for the same thing continue a session. Queries without a known
    word are unlike every other query.
    """
    if len(times) and (np.diff(times) < 0).any():
        place = int(np.argmax(np.diff(times) < 0)) + 1
        raise ValueError(f"search {place} (counted from 0) is earlier than the one before it. Sort the log by time.")
    is_border = np.diff(times) >= pause
    if least_similarity is not None:
        is_border |= compare_neighbours(queries, vectors=vectors) < least_similarity
    return np.concatenate([np.zeros(min(len(times), 1), np.int32), np.cumsum(is_border).astype(np.int32)])


def compare_neighbours(queries: Array, *, vectors: Array | None = None) -> Array:
    """[n - 1] cosine of each query with the one before it."""
    known = np.where(queries >= FIRST_WORD, queries, 0)
    if vectors is None:
        dot, squares = _count_matches(known[1:], known[:-1]), _count_matches(known, known)
    else:
        sums = np.where((known > 0)[..., None], vectors[known], 0).sum(axis=1, dtype=np.float64)
        dot, squares = (sums[1:] * sums[:-1]).sum(axis=1), (sums * sums).sum(axis=1)
    scale = np.sqrt(squares[1:] * squares[:-1])
    return np.divide(dot, scale, out=np.zeros(len(dot)), where=scale > 0)


def _count_matches(left: Array, right: Array) -> Array:
    """[n] dot product of word counts: pairs of equal words."""
    is_equal = (left[:, :, None] == right[:, None, :]) & (left > 0)[:, :, None]
    return is_equal.sum(axis=(1, 2)).astype(np.float64)
