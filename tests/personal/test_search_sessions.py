"""Sessions end after a pause or where queries differ."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.personal.log import pad_words
from hushrank.personal.sessions import compare_neighbours, divide_sessions


def test_half_an_hour_without_a_search_ends_a_session() -> None:
    times = np.array([0, 1799, 1799 + 1800, 9000])
    assert divide_sessions(pad_words([[2]] * 4, 20), times).tolist() == [0, 0, 1, 2]


def test_unlike_queries_are_in_different_sessions() -> None:
    queries = pad_words([[2, 3], [3, 4], [4, 5, 6, 7, 8], [4, 5, 6, 7, 8]], 20)
    # cosines: 1/2, 1/sqrt(2 * 5), 1
    assert compare_neighbours(queries) == pytest.approx([0.5, 10**-0.5, 1])
    assert divide_sessions(queries, np.zeros(4), least_similarity=0.5).tolist() == [0, 0, 1, 1]


def test_vectors_see_that_other_words_mean_the_same() -> None:
    vectors = np.zeros((5, 2))
    vectors[2], vectors[3], vectors[4] = [1, 0], [1, 0.1], [0, 1]
    queries = pad_words([[2], [3], [4]], 20)
    assert divide_sessions(queries, np.zeros(3), least_similarity=0.5).tolist() == [0, 1, 2]
    assert divide_sessions(queries, np.zeros(3), least_similarity=0.5, vectors=vectors).tolist() == [0, 0, 1]


def test_unknown_words_are_like_nothing_not_even_themselves() -> None:
    assert divide_sessions(pad_words([[1], [1]], 20), np.zeros(2), least_similarity=0.5).tolist() == [0, 1]


def test_one_search_is_one_session_and_none_is_none() -> None:
    assert divide_sessions(pad_words([[2]], 20), np.array([7]), least_similarity=0.5).tolist() == [0]
    assert divide_sessions(pad_words([], 20), np.zeros(0, np.int64), least_similarity=0.5).tolist() == []


def test_a_log_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match=r"search 2 .* earlier than the one before"):
        divide_sessions(pad_words([[2]] * 3, 20), np.array([5, 9, 8]))
