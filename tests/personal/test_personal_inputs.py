"""What a model sees of a log: widths, history counts, personal rows, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from personal_inputs import draw_inputs

from hushrank.personal.inputs import (
    N_LONG,
    InputWidths,
    PersonalInputs,
    find_own_rows,
    find_own_words,
    gather_inputs,
    pad_inputs,
    stack_inputs,
    take_queries,
)
from hushrank.personal.log import Search, SearchLog, make_collection, make_log, pad_words

TITLES = make_collection(pad_words([[2, 3], [4], [5, 6, 7]], 50), ("", "?", "a", "b", "c", "d", "e", "f"))


def log_of(*sessions: int) -> SearchLog:
    """One search per session number; search i asks for word 2 + i % 3 and clicks on the first of two documents."""
    searches = [Search(i, (2 + i % 3,), (i % 3, (i + 1) % 3), (i % 3,)) for i in range(len(sessions))]
    return make_log(searches, np.array(sessions))


def gather(log: SearchLog, *searches: int) -> PersonalInputs:
    features = np.arange(len(log.documents), dtype=np.float32)[:, None]
    return gather_inputs(log, TITLES, features, searches=np.array(searches), own_words=np.array([3, 4]))


def test_a_search_sees_what_came_before_it_and_nothing_else() -> None:
    inputs = gather(log_of(0, 0, 1, 1), 1, 3)
    assert inputs.n_long.tolist() == [0, 2] and inputs.n_before.tolist() == [1, 3]
    assert inputs.history.query_words[:3, 0].tolist() == [2, 3, 4]
    assert inputs.history.clicked_words[:3, :4].tolist() == [[2, 3, 0, 0], [4, 0, 0, 0], [5, 6, 7, 0]]
    assert inputs.document_words[1, :, :3].tolist() == [[2, 3, 0], [4, 0, 0]]
    assert inputs.features[:, :, 0].tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert inputs.query_rows[:, 0].tolist() == [0, -1]  # word 3 has a personal vector, word 2 has none


def test_history_that_no_model_reads_is_left_out() -> None:
    inputs = gather(log_of(*range(N_LONG + 9)), N_LONG + 5, N_LONG + 7)
    assert inputs.n_long.tolist() == [N_LONG, N_LONG + 2] and len(inputs.history.sessions) == N_LONG + 3


def test_the_personal_words_are_those_of_the_earliest_queries() -> None:
    assert find_own_words(log_of(0, 0, 0, 0, 0), most=2)[0].tolist() == [2, 3]
    assert find_own_rows(np.array([3, 7]), np.array([0, 1, 3, 5, 7, 9])).tolist() == [-1, -1, 0, -1, 1, -1]
    assert find_own_rows(np.array([], dtype=np.int32), np.array([0, 3])).tolist() == [-1, -1]


def test_users_of_equal_widths_are_stacked_and_taken_apart_again() -> None:
    users = [draw_inputs(1), draw_inputs(2)]
    stacked = stack_inputs(users)
    assert stacked.history.query_words.shape == (2, 9, 3)
    assert (stacked.features[1] == users[1].features).all()
    assert (take_queries(users[0], np.array([2])).query_words[0] == users[0].query_words[2]).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        pad_inputs(draw_inputs(1), InputWidths(queries=3))
