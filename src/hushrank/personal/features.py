"""About twenty numbers for each listed document: what the list, the user's clicks and the topics say of it.

Everything is taken from the log before the search in question: changing what comes later changes no bit. Three groups,
so that a model can be trained without one of them: `list` (the same for every user), `clicks` and `profile`. A user
without history has 0 in the last two. Counts are logarithms log(1 + n). The whole log is done at once: sorting the
listed documents gives every running count without a loop over searches. Shapes: n searches, m listed documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.personal.bm25 import Bm25Index, make_index, score_pairs
from hushrank.personal.log import FIRST_WORD, N_TITLE_WORDS, PADDING, UNKNOWN, Collection, SearchLog
from hushrank.personal.topics import N_TOPICS, TopicSpace, make_topics, mix_words
from hushrank.personal.vectors import scale_rows
from hushrank.types import Array

LIST_FEATURES = (
    "reciprocal_rank",  # in the general list
    "bm25",  # a tenth of the score
    "bm25_share",  # of the list's best score
    "coverage",  # part of the query's words that stand in the title
    "title_length",  # part of 50 words
    "query_length",  # logarithm of the words
    "unknown_words",  # part of the query's words
    "query_topic",  # cosine of the document's topics with the query's
)
CLICK_FEATURES = (
    "clicks",  # of this user on this document, ever
    "clicks_session",  # in this session
    "clicks_same_query",  # for the same query
    "clicks_similar_query",  # for another query that shares a word
    "skips",  # listed above a clicked document and not clicked, ever
    "skips_same_query",
    "times_listed",
    "click_recency",  # exp(-weeks since the last click on it); 0: never
    "query_seen",  # how often the user searched for just this
    "searches_before",
    "searches_in_session",  # before this one
)
PROFILE_FEATURES = (
    "topic_long",  # cosine with the topics of all documents clicked before
    "topic_short",  # of those in this session
    "topic_last",  # of the last search with a click
    "topic_recent",  # of the last ten searches with a click
)
FEATURES = LIST_FEATURES + CLICK_FEATURES + PROFILE_FEATURES
FEATURE_GROUPS = {"list": LIST_FEATURES, "clicks": CLICK_FEATURES, "profile": PROFILE_FEATURES}
N_FEATURES = len(FEATURES)
_WEEK = 7 * 24 * 3600.0
_RECENT = 10


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """What everybody shares and features are made from; nothing in it belongs to a user."""

    collection: Collection
    index: Bm25Index
    topics: TopicSpace


def make_source(collection: Collection, vectors: Array, *, n_topics: int = N_TOPICS) -> FeatureSource:
    """From the documents and the vectors [n_words, d] of `train_vectors`."""
    return FeatureSource(collection, make_index(collection), make_topics(collection, vectors, n_topics=n_topics))


def make_features(source: FeatureSource, log: SearchLog, *, first: int = 0) -> Array:
    """[m, N_FEATURES] float32 for the documents of the searches first, first + 1, ...; m counts these alone.

    For one new search append it to the log, with no click, and ask for `first=log.n_searches - 1`.
    """
    rows = slice(int(log.starts[first]), None)
    owners = log.owners()
    named = {
        **_list_features(source, log, owners, rows),
        **_click_features(log, owners, rows),
        **_profile_features(source.topics, log, owners, rows),
    }
    return np.stack([named[name] for name in FEATURES], axis=1).astype(np.float32)


def feature_columns(*groups: str) -> Array:
    """[k] columns of some groups: list, clicks, profile."""
    unknown = [group for group in groups if group not in FEATURE_GROUPS]
    if unknown:
        raise ValueError(f"no features are called {unknown[0]!r}. Choose from {', '.join(FEATURE_GROUPS)}.")
    return np.array(
        [FEATURES.index(name) for group in FEATURE_GROUPS if group in groups for name in FEATURE_GROUPS[group]]
    )


def _list_features(source: FeatureSource, log: SearchLog, owners: Array, rows: slice) -> dict[str, Array]:
    owners, documents = owners[rows], log.documents[rows]
    ranks = np.arange(rows.start, rows.start + len(owners)) - log.starts[owners]
    n_words = np.count_nonzero(log.queries, axis=1)
    width = int(n_words.max(initial=0))
    scores, n_matched = score_pairs(source.index, log.queries[owners, :width], documents)
    best = np.zeros(log.n_searches)
    np.maximum.at(best, owners, scores)
    query_topics = mix_words(source.topics.words, np.where(log.queries < FIRST_WORD, PADDING, log.queries))
    return {
        "reciprocal_rank": 1 / (ranks + 1),
        "bm25": scores / 10,
        "bm25_share": scores / np.maximum(best, 1e-9)[owners],
        "coverage": n_matched / np.maximum(n_words, 1)[owners],
        "title_length": source.collection.lengths[documents] / N_TITLE_WORDS,
        "query_length": np.log1p(n_words)[owners],
        "unknown_words": ((log.queries == UNKNOWN).sum(axis=1) / np.maximum(n_words, 1))[owners],
        "query_topic": _dot(query_topics[owners], source.topics.documents[documents]),
    }


def _click_features(log: SearchLog, owners: Array, rows: slice) -> dict[str, Array]:
    clicked, documents = log.is_clicked, log.documents
    skipped = _find_skips(log, owners)
    queries = number_queries(log.queries)
    of_session = documents, log.sessions[owners]
    of_query = documents, queries[owners]
    searches = np.arange(log.n_searches)
    heads = np.searchsorted(log.sessions, log.sessions)
    named = {
        "clicks": _count_before(clicked, documents),
        "clicks_session": _count_before(clicked, *of_session),
        "clicks_same_query": _count_before(clicked, *of_query),
        "clicks_similar_query": _count_similar(log, owners, queries),
        "skips": _count_before(skipped, documents),
        "skips_same_query": _count_before(skipped, *of_query),
        "times_listed": _count_before(np.ones(len(owners), bool), documents),
        "query_seen": _count_before(np.ones(log.n_searches, bool), queries)[owners],
        "searches_before": searches[owners],
        "searches_in_session": (searches - heads)[owners],
    }
    return {
        **{name: np.log1p(counts[rows]) for name, counts in named.items()},
        "click_recency": _recency(log, owners)[rows],
    }


def _profile_features(topics: TopicSpace, log: SearchLog, owners: Array, rows: slice) -> dict[str, Array]:
    """Cosines with sums of the topics of clicked documents before each search."""
    of_search = np.zeros((log.n_searches + 1, topics.n_topics))
    np.add.at(of_search, owners[log.is_clicked] + 1, topics.documents[log.documents[log.is_clicked]])
    before = np.cumsum(of_search, axis=0)  # [n + 1]: row i sums the searches 0, ..., i - 1
    searches = np.arange(log.n_searches)
    has_click = np.zeros(log.n_searches, dtype=bool)
    has_click[owners[log.is_clicked]] = True
    with_click = np.flatnonzero(has_click)
    n_with = np.searchsorted(with_click, searches)  # searches with a click before each one
    edges = np.concatenate([[0], with_click + 1])  # row edges[j] sums the first j of these
    since = {
        "topic_long": np.zeros(log.n_searches, dtype=np.int64),
        "topic_short": np.searchsorted(log.sessions, log.sessions),
        "topic_last": edges[np.maximum(n_with - 1, 0)],
        "topic_recent": edges[np.maximum(n_with - _RECENT, 0)],
    }
    own, listed = owners[rows], topics.documents[log.documents[rows]]
    profiles = {name: scale_rows(np.maximum(before[searches] - before[start], 0)) for name, start in since.items()}
    return {name: _dot(profile[own], listed) for name, profile in profiles.items()}


def number_queries(queries: Array) -> Array:
    """[n] the same number for searches with the same words in any order; the number of the first such search."""
    _, firsts, back = np.unique(np.sort(queries, axis=1), axis=0, return_index=True, return_inverse=True)
    return np.asarray(firsts[back.ravel()])


def _dot(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", left, right))


def _find_skips(log: SearchLog, owners: Array) -> Array:
    """[m] not clicked, and above a clicked document of the same list."""
    places = np.arange(len(owners))
    lowest = np.full(log.n_searches, -1)
    np.maximum.at(lowest, owners[log.is_clicked], places[log.is_clicked])
    return ~log.is_clicked & (places < lowest[owners])


def _count_before(is_event: Array, *groups: Array) -> Array:
    """[k] events earlier in the same group; a document stands once in a list, so earlier means in an earlier search."""
    order = np.lexsort(groups[::-1])
    total = np.cumsum(is_event[order]) - is_event[order]
    is_head = np.any([np.diff(group[order], prepend=group[order[:1]] - 1) != 0 for group in groups], axis=0)
    heads = np.maximum.accumulate(np.where(is_head, np.arange(len(order)), 0))
    counts = np.empty(len(order), dtype=np.int64)
    counts[order] = total - total[heads] if len(order) else total
    return counts


def _recency(log: SearchLog, owners: Array) -> Array:
    """[m] exp(-weeks) since the last click on the document, or 0."""
    order = np.lexsort((np.arange(len(owners)), log.documents))
    places = np.arange(len(order))
    is_head = np.diff(log.documents[order], prepend=-1) != 0
    heads = np.maximum.accumulate(np.where(is_head, places, 0))
    last = np.maximum.accumulate(np.where(log.is_clicked[order], places, -1))
    last = np.concatenate([[-1], last[:-1]])[: len(order)]  # strictly before
    times = log.times[owners][order]
    weeks = (times - times[np.maximum(last, 0)]) / _WEEK
    recency = np.empty(len(order))
    recency[order] = np.where(last >= heads, np.exp(-np.maximum(weeks, 0)), 0)
    return recency


def _count_similar(log: SearchLog, owners: Array, queries: Array) -> Array:
    """[m] clicks on the document in earlier searches for other queries with a word in common."""
    clicked = np.flatnonzero(log.is_clicked)
    clicked = clicked[np.argsort(log.documents[clicked], kind="stable")]
    low = np.searchsorted(log.documents[clicked], log.documents, side="left")
    high = np.searchsorted(log.documents[clicked], log.documents, side="right")
    pairs = np.repeat(np.arange(len(owners)), high - low)  # listed documents with each click on the same document
    others = clicked[np.repeat(low - np.cumsum(high - low) + (high - low), high - low) + np.arange(len(pairs))]
    now, then = owners[pairs], owners[others]
    is_candidate = (then < now) & (queries[then] != queries[now])
    pairs, now, then = pairs[is_candidate], now[is_candidate], then[is_candidate]
    width = int(np.count_nonzero(log.queries, axis=1).max(initial=0))
    left, right = log.queries[now, :width], log.queries[then, :width]
    is_shared = np.zeros(len(pairs), dtype=bool)
    for column in left.T:
        is_shared |= (column[:, None] == right).any(axis=1) & (column >= FIRST_WORD)
    return np.bincount(pairs[is_shared], minlength=len(owners))
