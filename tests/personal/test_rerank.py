"""Personal re-ranking on a device: the lab's features from a local log, without the whole collection or JAX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hushrank.metrics.clicked import measure_clicked
from hushrank.personal.features import N_FEATURES, FeatureSource, make_features, make_source
from hushrank.personal.log import TEST, SearchLog
from hushrank.personal.population import GeneratedPopulation, population_named
from hushrank.personal.queries.local_log import FoundDocument, LoggedSearch, SharedWords, share_words
from hushrank.personal.queries.rerank import MOST_SEARCHES, PersonalRanker
from hushrank.personal.vectors import train_vectors


@pytest.fixture(scope="module")
def population() -> GeneratedPopulation:
    return population_named("personal-like:n_users=12,n_documents=400,median_searches=90,seed=5")


@pytest.fixture(scope="module")
def source(population: GeneratedPopulation) -> FeatureSource:
    return make_source(population.collection, train_vectors(population.collection, n_dimensions=20))


def as_local(source: FeatureSource, log: SearchLog) -> list[LoggedSearch]:
    """A lab's log as a device would have written it."""
    words, titles = source.collection.words, source.collection.titles
    found = []
    for search in range(log.n_searches):
        rows = log.rows(search)
        listed = [FoundDocument(f"d{d}", " ".join(words[w] for w in titles[d] if w)) for d in log.documents[rows]]
        clicked = tuple(f"d{d}" for d in log.documents[rows][log.is_clicked[rows]])
        query = " ".join(words[word] for word in log.queries[search] if word)
        shown = tuple(each.name for each in listed)
        found.append(LoggedSearch(int(log.times[search]), query, tuple(listed), shown, clicked))
    return found


def test_features_on_a_device_are_those_of_the_lab_bit_for_bit(
    population: GeneratedPopulation, source: FeatureSource
) -> None:
    ranker = PersonalRanker(share_words(source))
    for user in range(3):
        log = population.log_of(user)
        local, lab = as_local(source, log), make_features(source, log)
        for search in (0, 1, log.n_searches // 2, log.n_searches - 1):
            now = local[search]
            ours = ranker.features(local[:search], now.query, now.general, time=now.time)
            np.testing.assert_array_equal(ours, lab[log.rows(search)])


def test_the_starting_ranker_serves_clicks_better_than_the_engines_order(
    population: GeneratedPopulation, source: FeatureSource
) -> None:
    ranker, ours, theirs = PersonalRanker(share_words(source)), list[float](), list[float]()
    for user in range(12):
        log = population.log_of(user)
        local = as_local(source, log)
        for search in np.flatnonzero(population.periods.of(log.times) == TEST).tolist():
            now, is_clicked = local[search], log.is_clicked[log.rows(search)][None]
            order = ranker.rank(local[:search], now.query, now.general, time=now.time)
            for scores, found in ((-np.argsort(order)[None], ours), (np.zeros(is_clicked.shape), theirs)):
                found += measure_clicked(scores, is_clicked, np.ones_like(is_clicked)).average_precision.tolist()
    assert len(ours) > 50 and np.mean(ours) > np.mean(theirs) + 0.05


def test_what_is_forgotten_in_the_log_is_forgotten_in_the_order(
    population: GeneratedPopulation, source: FeatureSource
) -> None:
    ranker = PersonalRanker(share_words(source))
    log = population.log_of(0)
    local = as_local(source, log)
    now = local[-1]
    with_all, with_none = (ranker.features(past, now.query, now.general, time=now.time) for past in (local[:-1], []))
    assert (with_all != with_none).any()
    again = PersonalRanker(share_words(source)).features([], now.query, now.general, time=now.time)
    np.testing.assert_array_equal(with_none, again)


def test_a_long_log_counts_by_its_latest_searches(source: FeatureSource) -> None:
    ranker = PersonalRanker(share_words(source))
    listed = (FoundDocument("a", "one"), FoundDocument("b", "two"))
    old, new = (LoggedSearch(t, f"q{t}", listed, ("a", "b"), ("b",)) for t in (0, 1))
    long = [old, *[new] * MOST_SEARCHES]
    now = {"query": "word", "documents": listed, "time": 9}
    np.testing.assert_array_equal(ranker.features(long, **now), ranker.features(long[1:], **now))  # type: ignore[arg-type]


def test_unknown_words_an_empty_list_and_wrong_weights(source: FeatureSource) -> None:
    shared = share_words(source)
    ranker = PersonalRanker(shared)
    assert ranker.rank([], "nobody knows this", [], time=1).tolist() == []
    listed = [FoundDocument("a", "nobody"), FoundDocument("b", "")]
    assert sorted(ranker.rank([], "nobody knows", listed, time=1).tolist()) == [0, 1]
    assert ranker.explain(np.ones((2, N_FEATURES))).sum(axis=1) == pytest.approx([ranker.weights.sum()] * 2)
    with pytest.raises(ValueError, match=r"must be 23 finite numbers"):
        PersonalRanker(shared, np.full(N_FEATURES, np.nan))
    with pytest.raises(ValueError, match="must be equally many"):
        SharedWords(shared.words[:-1], shared.document_frequency, 1, 1.0, shared.topics)


@pytest.mark.parametrize("clicked", ["quockerwodger", "c"])
def test_a_click_on_what_was_not_listed_is_refused_without_its_name(source: FeatureSource, clicked: str) -> None:
    """Listed nowhere, or by another search alone."""
    listed = (FoundDocument("a", "one"), FoundDocument("b", "two"))
    past = [
        LoggedSearch(0, "q", (*listed, FoundDocument("c", "three")), ("a", "b", "c")),
        LoggedSearch(1, "q", listed, ("a", "b"), (clicked,)),
    ]
    with pytest.raises(ValueError, match="search 1: a click on a document that was not listed") as caught:
        PersonalRanker(share_words(source)).rank(past, "word", listed, time=9)
    assert "quockerwodger" not in repr(caught.value) and caught.value.__context__ is None


def test_re_ranking_loads_no_jax_and_nothing_else_that_is_heavy() -> None:
    script = (
        "import sys, hushrank.personal.queries.rerank, hushrank.live.queries.search\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert not set(loaded) & {"jax", "jaxlib", "scipy", "sklearn", "numba", "starlette", "uvicorn", "cryptography"}
