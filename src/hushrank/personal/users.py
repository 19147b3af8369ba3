"""One generated user: interests that drift, sessions, queries, lists, clicks. A user depends on their own key alone.

The utility of a listed document for a search that means topic t (a choice of ours; the paper has no generated users):

    3 [topic is t] + 2.5 (part of the query's words in the title) + quality - .25 log2(rank + 1) + .6 Gumbel

The best one is clicked, with a small probability any other. A search for something found before repeats an earlier
query, and the document clicked then is worth more. Every draw i of a purpose depends on i alone, so a shape with other
lists or clicks has the same searches. Shapes: n searches of the user, m listed documents in all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.personal.bm25 import Candidates, find_candidates
from hushrank.personal.documents import GeneratedDocuments
from hushrank.personal.lists import keep_top
from hushrank.personal.log import N_QUERY_WORDS, TEST, SearchLog
from hushrank.personal.sessions import PAUSE_SECONDS
from hushrank.personal.shapes import PopulationShape
from hushrank.streams import draw_normal, draw_uniform, fold_in, stream
from hushrank.types import Array

# What a stream of one person belongs to; a number is never reused or changed.
_ACTIVITY, _INTERESTS, _SEARCH, _GUMBEL, _CLICK, _DWELL = 1, 2, 3, 4, 5, 6
_N_DRAWS = 14  # of one search, by the names below
(_BORDER, _START, _GAP, _TOPIC, _MOVE, _AGAIN, _SOURCE, _TARGET, _KIND, _TWO, _FIRST, _SECOND, _PLAIN, _OTHER) = range(
    _N_DRAWS
)
_WEEK = 7 * 24 * 3600
_MEAN_GAP = 120.0  # seconds between searches of a session
_MOST_WORDS = 3  # of a query
SATISFIED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Searches:
    """What a user wants, before anything is found."""

    times: Array  # [n] int64
    sessions: Array  # [n] int64, by pauses
    topics: Array  # [n] what is meant
    sources: Array  # [n] the search that is repeated, or itself
    queries: Array  # [n, 20] int32


def make_user_log(shape: PopulationShape, documents: GeneratedDocuments, key: Array) -> tuple[SearchLog, Array]:
    """The log of one user, and the topic [n] that was meant by each search."""
    searches = _draw_searches(shape, documents, key)
    found = _list_documents(shape, documents, searches)
    clicked, dwell = _click(shape, documents, searches, found, key)
    sessions = searches.sessions
    if shape.by_topic:
        is_border = (np.diff(sessions) > 0) | (np.diff(searches.topics) != 0)
        sessions = np.concatenate([[0], np.cumsum(is_border)])
    sizes = np.where(shape.periods.of(searches.times) == TEST, shape.n_candidates, shape.n_short)
    kept = keep_top(found.starts, clicked, sizes)
    log = SearchLog(
        queries=searches.queries,
        times=searches.times,
        sessions=sessions.astype(np.int32),
        starts=np.concatenate([[0], np.cumsum(np.add.reduceat(kept.astype(np.int64), found.starts[:-1]))]),
        documents=found.documents[kept],
        is_clicked=clicked[kept],
        dwell=None if dwell is None else dwell[kept],
    )
    return log, searches.topics


def _draw_searches(shape: PopulationShape, documents: GeneratedDocuments, key: Array) -> _Searches:
    z = float(draw_normal(stream(key, _ACTIVITY), 1)[0])
    n = int(np.clip(np.rint(shape.median_searches * np.exp(shape.spread_searches * z)), 1, shape.most_searches))
    draws = draw_uniform(fold_in(stream(key, _SEARCH), np.arange(n)), _N_DRAWS).astype(np.float64).T
    times, sessions = _draw_times(shape, draws)
    topics = _draw_topics(shape, key, draws, times, sessions)
    is_again = draws[_AGAIN] < shape.refinding
    is_again[0] = False
    new = np.flatnonzero(~is_again)
    n_before = np.searchsorted(new, np.arange(n))
    sources = np.where(is_again, new[(draws[_SOURCE] * np.maximum(n_before, 1)).astype(np.int64)], np.arange(n))
    queries = _draw_queries(shape, documents, draws, topics)
    return _Searches(times, sessions, topics[sources], sources, queries[sources])


def _draw_times(shape: PopulationShape, draws: Array) -> tuple[Array, Array]:
    """Seconds and session of each search: sessions begin anywhere in the weeks, and never run into one another."""
    is_head = draws[_BORDER] < 1 / shape.mean_session
    is_head[0] = True
    heads = np.flatnonzero(is_head)
    gaps = np.where(is_head, 0, np.minimum(5 - _MEAN_GAP * np.log(draws[_GAP]), PAUSE_SECONDS - 60))
    within = np.cumsum(gaps) - np.repeat(np.cumsum(gaps)[heads], np.diff([*heads, len(gaps)]))
    lengths = within[np.append(heads[1:], len(gaps)) - 1] + PAUSE_SECONDS + 60
    earlier = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    starts = np.sort(draws[_START, heads]) * shape.weeks * _WEEK
    starts = np.maximum.accumulate(starts - earlier) + earlier
    sessions = np.cumsum(is_head) - 1
    return np.floor(starts[sessions] + within).astype(np.int64), sessions


def _draw_topics(shape: PopulationShape, key: Array, draws: Array, times: Array, sessions: Array) -> Array:
    """[n] one topic per session, from the user's interests at that time; now and then another one within it."""
    before, after = (_draw_interests(shape, stream(key, _INTERESTS, moment)) for moment in (0, 1))
    moved = shape.drift * np.minimum(times / (shape.weeks * _WEEK), 1)
    is_drawn = (np.diff(sessions, prepend=-1) > 0) | (draws[_MOVE] < shape.change_of_topic)
    shares = np.cumsum((1 - moved)[:, None] * before + moved[:, None] * after, axis=1)
    drawn = (draws[_TOPIC][:, None] * shares[:, -1:] > shares).sum(axis=1)
    last_drawn = np.maximum.accumulate(np.where(is_drawn, np.arange(len(drawn)), 0))
    return np.asarray(drawn[last_drawn])


def _draw_interests(shape: PopulationShape, key: Array) -> Array:
    """[n_topics] shares: a Dirichlet law's sticks, broken off by Beta(1, c) and given to topics in random order.

    Why sticks: a Dirichlet law with few topics needs gamma draws of tiny shape, sticks only powers of uniform draws.
    The expected sum of squared shares is 1 / (1 + c), so c = mean_topics - 1.
    """
    draws = draw_uniform(key, 2 * shape.n_topics).astype(np.float64)
    left = np.cumprod(draws[: shape.n_topics] ** (1 / (shape.mean_topics - 1)))
    sticks = -np.diff(left, prepend=1.0)
    sticks[-1] += left[-1]
    shares = np.empty(shape.n_topics)
    shares[np.argsort(draws[shape.n_topics :], kind="stable")] = sticks
    return shares


def _draw_queries(shape: PopulationShape, documents: GeneratedDocuments, draws: Array, topics: Array) -> Array:
    """[n, 20] words of a title of the meant topic.

    Ambiguous: one word with several senses, sometimes two, sometimes a common one. Clear: two words of the topic, and
    sometimes an ambiguous one.
    """
    first, stop = documents.topic_starts[topics], documents.topic_starts[topics + 1]
    targets = documents.of_topic[first + (draws[_TARGET] * (stop - first)).astype(np.int64)]
    is_ambiguous = draws[_KIND] < shape.ambiguous_queries
    has_two, has_common = draws[_TWO] < shape.more_words, draws[_PLAIN] < shape.more_words
    ambiguous, second = _pick_two(documents.ambiguous[targets], draws[_FIRST])
    own, own_second = _pick_two(documents.own[targets], draws[_SECOND])
    common = documents.common[targets, (draws[_OTHER] * shape.common_per_title).astype(np.int64)]
    words = np.where(
        is_ambiguous,
        [ambiguous, np.where(has_two, second, 0), np.where(has_common, common, 0)],
        [own, own_second, np.where(has_two, ambiguous, 0)],
    ).T
    queries = np.zeros((len(topics), N_QUERY_WORDS), dtype=np.int32)
    order = np.argsort(words == 0, axis=1, kind="stable")
    queries[:, :_MOST_WORDS] = np.take_along_axis(words, order, axis=1)
    return queries


def _pick_two(words: Array, draws: Array) -> tuple[Array, Array]:
    """A word of each row, and the next one; the second is 0 where a row has one word only."""
    n = words.shape[1]
    place = (draws * n).astype(np.int64)
    rows = np.arange(len(words))
    return words[rows, place], words[rows, (place + 1) % n] if n > 1 else np.zeros(len(words), np.int32)


def _list_documents(shape: PopulationShape, documents: GeneratedDocuments, searches: _Searches) -> Candidates:
    """The general engine's lists: the same query has the same list."""
    codes = searches.queries[:, :_MOST_WORDS].astype(np.int64) @ (shape.n_words ** np.arange(_MOST_WORDS))
    _, new, back = np.unique(codes, return_index=True, return_inverse=True)
    found = find_candidates(documents.index, searches.queries[new], shape.n_candidates)
    owners = np.repeat(np.arange(len(new)), np.diff(found.starts))
    scores = found.scores + shape.engine_quality * documents.quality[found.documents]
    order = np.lexsort((np.arange(len(owners)), -scores, owners)) if shape.engine_quality else np.arange(len(owners))
    lengths = np.diff(found.starts)[back]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = order[np.repeat(found.starts[back] - starts[:-1], lengths) + np.arange(starts[-1])]
    return Candidates(starts, found.documents[places], scores[places])


def _click(
    shape: PopulationShape, documents: GeneratedDocuments, searches: _Searches, found: Candidates, key: Array
) -> tuple[Array, Array | None]:
    """[m] satisfied clicks, and [m] seconds on clicked documents where the shape has them."""
    n = len(searches.times)
    lengths = np.diff(found.starts)
    owners = np.repeat(np.arange(n), lengths)
    ranks = np.arange(len(owners)) - found.starts[owners]
    gumbel = draw_uniform(fold_in(stream(key, _GUMBEL), np.arange(n)), shape.n_candidates).astype(np.float64)
    utility = _utility(shape, documents, searches, found, owners, ranks)
    utility += shape.taste * -np.log(-np.log(gumbel[owners, ranks]))
    choices = draw_uniform(fold_in(stream(key, _CLICK), np.arange(n)), 3).astype(np.float64)
    is_new = searches.sources == np.arange(n)
    chosen = _choose_best(utility, found.starts, choices, lengths, shape)
    # Why twice: what is looked for again is known once the new searches have their clicks.
    places = np.repeat(found.starts[searches.sources], lengths) + ranks
    again = _choose_best(utility + shape.again * chosen[places], found.starts, choices, lengths, shape)
    clicked = np.where(is_new[owners], chosen, again)
    if not shape.with_dwell:
        return clicked, None
    matches = documents.topics[found.documents] == searches.topics[owners]
    normal = draw_normal(fold_in(stream(key, _DWELL), np.arange(n)), shape.n_candidates)[owners, ranks]
    dwell = np.where(clicked, np.where(matches, 120.0, 12.0) * np.exp(0.7 * normal), 0).astype(np.float32)
    return dwell > SATISFIED_SECONDS, dwell


def _utility(
    shape: PopulationShape,
    documents: GeneratedDocuments,
    searches: _Searches,
    found: Candidates,
    owners: Array,
    ranks: Array,
) -> Array:
    """[m] without noise and without what was found before."""
    titles = documents.collection.titles[found.documents, : shape.title_length]
    queries = searches.queries[:, :_MOST_WORDS]
    is_covered = [(titles == words[owners, None]).any(axis=1) & (words > 0)[owners] for words in queries.T]
    n_words = np.count_nonzero(queries, axis=1)[owners]
    matches = documents.topics[found.documents] == searches.topics[owners]
    return np.asarray(
        shape.topic_match * matches
        + shape.coverage * np.sum(is_covered, axis=0) / n_words
        + documents.quality[found.documents]
        - shape.position * np.log2(ranks + 2)
    )


def _choose_best(utility: Array, starts: Array, choices: Array, lengths: Array, shape: PopulationShape) -> Array:
    """[m] True for the best document of each list, or for any one; sometimes for the second best, too."""
    rows = np.arange(len(lengths))
    owners = np.repeat(rows, lengths)
    table = np.full((len(lengths), shape.n_candidates), -np.inf)
    table[owners, np.arange(len(owners)) - starts[owners]] = utility
    is_any = choices[:, 0] < shape.noise
    first = np.where(is_any, (choices[:, 1] * lengths).astype(np.int64), np.argmax(table, axis=1))
    table[rows, first] = -np.inf
    clicked = np.zeros(len(utility), dtype=bool)
    clicked[starts[:-1] + first] = True
    two = np.flatnonzero((choices[:, 2] < shape.second_click) & (lengths > 1))
    clicked[starts[two] + np.argmax(table[two], axis=1)] = True
    return clicked
