"""A log is checked when it is made; errors name the search and never its words or documents."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hushrank.personal.log import (
    BACKGROUND,
    TEST,
    TRAIN,
    VALIDATION,
    Periods,
    Search,
    SearchLog,
    make_collection,
    make_log,
    slice_log,
)

SEARCHES = [
    Search(100, (5, 6), (7, 8, 9), (8,)),
    Search(160, (5,), (3, 4)),
    Search(4000, (1, 1), (2, 7), (2, 7)),
]


def log_of(*searches: Search, sessions: list[int] | None = None) -> SearchLog:
    return make_log(searches, None if sessions is None else np.array(sessions))


def test_a_log_is_columns_in_the_order_of_time() -> None:
    log = log_of(*SEARCHES, sessions=[0, 0, 1])
    assert log.n_searches == 3 and log.queries.shape == (3, 20)
    assert log.queries[0, :3].tolist() == [5, 6, 0] and log.times.tolist() == [100, 160, 4000]
    assert log.starts.tolist() == [0, 3, 5, 7] and log.documents.tolist() == [7, 8, 9, 3, 4, 2, 7]
    assert log.is_clicked.tolist() == [False, True, False, False, False, True, True]
    assert log.owners().tolist() == [0, 0, 0, 1, 1, 2, 2] and log.rows(1) == slice(3, 5)


def test_a_slice_is_a_log_of_its_own() -> None:
    late = slice_log(log_of(*SEARCHES, sessions=[0, 1, 2]), 1, 3)
    assert late.sessions.tolist() == [0, 1] and late.starts.tolist() == [0, 2, 4]
    assert late.documents.tolist() == [3, 4, 2, 7]
    assert slice_log(late, 1, 1).n_searches == 0


def test_an_empty_log_is_a_log() -> None:
    assert make_log([]).n_searches == 0 and make_log([]).documents.shape == (0,)


def test_a_long_query_is_cut_after_twenty_words() -> None:
    assert log_of(Search(0, tuple(range(2, 40)), (1,))).queries[0].tolist() == list(range(2, 22))


@pytest.mark.parametrize(
    ("searches", "sessions", "message"),
    [
        ([Search(5, (2,), (1,)), Search(4, (2,), (1,))], None, r"search 1 .* earlier than the search before .* Sort"),
        ([Search(5, (777_777,), (888_888,), (999_999,))], None, "search 0: a click on a document that was not listed"),
        ([Search(5, (2,), (888_888, 888_888))], None, "search 0 .* a document is listed twice"),
        ([Search(5, (2,), (1,)), Search(6, (2,), (-1,))], None, "search 1 .* a negative document number"),
        ([Search(5, (-777_777,), (1,))], None, "search 0 .* a negative word number"),
        ([Search(5, (0, 777_777), (1,))], None, "search 0 .* padding before a word"),
        ([Search(5, (2,), (1,)), Search(6, (2,), (1,))], [0, 2], "search 1 .* sessions must be 0, 1, 2"),
        ([Search(5, (2,), (1,))], [1], "search 0 .* sessions must be 0, 1, 2"),
    ],
)
def test_what_is_wrong_is_named_without_words(searches: list[Search], sessions: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        log_of(*searches, sessions=sessions)
    assert not any(secret in str(error.value) for secret in ("777", "888", "999"))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("queries", np.zeros((3, 5), np.int32), r"queries .* shape \(3, 5\), must be \(3, 20\)"),
        ("is_clicked", np.zeros(7, np.int8), "is_clicked .* int8, must be bool"),
        ("is_clicked", np.zeros(6, bool), "is_clicked .* shape"),
        ("starts", np.array([0, 3, 5, 8]), "starts .* from 0 to 7"),
        ("starts", np.array([0, 5, 3, 7]), "search 1 .* starts descend"),
        ("dwell", np.full(7, np.nan, np.float32), "dwell .* finite"),
    ],
)
def test_columns_that_do_not_fit_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(log_of(*SEARCHES), **{field: value})  # type: ignore[arg-type]


def test_a_collection_counts_titles_not_occurrences() -> None:
    titles = np.zeros((3, 50), np.int32)
    titles[0, :3], titles[1, :2], titles[2, :1] = [2, 2, 3], [3, 1], [2]
    collection = make_collection(titles, ("", "?", "w2", "w3"))
    assert collection.document_frequency.tolist() == [0, 1, 2, 2]
    assert collection.lengths.tolist() == [3, 2, 1] and collection.mean_length == 2


def test_titles_beyond_the_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match="outside 0 to 2"):
        make_collection(np.full((1, 50), 3), ("", "?", "w2"))
    with pytest.raises(ValueError, match=r"shape \(1, 9\)"):
        make_collection(np.ones((1, 9)), ("", "?"))


def test_periods_begin_at_their_time() -> None:
    periods = Periods(train=10, validation=20, test=30)
    assert periods.of(np.array([9, 10, 19, 20, 29, 30])).tolist() == [
        BACKGROUND, TRAIN, TRAIN, VALIDATION, VALIDATION, TEST,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Training comes first"):
        Periods(train=10, validation=9, test=30)
