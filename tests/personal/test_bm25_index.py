"""BM25 from the inverted index against loops over titles; ties, unknown words, sizes, blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from seeds import pick_seed

from hushrank.personal import bm25
from hushrank.personal.bm25 import find_candidates, make_index, score_pairs
from hushrank.personal.log import Collection, make_collection, pad_words

WORDS = ("", "?", *(f"w{i}" for i in range(2, 12)))


def random_collection(n_documents: int, seed: int) -> Collection:
    draw = np.random.default_rng(seed)
    texts = [draw.integers(1, 12, size=draw.integers(1, 15)).tolist() for _ in range(n_documents)]
    return make_collection(pad_words(texts, 50), WORDS)


def score_by_loops(collection: Collection, query: list[int], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """Each title in turn, from the definition alone."""
    titles = [[int(w) for w in row if w] for row in collection.titles]
    mean = sum(map(len, titles)) / len(titles)
    scores = []
    for title in titles:
        score = 0.0
        for word in query:
            df = sum(word in other for other in titles)
            tf = title.count(word)
            if word >= 2:
                idf = math.log(1 + (len(titles) - df + 0.5) / (df + 0.5))
                score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(title) / mean))
        scores.append(score)
    return scores


@pytest.mark.randomised
def test_the_index_ranks_as_loops_over_all_titles_do() -> None:
    collection = random_collection(40, pick_seed(1))
    queries = [[2, 3], [5], [7, 7, 4], [1, 9], [11, 10, 2, 6]]
    found = find_candidates(make_index(collection), pad_words(queries, 20), 8)
    for i, query in enumerate(queries):
        scores = score_by_loops(collection, query)
        ranked = sorted((d for d in range(40) if scores[d] > 0), key=lambda d: (-round(scores[d], 9), d))[:8]
        rows = slice(found.starts[i], found.starts[i + 1])
        assert found.documents[rows].tolist() == ranked
        assert found.scores[rows] == pytest.approx([scores[d] for d in ranked])


@pytest.mark.randomised
def test_given_pairs_are_scored_as_by_loops() -> None:
    collection = random_collection(30, pick_seed(2))
    query, documents = [3, 1, 8, 3], np.arange(30)
    scores, n_matched = score_pairs(make_index(collection), pad_words([query] * 30, 20), documents)
    assert scores == pytest.approx(score_by_loops(collection, query))
    assert n_matched.tolist() == [sum(w >= 2 and w in row for w in query) for row in collection.titles.tolist()]


def test_equal_scores_are_ordered_by_document_number() -> None:
    collection = make_collection(pad_words([[2, 3]] * 6, 50), WORDS)
    assert find_candidates(make_index(collection), pad_words([[3]], 20), 4).documents.tolist() == [0, 1, 2, 3]


def test_each_query_may_ask_for_another_number() -> None:
    index = make_index(random_collection(40, 3))
    found = find_candidates(index, pad_words([[2], [2], [2]], 20), np.array([1, 5, 0]))
    assert np.diff(found.starts).tolist() == [1, 5, 0]


def test_unknown_words_find_nothing() -> None:
    index = make_index(make_collection(pad_words([[1, 2], [1, 1]], 50), WORDS))
    found = find_candidates(index, pad_words([[1, 1], [], [1, 2], [500]], 20), 9)
    assert np.diff(found.starts).tolist() == [0, 0, 1, 0]


def test_nothing_to_search_in_and_nothing_asked() -> None:
    empty = make_index(make_collection(np.zeros((0, 50)), WORDS))
    assert find_candidates(empty, pad_words([[2, 3]], 20), 5).starts.tolist() == [0, 0]
    assert find_candidates(make_index(random_collection(3, 4)), pad_words([], 20), 5).starts.tolist() == [0]


def test_the_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = make_index(random_collection(40, 5))
    queries = pad_words([[2, 3], [4], [5, 6, 7], [1], [8]], 20)
    whole = find_candidates(index, queries, 10)
    monkeypatch.setattr(bm25, "_BLOCK_POSTINGS", 7)
    for one, other in zip(find_candidates(index, queries, 10), whole, strict=True):
        np.testing.assert_array_equal(one, other)
