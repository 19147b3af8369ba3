"""Lists are shortened and filled up without losing what was clicked."""

from __future__ import annotations

import numpy as np

from hushrank.personal.bm25 import Candidates, make_index
from hushrank.personal.lists import complete_lists, keep_top
from hushrank.personal.log import make_collection, pad_words

WORDS = ("", "?", "w2", "w3", "w4")
# Equal lengths: a title with the query's word beats one without; ties by number.
TITLES = [[2, 4], [3, 4], [2, 4], [3, 4], [2, 4], [2, 4], [4, 4]]


def test_a_click_far_down_takes_the_place_of_the_last() -> None:
    starts, clicked = np.array([0, 5, 8]), np.array([0, 0, 0, 0, 1, 1, 0, 0], dtype=bool)
    assert keep_top(starts, clicked, np.array([3, 3])).tolist() == [1, 1, 0, 0, 1, 1, 1, 1]


def test_all_clicks_stay_even_beyond_the_size() -> None:
    assert keep_top(np.array([0, 4]), np.ones(4, bool), np.array([2])).all()


def test_bm25_fills_a_list_up_and_orders_it() -> None:
    index = make_index(make_collection(pad_words(TITLES, 50), WORDS))
    given = Candidates(np.array([0, 1, 2]), np.array([6, 4], np.int32), np.zeros(2))
    lists, is_given = complete_lists(index, pad_words([[2], [2]], 20), given, np.array([3, 2]))
    assert lists.starts.tolist() == [0, 3, 5]
    assert lists.documents.tolist() == [0, 2, 6, 0, 4] and is_given.tolist() == [False, False, True, False, True]


def test_size_nought_keeps_the_given_ones_alone() -> None:
    index = make_index(make_collection(pad_words(TITLES, 50), WORDS))
    given = Candidates(np.array([0, 3]), np.array([6, 1, 4], np.int32), np.zeros(3))
    lists, is_given = complete_lists(index, pad_words([[2]], 20), given, np.array([0]))
    assert lists.documents.tolist() == [4, 1, 6] and is_given.all()
