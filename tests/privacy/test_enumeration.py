"""The epsilon that lists really give, by enumeration: Table 2 of [foltr-es]."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.clicks.named import named_user
from hushrank.clicks.table import TableUser
from hushrank.metrics.max_rr import max_rr_distribution
from hushrank.privacy.enumeration import empirical_epsilon, enumerate_grades, privatised_distribution
from hushrank.privacy.randomised_response import epsilon_bound
from hushrank.types import Array


def max_rr_of_all_lists(name: str, length: int) -> Array:
    user = named_user(name, n_grades=3)
    assert isinstance(user, TableUser)
    return max_rr_distribution(enumerate_grades(length), user.as_table(length), k=length)


def test_every_list_of_grades_is_there_once() -> None:
    lists = enumerate_grades(5)
    assert lists.shape == (3**5, 5) and len({tuple(row) for row in lists}) == 3**5
    assert enumerate_grades(2, n_grades=2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_epsilon_of_two_distributions_by_hand() -> None:
    # p = .8, n = 3: each lie .1. First: .8 .1 .1. Second: .5 * .8 + .5 * .1 = .45, .45, .1
    distributions = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert privatised_distribution(distributions, p=0.8).tolist() == [
        pytest.approx([0.8, 0.1, 0.1]),
        pytest.approx([0.45, 0.45, 0.1]),
    ]
    assert empirical_epsilon(distributions, p=0.8) == pytest.approx(math.log(0.45 / 0.1))


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("perfect", [0.51, 1.61, 2.71, 3.81, 4.55, 6.20]),
        ("navigational", [0.47, 1.52, 2.58, 3.65, 4.39, 6.00]),
        ("informational", [0.28, 1.00, 1.70, 2.56, 3.13, 4.39]),
    ],
)
def test_table_2_of_the_paper_to_its_printed_digits(name: str, printed: list[float]) -> None:
    distributions = max_rr_of_all_lists(name, 5)
    ours = [empirical_epsilon(distributions, p=p) for p in (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)]
    assert [round(epsilon, 2) for epsilon in ours] == printed


@given(st.floats(0.2, 0.999), st.sampled_from(["perfect", "navigational", "informational"]), st.integers(1, 6))
def test_epsilon_is_never_above_the_bound_and_reaches_it_for_the_perfect_user(p: float, name: str, length: int) -> None:
    p = max(p, 1 / (length + 1) + 0.01)
    epsilon, bound = empirical_epsilon(max_rr_of_all_lists(name, length), p=p), epsilon_bound(p, length + 1)
    assert epsilon <= bound + 1e-9
    if name == "perfect":
        assert epsilon == pytest.approx(bound)


def test_the_best_pair_for_each_answer_is_the_best_of_all_pairs() -> None:
    shown = privatised_distribution(max_rr_of_all_lists("navigational", 3), p=0.6)
    pairs = np.log(shown[:, None] / shown[None, :])
    assert empirical_epsilon(max_rr_of_all_lists("navigational", 3), p=0.6) == pytest.approx(pairs.max())


def test_lists_of_ten_are_no_trouble() -> None:
    distributions = max_rr_of_all_lists("perfect", 10)
    assert distributions.shape == (3**10, 11)
    assert empirical_epsilon(distributions, p=0.9) == pytest.approx(epsilon_bound(0.9, 11))


def test_without_lies_epsilon_is_infinite_where_a_list_never_gives_an_answer() -> None:
    assert empirical_epsilon(max_rr_of_all_lists("perfect", 3), p=1) == math.inf
    assert empirical_epsilon(np.array([[0.25, 0.75], [0.5, 0.5]]), p=1) == pytest.approx(math.log(2))
    assert empirical_epsilon(np.array([[1.0, 0.0], [1.0, 0.0]]), p=1) == 0


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="length is 0 and n_grades 3, must be at least 1 and 2"):
        enumerate_grades(0)
    with pytest.raises(ValueError, match=r"there are 3\^30 lists, more than 50,000,000"):
        enumerate_grades(30)
    with pytest.raises(ValueError, match="does not sum to 1"):
        empirical_epsilon(np.array([[0.5, 0.6]]), p=0.9)
    with pytest.raises(ValueError, match=r"p is 0.5, must be above 1/n"):
        empirical_epsilon(np.array([[0.5, 0.5]]), p=0.5)
