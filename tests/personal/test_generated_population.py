"""Generated users: repeatable, independent of one another, and worth personalising for."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.personal.log import BACKGROUND, TEST, TRAIN, VALIDATION, SearchLog
from hushrank.personal.population import GeneratedPopulation, population_named
from hushrank.personal.sessions import divide_sessions
from hushrank.personal.shapes import POPULATIONS, WEEK
from hushrank.types import Array

SMALL = "n_documents=1200,median_searches=40"


def assert_same(one: SearchLog, other: SearchLog) -> None:
    for name in ("queries", "times", "sessions", "starts", "documents", "is_clicked"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def average_precision(is_clicked: Array) -> float:
    """Of a list in the order in which it is given."""
    places = np.flatnonzero(is_clicked) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def test_a_user_depends_neither_on_others_nor_on_their_number() -> None:
    few, many = (population_named(f"personal-like:{SMALL},n_users={n},seed=3") for n in (5, 100_000))
    last = few.log_of(4)
    assert_same(last, many.log_of(4))
    assert_same(last, few.log_of(4))
    assert len(many.log_of(99_999).times) > 0


def test_another_seed_gives_other_documents_and_other_users() -> None:
    one, other = (population_named(f"personal-like:{SMALL},seed={seed}") for seed in (3, 4))
    assert (one.collection.titles != other.collection.titles).any()
    assert one.log_of(0).times.tolist() != other.log_of(0).times.tolist()
    assert one.log_of(0).times.tolist() != one.log_of(1).times.tolist()


def test_titles_have_words_of_their_topic_and_of_no_other() -> None:
    population = population_named("personal-like")
    shape, made = population.shape, population.documents
    assert (made.collection.lengths == 9).all()
    first_own = 2 + shape.n_ambiguous
    assert ((made.own - first_own) // shape.n_topic_words == made.topics[:, None]).all()
    topics_of_words = [set(made.topics[(made.ambiguous == word).any(axis=1)]) for word in range(2, first_own)]
    assert {len(topics) for topics in topics_of_words} == {shape.n_senses}


def test_periods_and_times_cover_thirteen_weeks() -> None:
    population = population_named(f"personal-like:{SMALL}")
    assert population.periods.train == 5 * WEEK and population.periods.validation == 11 * WEEK
    assert population.periods.test == 12 * WEEK
    periods = np.concatenate([population.periods.of(population.log_of(user).times) for user in range(20)])
    shares = np.bincount(periods, minlength=4) / len(periods)
    # 5, 6, 1 and 1 of 13 weeks; about 1,000 searches in sessions of 2.5
    assert shares[[BACKGROUND, TRAIN, VALIDATION, TEST]] == pytest.approx(np.array([5, 6, 1, 1]) / 13, abs=0.06)


def test_searches_are_new_ambiguous_and_repeated_as_asked() -> None:
    population = population_named(f"personal-like:{SMALL},n_users=40")
    logs = [population.log_of(user) for user in range(40)]
    is_ambiguous = np.concatenate([log.queries[:, 0] < 2 + population.shape.n_ambiguous for log in logs])
    # standard error with 1,700 searches, in which re-finding repeats: about .015
    assert is_ambiguous.mean() == pytest.approx(0.7, abs=0.05)
    parts = [
        _repeated(f"personal-like:{SMALL},n_users=40,ambiguous_queries=0.0,refinding={part}") for part in (0, 0.25)
    ]
    assert parts[0] < 0.06 and parts[1] - parts[0] == pytest.approx(0.25, abs=0.04)


def _repeated(name: str) -> float:
    """The part of the searches whose query the user had before."""
    population = population_named(name)
    queries = [population.log_of(user).queries for user in range(40)]
    return 1 - sum(len(np.unique(rows, axis=0)) for rows in queries) / sum(map(len, queries))


def test_users_have_about_two_and_a_half_topics() -> None:
    population = population_named(
        "personal-like:n_documents=1200,drift=0.0,refinding=0.0,median_searches=300,n_users=60"
    )
    counts = [np.bincount(population.topics_of(user)[1], minlength=24) for user in range(60)]
    squares = np.mean([((count / count.sum()) ** 2).sum() for count in counts])
    assert 1 / squares == pytest.approx(2.5, abs=0.4)  # standard error of the mean square with 60 users: about .03


def test_an_oracle_of_topics_is_far_above_bm25() -> None:
    population = population_named("personal-like:n_users=30,seed=1002")
    bm25, oracle = [], []
    for user in range(30):
        log, topics = population.topics_of(user)
        for i in np.flatnonzero(population.periods.of(log.times) >= TRAIN):
            clicked, listed = log.is_clicked[log.rows(int(i))], log.documents[log.rows(int(i))]
            is_meant = population.documents.topics[listed] == topics[i]
            bm25.append(average_precision(clicked))
            oracle.append(average_precision(clicked[np.argsort(~is_meant, kind="stable")]))
    assert np.mean(bm25) == pytest.approx(0.33, abs=0.04)  # as the design asks; about 1,800 searches
    assert np.mean(oracle) > 1.4 * np.mean(bm25)


def test_aol_like_lists_are_short_but_in_the_test_period() -> None:
    population = population_named("aol-like")
    log = population.log_of(1)
    is_test = population.periods.of(log.times) == TEST
    assert np.diff(log.starts)[~is_test].max() == 5 and np.diff(log.starts)[is_test].max() > 30
    assert np.add.reduceat(log.is_clicked, log.starts[:-1]).all() and log.dwell is None


def test_commercial_like_clicks_are_satisfied_ones() -> None:
    population = population_named(f"commercial-like:{SMALL}")
    log = population.log_of(1)
    assert log.dwell is not None
    np.testing.assert_array_equal(log.is_clicked, log.dwell > 30)
    assert ((log.dwell > 0) & ~log.is_clicked).any()
    assert population.periods.train == 6 * WEEK and population.periods.test == round((6 + 2 * 5 / 6) * WEEK)


@pytest.mark.parametrize("kind", POPULATIONS)
def test_sessions_come_from_times_and_never_from_what_was_meant(kind: str) -> None:
    population = population_named(f"{kind}:{SMALL}")
    logs = [population.log_of(user) for user in range(5)]
    for log in logs:
        np.testing.assert_array_equal(log.sessions, divide_sessions(log.queries, log.times))
    lengths = np.concatenate([np.bincount(log.sessions) for log in logs])
    assert lengths.mean() == pytest.approx(2.5, abs=0.6)  # about 80 sessions with a standard deviation of 2


def test_a_user_may_have_one_search() -> None:
    population = population_named("personal-like:n_documents=1200,median_searches=1,spread_searches=0.0")
    log = population.log_of(0)
    assert log.n_searches == 1 and log.is_clicked.any()


def test_other_lists_leave_the_searches_as_they_are() -> None:
    one = population_named(f"personal-like:{SMALL}").log_of(2)
    other = population_named(f"personal-like:{SMALL},n_candidates=10,n_short=10,noise=0.5").log_of(2)
    np.testing.assert_array_equal(one.queries, other.queries)
    np.testing.assert_array_equal(one.times, other.times)


@pytest.mark.parametrize("kind", POPULATIONS)
def test_the_name_makes_the_same_population_again(kind: str) -> None:
    population = population_named(f"{kind}:{SMALL},refinding=0.1,seed=9")
    again = population_named(population.name)
    assert again.shape == population.shape and again.seed == 9
    assert population.name.startswith(f"{kind}:n_documents=1200") and "300" in population.description


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("person-like", "no population is called 'person-like'. Did you mean personal-like"),
        ("personal-like:n_user=3", "Did you mean n_users"),
        ("personal-like:n_users=0", "n_users is 0, must be from 1"),
        ("personal-like:n_users=many", "n_users is 'many', must be a whole number"),
        ("personal-like:refinding=1.5", "refinding is 1.5, a part, must be from 0 to 1"),
        ("personal-like:n_ambiguous=3", "a topic has 0 ambiguous words"),
        ("personal-like:background_weeks=13", "background_weeks is 13.0"),
        ("aol-like:n_short=60", "n_candidates >= n_short"),
    ],
)
def test_sizes_that_cannot_be_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        population_named(name)


def test_a_user_beyond_the_last_is_refused() -> None:
    population: GeneratedPopulation = population_named(f"personal-like:{SMALL},n_users=3")
    with pytest.raises(ValueError, match="user 3 is not in the population, users are 0 to 2"):
        population.log_of(3)
