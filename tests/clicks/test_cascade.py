"""People who read from the top and leave after a click."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.clicks.cascade import CascadeUser
from hushrank.clicks.named import named_user
from hushrank.streams import draw_uniform, seed_key, stream
from hushrank.types import Array

graded_draws = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0.001, 0.999), st.floats(0.001, 0.999)),
    min_size=1,
    max_size=12,
)


def clicks(name: str, grades: list[int], click_draws: list[float], stop_draws: list[float]) -> list[int]:
    """Positions, from 0, that the person of three grades clicks."""
    user = named_user(name, n_grades=3)
    shown = user(np.array(grades, np.uint8), np.array(click_draws, np.float32), np.array(stop_draws, np.float32))
    return [int(position) for position in np.flatnonzero(shown)]


def test_a_perfect_person_clicks_by_grade_and_reads_to_the_end() -> None:
    # P(click) 0, .5, 1 for grades 0, 1, 2: 0.01 >= 0; 0.49 < .5; 0.51 >= .5; 0.99 < 1; stop is never drawn below 0
    assert clicks("perfect", [0, 1, 1, 2], [0.01, 0.49, 0.51, 0.99], [0.0001] * 4) == [1, 3]


def test_a_navigational_person_leaves_after_a_good_click() -> None:
    # position 0: grade 1, 0.4 < .5 clicks, 0.6 >= .5 stays; position 2: grade 2, 0.9 < .95 clicks, 0.89 < .9 leaves
    assert clicks("navigational", [1, 0, 2, 2], [0.4, 0.06, 0.9, 0.01], [0.6, 0.01, 0.89, 0.5]) == [0, 2]


def test_an_informational_person_clicks_on_much() -> None:
    # P(click) .4, .7, .9; P(stop | click) .1, .3, .5: .39 clicks grade 0, .11 stays; .69 clicks grade 1, .29 leaves
    assert clicks("informational", [0, 0, 2, 1, 2], [0.39, 0.4, 0.89, 0.69, 0.1], [0.11, 0, 0.51, 0.29, 0.9]) == [
        0,
        2,
        3,
    ]


def test_a_poisoner_clicks_what_a_perfect_person_does_not() -> None:
    assert clicks("poison", [0, 1, 1, 2], [0.99, 0.49, 0.51, 0.01], [0.0001] * 4) == [0, 1]


def test_only_a_click_can_end_the_list() -> None:
    """Some published code draws "stop" at every examined document; here the unclicked ones cannot stop anyone."""
    user = CascadeUser(click=(0.0, 1.0), stop=(1.0, 1.0))
    draws = np.full(4, 0.5, np.float32)
    assert user(np.array([0, 0, 1, 1]), draws, draws).tolist() == [False, False, True, False]


@settings(deadline=None)
@given(graded_draws)
def test_nothing_is_clicked_below_the_click_that_ends_the_list(rows: list[tuple[int, float, float]]) -> None:
    grades, click_draws, stop_draws = (np.array(column) for column in zip(*rows, strict=True))
    user = named_user("navigational", n_grades=3)
    assert isinstance(user, CascadeUser)
    is_clicked = user(grades, click_draws, stop_draws)
    leaves = is_clicked & (stop_draws < np.array(user.stop)[grades])
    assert leaves.sum() <= 1
    assert not leaves.any() or not is_clicked[np.argmax(leaves) + 1 :].any()


@settings(deadline=None)
@given(graded_draws, st.integers(0, 12))
def test_what_stands_below_does_not_change_what_is_clicked_above(
    rows: list[tuple[int, float, float]], cut: int
) -> None:
    grades, click_draws, stop_draws = (np.array(column) for column in zip(*rows, strict=True))
    user = named_user("informational", n_grades=3)
    whole = user(grades, click_draws, stop_draws)
    assert whole[:cut].tolist() == user(grades[:cut], click_draws[:cut], stop_draws[:cut]).tolist()


def click_rates(user: CascadeUser, grades: Array, n: int) -> Array:
    draws = [draw_uniform(stream(seed_key(41), purpose), n * len(grades)).reshape(n, -1) for purpose in (1, 2)]
    return np.mean([user(grades, c, s) for c, s in zip(*draws, strict=True)], axis=0)


@pytest.mark.parametrize("name", ["perfect", "navigational", "informational", "poison"])
def test_click_rates_follow_the_closed_form(name: str) -> None:
    """P(click at i) = P(click | g_i) times the chance of still reading: prod over j < i of 1 - P(click) P(stop)."""
    user, grades, n = named_user(name, n_grades=5), np.array([2, 0, 4, 1, 3]), 10_000
    assert isinstance(user, CascadeUser)
    click, stop = np.array(user.click)[grades], np.array(user.stop)[grades]
    expected = click * np.concatenate([[1.0], np.cumprod(1 - click * stop)[:-1]])
    bound = 4 * np.sqrt(expected * (1 - expected) / n) + 1e-12  # four standard errors
    assert (np.abs(click_rates(user, grades, n) - expected) <= bound).all()


@pytest.mark.parametrize("wrong", [-0.1, 1.01, float("nan"), float("inf")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"the click probability of grade 1 is .*, must be from 0 to 1"):
        CascadeUser(click=(0.0, wrong), stop=(0.0, 0.0))
    with pytest.raises(ValueError, match=r"the stop probability of grade 0 is .*, must be from 0 to 1"):
        CascadeUser(click=(0.0, 1.0), stop=(wrong, 0.0))


def test_tables_with_too_few_grades_are_refused() -> None:
    with pytest.raises(ValueError, match="the click table has 1 grades, needs at least 2"):
        CascadeUser(click=(1.0,), stop=(0.0,))
    with pytest.raises(ValueError, match="the stop table has 2 grades, the click table 3"):
        CascadeUser(click=(0.0, 0.5, 1.0), stop=(0.0, 0.0))
