"""What a search engine can see of each user, as counts of words, and how far that is from what the user did.

    true profile      the words of the user's queries and of the titles that the user clicked on
    KL(true || observed) = sum over words w of true(w) log(true(w) / observed(w)),    in nats

What is observed of a user, by how searching is organised [fedps, section 4.1]:

    central       queries and clicked titles, under the user's own id: the true profile
    group-user    the same of all users who share the id
    cover-query   queries, clicked titles and cover queries, under the user's own id
    fedps-flat    queries and cover queries, under the user's own id; nothing that was clicked
    fedps-proxy   the queries of all users behind the proxy, without an id; nothing that was clicked
    no-clicks     queries alone, under the user's own id: what fedps-flat would be without covers (a control of ours)

A distribution is smoothed in one of two ways, the true one and the observed one alike, so that nothing is infinite:
`jelinek-mercer`, 0.9 of the counts' shares and 0.1 of the words' shares in all titles, or `epsilon`, a tiny share for
every word. Shapes: V words, counts [V]; padding and unknown words count nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hushrank.personal.keys import COVER_QUERY, GROUP_USER
from hushrank.personal.log import FIRST_WORD, Collection, SearchLog
from hushrank.streams import Purpose, draw_bits, fold_in, stream
from hushrank.types import Array

CENTRAL, FLAT, PROXY = "central", "fedps-flat", "fedps-proxy"
NO_CLICKS = "no-clicks"
WAYS = (CENTRAL, GROUP_USER, COVER_QUERY, FLAT, PROXY, NO_CLICKS)
N_SHARING = 100  # users who share an id, or a proxy
_OWN = 0.9  # of the counts' shares, under Jelinek-Mercer smoothing
_EPSILON = 1e-6  # added to every word's share
JELINEK_MERCER, ADD_EPSILON = "jelinek-mercer", "epsilon"
SMOOTHINGS = (JELINEK_MERCER, ADD_EPSILON)


class UserWords(NamedTuple):
    """How often one user has, or seems to have, used each word; all [V] float64."""

    queries: Array
    clicked: Array  # titles of clicked documents
    covers: Array  # queries that the user never made

    @property
    def true(self) -> Array:
        return np.asarray(self.queries + self.clicked)


def count_user(collection: Collection, log: SearchLog, covers: Array) -> UserWords:
    """Of a whole log and its covers, word numbers of any shape."""
    titles = collection.titles[log.documents[log.is_clicked]]
    return UserWords(*(count_words(text, collection.n_words) for text in (log.queries, titles, covers)))


def count_words(texts: Array, n_words: int) -> Array:
    """[V] float64; padding and unknown words count 0."""
    counts = np.bincount(np.asarray(texts).ravel(), minlength=n_words).astype(np.float64)
    counts[:FIRST_WORD] = 0
    return counts


def divide_users(n_users: int, key: Array, *, size: int = N_SHARING) -> Array:
    """[n_users] the group of each: drawn at random, as even as can be, none larger than `size`."""
    if size < 1:
        raise ValueError(f"a group has {size} users, must have at least 1.")
    n_groups = max(-(-n_users // size), 1)
    draws = draw_bits(fold_in(stream(key, Purpose.SHARED_ID), np.arange(n_users)), 1)[:, 0]
    groups = np.empty(n_users, dtype=np.int64)
    groups[np.argsort(draws, kind="stable")] = np.arange(n_users) % n_groups
    return groups


def observe(users: Sequence[UserWords], groups: Array) -> dict[str, list[Array]]:
    """{way of searching: [n_users] counts [V] that the engine has for each user}; groups: of `divide_users`."""
    pooled = {group: [users[user] for user in np.flatnonzero(groups == group).tolist()] for group in np.unique(groups)}
    with_clicks = {group: np.sum([each.true for each in members], axis=0) for group, members in pooled.items()}
    queries = {group: np.sum([each.queries for each in members], axis=0) for group, members in pooled.items()}
    return {
        CENTRAL: [each.true for each in users],
        GROUP_USER: [with_clicks[group] for group in groups],
        COVER_QUERY: [each.true + each.covers for each in users],
        FLAT: [each.queries + each.covers for each in users],
        PROXY: [queries[group] for group in groups],
        NO_CLICKS: [each.queries for each in users],
    }


def measure_divergence(true: Array, observed: Array, corpus: Array, *, smoothing: str) -> float:
    """KL(true || observed) in nats, of counts [V]; corpus: counts [V] in all titles."""
    left, right = (smooth(counts, corpus, smoothing=smoothing) for counts in (true, observed))
    is_there = left > 0
    return float(np.sum(left[is_there] * np.log(left[is_there] / right[is_there])))


def smooth(counts: Array, corpus: Array, *, smoothing: str) -> Array:
    """[V] shares with sum 1, above 0 for every known word. Without any count: those of the corpus, or all alike."""
    if smoothing not in SMOOTHINGS:
        raise ValueError(f"smoothing is {smoothing!r}, must be one of {', '.join(SMOOTHINGS)}.")
    base = np.where(np.arange(len(counts)) < FIRST_WORD, 0.0, 1.0)
    if smoothing == JELINEK_MERCER:
        base = corpus + base * 1e-9  # Why: a word of queries that stands in no title
    base = base / base.sum()
    total = counts.sum()
    own = counts / total if total else base
    if smoothing == JELINEK_MERCER:
        return np.asarray(_OWN * own + (1 - _OWN) * base)
    shares = np.where(base > 0, own + _EPSILON, 0)
    return np.asarray(shares / shares.sum())


def measure_users(
    users: Sequence[UserWords], groups: Array, corpus: Array, *, smoothing: str = JELINEK_MERCER
) -> Mapping[str, Array]:
    """{way of searching: [n_users] divergence of each user}."""
    seen = observe(users, groups)
    return {
        way: np.array(
            [
                measure_divergence(user.true, counts, corpus, smoothing=smoothing)
                for user, counts in zip(users, seen[way], strict=True)
            ]
        )
        for way in WAYS
    }
