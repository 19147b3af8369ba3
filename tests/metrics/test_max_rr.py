"""MaxRR by hand, its expectation against enumeration and simulation, and its mean over queries."""

from __future__ import annotations

from itertools import product
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.clicks.cascade import CascadeUser
from hushrank.clicks.named import named_user
from hushrank.clicks.table import ClickTable, TableUser
from hushrank.metrics.max_rr import (
    expected_max_rr,
    max_rr,
    max_rr_distribution,
    max_rr_values,
    mean_expected_max_rr,
)
from hushrank.streams import draw_uniform, fold_in, seed_key
from hushrank.types import Array, QuerySet

USERS = ["perfect", "navigational", "informational", "pbm-1"]
grade_lists = st.lists(st.integers(0, 2), min_size=1, max_size=15).map(np.array)


def person(name: str) -> TableUser:
    user = named_user(name, n_grades=3)
    assert isinstance(user, TableUser)
    return user


def table(name: str, k: int = 10) -> ClickTable:
    return person(name).as_table(k)


def make_queries(*grades: list[int]) -> QuerySet:
    flat = np.concatenate([np.array(g, dtype=np.uint8) for g in grades])
    starts = np.concatenate([[0], np.cumsum([len(g) for g in grades])])
    return QuerySet(np.zeros((len(flat), 1), np.float32), flat, starts, tuple(map(str, range(len(grades)))))


def test_max_rr_is_the_reciprocal_rank_of_the_highest_click() -> None:
    assert max_rr(np.array([False, False, True, False, True])) == 1 / 3
    assert max_rr(np.zeros(5, bool)) == 0
    assert max_rr(np.array([False, False, True]), k=2) == 0


def test_max_rr_takes_eleven_values() -> None:
    assert max_rr_values() == (0, 1 / 10, 1 / 9, 1 / 8, 1 / 7, 1 / 6, 1 / 5, 1 / 4, 1 / 3, 1 / 2, 1)
    one_click_each = {max_rr(row) for row in np.eye(10, dtype=bool)}
    assert one_click_each | {max_rr(np.zeros(10, bool))} == set(max_rr_values())


def test_expected_max_rr_of_a_list_by_hand() -> None:
    # navigational: grade 1 clicked with .5, grade 0 with .05, grade 2 with .95
    first, second, third = 0.5, (1 - 0.5) * 0.05, (1 - 0.5) * (1 - 0.05) * 0.95
    assert expected_max_rr(np.array([1, 0, 2]), table("navigational")) == pytest.approx(first + second / 2 + third / 3)
    distribution = max_rr_distribution(np.array([1, 0, 2]), table("navigational"), k=4)
    nothing = (1 - 0.5) * (1 - 0.05) * (1 - 0.95)
    assert distribution.tolist() == pytest.approx([nothing, 0, third, second, first])


def test_a_user_who_clicks_only_the_best_expects_their_reciprocal_rank() -> None:
    user = CascadeUser((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)).as_table(10)
    assert expected_max_rr(np.array([1, 0, 0, 2, 2]), user) == 1 / 4
    assert expected_max_rr(np.array([0] * 10 + [2]), user) == 0  # the eleventh is not shown


@pytest.mark.parametrize("name", USERS)
def test_the_expectation_is_that_of_simulated_clicks(name: str) -> None:
    grades, n, user = np.array([0, 1, 0, 2, 1, 0]), 4_000, person(name)
    clicks, stops = (draw_uniform(fold_in(seed_key(seed), np.arange(n)), len(grades)) for seed in (1, 2))
    seen = np.array([max_rr(user(grades, c, s)) for c, s in zip(clicks, stops, strict=True)])
    error = 4 * seen.std() / np.sqrt(n)  # four standard errors
    assert float(expected_max_rr(grades, user.as_table(10))) == pytest.approx(seen.mean(), abs=error)


@given(grade_lists, st.sampled_from(USERS), st.integers(1, 12))
def test_a_distribution_sums_to_one(grades: Array, name: str, k: int) -> None:
    distribution = max_rr_distribution(grades, table(name, 12), k=k)
    assert distribution.shape == (k + 1,)
    assert (distribution >= 0).all() and distribution.sum() == pytest.approx(1)


def test_many_lists_at_once_are_each_list_alone() -> None:
    lists = np.array(list(product(range(3), repeat=3)))
    together = expected_max_rr(lists, table("informational"))
    assert together.tolist() == [float(expected_max_rr(one, table("informational"))) for one in lists]


@given(st.lists(grade_lists, min_size=1, max_size=5), st.sampled_from(USERS), st.integers(0, 2**31))
def test_the_mean_over_queries_is_over_all_of_them(lists: list[Array], name: str, seed: int) -> None:
    queries = make_queries(*(grades.tolist() for grades in lists))
    scores = np.round(4 * draw_uniform(seed_key(seed), queries.n_documents))  # with ties
    each = [
        float(expected_max_rr(grades[np.argsort(-scores[queries.rows(q)], kind="stable")], table(name)))
        for q, grades in enumerate(lists)
    ]
    mean = mean_expected_max_rr(queries, scores, table(name))
    assert mean.value == pytest.approx(np.mean(each))
    assert (mean.n_queries, mean.n_skipped) == (len(lists), 0)


def test_queries_without_a_relevant_document_count() -> None:
    queries = make_queries([2, 0], [0, 0])
    assert mean_expected_max_rr(queries, np.array([2.0, 1.0, 2.0, 1.0]), table("perfect")).value == 1 / 2


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="k is 0, must be at least 1"):
        max_rr(np.array([True]), k=0)
    with pytest.raises(ValueError, match=r"scores have shape \(3,\), must be one per document: \(2,\)"):
        mean_expected_max_rr(make_queries([1, 0]), np.zeros(3), table("perfect"))
    with pytest.raises(ValueError, match="scores hold NaN"):
        mean_expected_max_rr(make_queries([1, 0]), np.array([nan, 0.0]), table("perfect"))
    with pytest.raises(ValueError, match="the click table covers 5 ranks, lists of 7 came"):
        expected_max_rr(np.zeros(7, int), table("perfect", 5))
