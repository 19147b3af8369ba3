"""Features by hand and by loops; nothing of the future is in them."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pytest

from hushrank.personal.bm25 import make_index
from hushrank.personal.features import (
    FEATURE_GROUPS,
    FEATURES,
    N_FEATURES,
    FeatureSource,
    feature_columns,
    make_features,
    make_source,
)
from hushrank.personal.log import Search, SearchLog, make_collection, make_log, pad_words, slice_log
from hushrank.personal.population import population_named
from hushrank.personal.topics import TopicSpace
from hushrank.personal.vectors import train_vectors
from hushrank.types import Array

WEEK = 7 * 24 * 3600


def hand_source() -> FeatureSource:
    """Words 2 and 3; documents 0 and 1 are of topic 0, documents 2 and 3 of topic 1."""
    collection = make_collection(pad_words([[2], [2, 3], [3], [3, 3]], 50), ("", "?", "w2", "w3"))
    words = np.array([[0, 0], [0, 0], [1, 0], [0, 1]], np.float32)
    documents = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], np.float32)
    return FeatureSource(collection, make_index(collection), TopicSpace(words, documents))


def features_of(log: SearchLog, search: int, document: int) -> dict[str, float]:
    """Of one listed document, by name."""
    rows = log.rows(search)
    row = rows.start + log.documents[rows].tolist().index(document)
    return dict(zip(FEATURES, make_features(hand_source(), log)[row].tolist(), strict=True))


HISTORY = [
    Search(0, (2,), (0, 1, 2), (1,)),
    Search(100, (2, 3), (1, 3), (1,)),
    Search(WEEK, (2,), (2, 1, 0), (1, 0)),
    Search(2 * WEEK, (2,), (3, 1, 0)),
]
LOG = make_log(HISTORY, np.array([0, 0, 1, 2]))


def test_clicks_are_counted_by_session_and_query() -> None:
    last = features_of(LOG, 3, 1)
    assert last["clicks"] == pytest.approx(math.log(1 + 3)) and last["clicks_session"] == 0
    assert last["clicks_same_query"] == pytest.approx(math.log(1 + 2))
    assert last["clicks_similar_query"] == pytest.approx(math.log(1 + 1))  # "2 3" shares a word with "2"
    assert features_of(LOG, 1, 1)["clicks_session"] == pytest.approx(math.log(1 + 1))
    assert last["query_seen"] == pytest.approx(math.log(1 + 2))
    assert last["searches_before"] == pytest.approx(math.log(1 + 3)) and last["searches_in_session"] == 0


def test_a_skip_is_above_a_click() -> None:
    assert features_of(LOG, 2, 0)["skips"] == pytest.approx(math.log(1 + 1))  # above document 1 in the first search
    assert features_of(LOG, 2, 2)["skips"] == 0  # below it
    assert features_of(LOG, 3, 0)["times_listed"] == pytest.approx(math.log(1 + 2))


def test_the_last_click_fades_by_weeks() -> None:
    assert features_of(LOG, 3, 1)["click_recency"] == pytest.approx(math.exp(-1))
    assert features_of(LOG, 2, 1)["click_recency"] == pytest.approx(math.exp(-(WEEK - 100) / WEEK))
    assert features_of(LOG, 3, 3)["click_recency"] == 0


def test_topics_are_those_of_earlier_clicks() -> None:
    log = make_log(
        [
            Search(0, (3,), (2,), (2,)),
            Search(1, (2,), (0, 1), (0, 1)),
            Search(2, (2,), (0, 2), (2,)),
            Search(3, (2,), (0, 2)),
        ],
        np.array([0, 0, 1, 1]),
    )
    # clicked before the third search: topic 1 once, topic 0 twice; before the fourth: twice and twice
    assert features_of(log, 2, 0)["topic_long"] == pytest.approx(2 / 5**0.5)
    assert features_of(log, 2, 0)["topic_short"] == 0
    assert features_of(log, 3, 0)["topic_long"] == pytest.approx(0.5**0.5)
    assert features_of(log, 3, 2)["topic_short"] == 1 and features_of(log, 3, 0)["topic_last"] == 0
    assert features_of(log, 2, 0)["topic_last"] == 1 and features_of(log, 0, 2)["topic_long"] == 0


def test_the_list_tells_the_same_to_everybody() -> None:
    first = features_of(LOG, 1, 1)
    assert first["reciprocal_rank"] == 1 and first["coverage"] == 1 and first["bm25_share"] == 1
    assert first["query_topic"] == pytest.approx(0.5**0.5)  # the query is of both topics, the document of one
    assert features_of(LOG, 1, 3)["coverage"] == 0.5 and features_of(LOG, 1, 3)["reciprocal_rank"] == 0.5
    assert first["title_length"] == pytest.approx(2 / 50)


def test_a_query_of_unknown_words_only_has_its_rank_and_history() -> None:
    log = make_log([Search(0, (1, 1), (0, 1), (0,)), Search(9, (1,), (0,))])
    features = features_of(log, 1, 0)
    assert features["bm25"] == features["coverage"] == features["query_topic"] == features["bm25_share"] == 0
    assert features["unknown_words"] == 1 and features["clicks"] == pytest.approx(math.log(2))
    assert features["clicks_similar_query"] == 0


def test_a_user_without_history_has_noughts() -> None:
    log = make_log([Search(0, (2,), (0, 1))])
    features = make_features(hand_source(), log)
    assert not features[:, feature_columns("clicks", "profile")].any()
    assert make_features(hand_source(), make_log([])).shape == (0, N_FEATURES)


@cache
def generated() -> tuple[FeatureSource, SearchLog]:
    population = population_named("personal-like:n_documents=1200,median_searches=60,spread_searches=0.0,seed=5")
    vectors = train_vectors(population.collection, n_dimensions=20)
    return make_source(population.collection, vectors, n_topics=10), population.log_of(0)


@pytest.mark.parametrize("search", [0, 1, 17, 40])
def test_the_future_changes_nothing(search: int) -> None:
    source, log = generated()
    until = slice_log(log, 0, search + 1)
    past = make_features(source, until)
    np.testing.assert_array_equal(make_features(source, log)[: len(past)], past)
    is_clicked = until.is_clicked.copy()
    is_clicked[until.rows(search)] = ~is_clicked[until.rows(search)]  # the clicks of the search itself, too
    np.testing.assert_array_equal(make_features(source, dataclasses.replace(until, is_clicked=is_clicked)), past)


def test_only_the_last_searches_are_made_where_asked() -> None:
    source, log = generated()
    np.testing.assert_array_equal(make_features(source, log, first=50), make_features(source, log)[log.starts[50] :])


def test_counts_are_those_of_a_loop_over_searches() -> None:
    source, log = generated()
    counted = make_features(source, log)
    for name, values in count_by_loops(log).items():
        assert counted[:, FEATURES.index(name)] == pytest.approx(np.log1p(values))


def count_by_loops(log: SearchLog) -> dict[str, Array]:
    """One search after the other, one document after the other."""
    names = ("clicks", "clicks_session", "clicks_same_query", "clicks_similar_query", "skips", "skips_same_query")
    counts: dict[str, list[int]] = {name: [] for name in names}
    queries = [tuple(sorted(word for word in row if word)) for row in log.queries.tolist()]
    events: list[tuple[int, int, bool]] = []  # search, document, whether it was clicked and not skipped
    for i in range(log.n_searches):
        listed, clicked = log.documents[log.rows(i)].tolist(), log.is_clicked[log.rows(i)].tolist()
        for document in listed:
            mine = [(j, is_click) for j, other, is_click in events if other == document]
            clicks, skips = ([j for j, is_click in mine if is_click == kind] for kind in (True, False))
            counts["clicks"].append(len(clicks))
            counts["clicks_session"].append(sum(log.sessions[j] == log.sessions[i] for j in clicks))
            counts["clicks_same_query"].append(sum(queries[j] == queries[i] for j in clicks))
            others = [j for j in clicks if queries[j] != queries[i]]
            counts["clicks_similar_query"].append(sum(bool({*queries[j]} & {*queries[i]}) for j in others))
            counts["skips"].append(len(skips))
            counts["skips_same_query"].append(sum(queries[j] == queries[i] for j in skips))
        lowest = max((place for place, is_click in enumerate(clicked) if is_click), default=-1)
        seen = [(d, c) for place, (d, c) in enumerate(zip(listed, clicked, strict=True)) if c or place < lowest]
        events += [(i, document, is_click) for document, is_click in seen]
    return {name: np.array(values) for name, values in counts.items()}


def test_groups_name_their_columns() -> None:
    assert feature_columns(*FEATURE_GROUPS).tolist() == list(range(N_FEATURES))
    assert FEATURES[feature_columns("profile")[0]] == "topic_long"
    with pytest.raises(ValueError, match=r"no features are called 'clickz'\. Choose from list, clicks, profile"):
        feature_columns("clickz")
