"""An engine that remembers: covers hide one query, and many of them hide less."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.leaks.cover_model import describe_texts, fit_logistic, guess_trained
from hushrank.leaks.covers import guess_queries
from hushrank.personal.population import population_named
from hushrank.privacy.cover_topics import CoverTopics, fit_topics
from hushrank.privacy.covers import draw_covers
from hushrank.streams import seed_key, stream

TOPICS = CoverTopics(np.array([[0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 0.5, 0.5]]), np.full(2, 0.5), prior=0.1)


def test_one_search_alone_or_one_search_repeated_is_a_guess_by_chance() -> None:
    queries, covers = np.array([[2]] * 3), np.array([[[4]]] * 3)
    assert guess_queries(TOPICS, queries[:1], covers[:1]).tolist() == [0.5]
    assert guess_queries(TOPICS, queries, covers).tolist() == [0.5] * 3


def test_whoever_comes_back_to_one_topic_is_found_among_covers_of_changing_ones() -> None:
    """Queries of topic 0 each time; one cover of topic 0 by mistake: the sets say 3 to 1 for topic 0."""
    queries, covers = np.array([[2], [3]]), np.array([[[4]], [[2]]])
    assert guess_queries(TOPICS, queries, covers).tolist() == [1.0, 0.5]


def test_the_logistic_model_meets_the_odds_worked_by_hand() -> None:
    """Three of four differences are +1: the weight is log(3 / 1), a little less for the ridge."""
    (weight,) = fit_logistic(np.array([[1.0], [1.0], [1.0], [-1.0]]))
    assert weight == pytest.approx(np.log(3), rel=0.01)


def test_what_a_trained_engine_sees_of_a_text_is_worked_by_hand() -> None:
    """Title [2, 3] holds both words of the query; no title holds both of the cover, and three hold one."""
    titles, queries, covers = np.array([[2, 3], [2, 4], [5, 3], [4, 0]]), np.array([[2, 3]]), np.array([[[4, 5]]])
    (seen,) = describe_texts(TOPICS, titles, [queries], [covers])
    assert seen[0, :, 4:6].tolist() == [[1.0, np.log(2)], [0.5, np.log(4)]]
    assert seen[0, :, 6:8].tolist() == [[0.0, 0.0]] * 2  # one id has sent both


def test_a_trained_engine_needs_no_memory_where_titles_tell_queries_from_covers() -> None:
    """Words of a query stand in one title, those of a cover never do: one search is enough."""
    titles = np.array([[2, 3], [4, 5]])
    queries = [np.array([[2, 3]]), np.array([[4, 5]])] * 2
    covers = [np.array([[[2, 5]]]), np.array([[[4, 3]]])] * 2
    for remembers in (True, False):
        assert guess_trained(TOPICS, titles, queries, covers, n_known=2, remembers=remembers).tolist() == [1.0, 1.0]


@pytest.mark.slow
def test_on_generated_users_an_engine_that_remembers_beats_chance_by_far() -> None:
    """What the documentation says of covers: they are no guarantee."""
    users = population_named("aol-like:n_users=30,seed=3")
    topics = fit_topics(users.collection.titles, users.collection.n_words, key=seed_key(1))
    rates = []
    for user in range(30):
        queries = users.log_of(user).queries
        rates.append(guess_queries(topics, queries, draw_covers(topics, queries, key=stream(seed_key(5), user))).mean())
    assert np.mean(rates) > 0.65
