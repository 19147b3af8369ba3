"""Word vectors from titles, clusters of them, and what a user begins with."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hushrank.personal.log import TEST, Collection, Search, make_collection, make_log, pad_words, slice_log
from hushrank.personal.population import GeneratedPopulation, population_named
from hushrank.personal.topics import make_topics, mix_words
from hushrank.personal.vectors import _make_ppmi, find_words, scale_rows, start_personal, train_vectors
from hushrank.types import Array

# Two groups of words that never meet: 2 to 4 and 5 to 7. Word 8 stands alone.
TITLES = [[2, 3], [3, 4], [2, 4], [5, 6], [6, 7], [5, 7], [8]] * 3
SMALL = make_collection(pad_words(TITLES, 50), ("", "?", *(f"w{i}" for i in range(2, 9))))


@cache
def generated() -> tuple[Collection, Array]:
    population = population_named("personal-like:n_documents=2400")
    return population.collection, train_vectors(population.collection)


def test_words_of_the_same_titles_are_alike() -> None:
    vectors = train_vectors(SMALL, n_dimensions=2)
    cosines = vectors @ vectors.T
    assert cosines[2:5, 2:5] == pytest.approx(np.ones((3, 3)), abs=1e-5)
    assert abs(cosines[2:5, 5:8]).max() < 1e-5
    assert not vectors[[0, 1, 8]].any()


def test_vectors_have_length_one_and_the_same_bits_every_time() -> None:
    collection, vectors = generated()
    assert vectors.shape == (collection.n_words, 100) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors[2:], axis=1) == pytest.approx(np.ones(collection.n_words - 2), abs=1e-5)
    np.testing.assert_array_equal(vectors, train_vectors(collection))


def test_words_of_a_topic_are_nearer_than_words_of_two() -> None:
    _, vectors = generated()
    first = 2 + 120  # the words of topic 0, then those of topic 1
    cosines = vectors[first : first + 120] @ vectors[first : first + 120].T
    assert cosines[:60, :60].mean() > 0.3 > 0.1 > abs(cosines[:60, 60:].mean())


def test_the_sparse_and_the_dense_factors_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    few = "n_documents=800,n_topics=6,n_topic_words=20,n_common=20,n_ambiguous=24,n_senses=3"
    collection = population_named(f"personal-like:{few}").collection
    sparse = train_vectors(collection, n_dimensions=24)  # of 164 words: few enough of many for the sparse method
    dense = np.linalg.svd(_make_ppmi(collection).toarray())
    monkeypatch.setattr("hushrank.personal.vectors._factorise", lambda _, k: (dense[0][:, :k], dense[1][:k]))
    other = train_vectors(collection, n_dimensions=24)
    # Why cosines: signs of factors, and rotations of equal ones, are arbitrary
    assert sparse @ sparse.T == pytest.approx(other @ other.T, abs=1e-4)


def test_no_known_word_gives_noughts() -> None:
    assert not train_vectors(make_collection(np.ones((2, 50)), ("", "?")), n_dimensions=5).any()
    empty = make_collection(np.zeros((0, 50)), ("", "?", "w2", "w3"))
    vectors = train_vectors(empty, n_dimensions=5)
    assert vectors.shape == (4, 5) and not vectors.any()
    assert make_topics(empty, vectors, n_topics=3).documents.shape == (0, 3)


def test_topics_tell_groups_of_words_apart() -> None:
    vectors = train_vectors(SMALL, n_dimensions=2)
    topics = make_topics(SMALL, vectors, n_topics=2)
    products = topics.documents[:6] @ topics.documents[:6].T
    assert products[:3, :3].min() > 0.9 and products[:3, 3:].max() < 0.1
    assert not topics.documents[6].any()  # its word is in no cluster
    assert not mix_words(topics.words, pad_words([[1, 1]], 20)).any()


def test_generated_topics_are_found() -> None:
    population = population_named("personal-like:n_documents=2400")
    collection, vectors = generated()
    mix = make_topics(collection, vectors).documents
    same = population.documents.topics[:, None] == population.documents.topics[None, :300]
    cosines = mix @ mix[:300].T
    assert cosines[same].mean() > 3 * cosines[~same].mean()


def test_a_user_begins_with_everybodys_vectors_of_their_own_words() -> None:
    log = make_log([Search(0, (2, 1), (3, 4), (3,)), Search(5, (8,), (0,))])
    vectors = train_vectors(SMALL, n_dimensions=2)
    assert find_words(log, SMALL).tolist() == [2, 5, 6, 8]  # queries, and the clicked title [5, 6]
    np.testing.assert_array_equal(start_personal(vectors, log, SMALL), vectors[[2, 5, 6, 8]])


def test_own_clicks_move_a_word_towards_what_was_meant() -> None:
    vectors = train_vectors(SMALL, n_dimensions=2)
    log = make_log([Search(i, (2,), (3,), (3,)) for i in range(5)])  # word 2, for titles of the other group
    words, start = find_words(log, SMALL), start_personal(vectors, log, SMALL, from_log=True)
    title = vectors[5] + vectors[6]
    moved = start[words.tolist().index(2)]
    # five clicks: half-way between two directions at right angles, so 45 degrees from each
    assert moved @ vectors[2] == pytest.approx(0.5**0.5, abs=1e-5)
    assert moved @ title / np.linalg.norm(title) == pytest.approx(0.5**0.5, abs=1e-5)
    np.testing.assert_array_equal(start[words.tolist().index(5)], vectors[5])


def test_an_empty_log_has_no_words() -> None:
    vectors = train_vectors(SMALL, n_dimensions=2)
    assert start_personal(vectors, make_log([]), SMALL, from_log=True).shape == (0, 2)


def test_a_users_own_start_ranks_better_than_everybodys_where_words_are_ambiguous() -> None:
    population = population_named("personal-like:n_users=40,n_documents=4000,refinding=0.05,seed=1005")
    vectors = train_vectors(population.collection)
    pairs = np.concatenate([compare_starts(population, user, vectors) for user in range(40)])
    gain = pairs[:, 1] - pairs[:, 0]
    assert gain.mean() > 3 * gain.std(ddof=1) / len(gain) ** 0.5  # a paired test over about 400 searches: p < .002


def compare_starts(population: GeneratedPopulation, user: int, vectors: Array) -> Array:
    """[n, 2] reciprocal rank of the first click in each test search, by cosine with either vectors of the query."""
    log, titles = population.log_of(user), population.collection.titles
    n_past = int((population.periods.of(log.times) < TEST).sum())
    past = slice_log(log, 0, n_past)
    own = vectors.copy()
    own[find_words(past, population.collection)] = start_personal(vectors, past, population.collection, from_log=True)
    ranks = []
    for i in range(n_past, log.n_searches):
        documents = scale_rows(vectors[titles[log.documents[log.rows(i)]]].sum(axis=1))
        scores = [documents @ table[log.queries[i]].sum(axis=0) for table in (vectors, own)]
        orders = [log.is_clicked[log.rows(i)][np.argsort(-score, kind="stable")] for score in scores]
        ranks.append([1 / (1 + int(np.argmax(order))) for order in orders])
    return np.array(ranks).reshape(-1, 2)
