"""People who look less often the further down a result stands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.clicks.cascade import CascadeUser
from hushrank.clicks.position import PositionUser
from hushrank.streams import draw_uniform, seed_key, stream

NEVER_USED = np.zeros(4, np.float32)


def test_examination_falls_with_the_rank() -> None:
    assert PositionUser((0.0, 1.0), eta=1.0).examine(4).tolist() == [1.0, 0.5, np.float32(1 / 3), 0.25]
    assert PositionUser((0.0, 1.0), eta=2.0).examine(3).tolist() == [1.0, 0.25, np.float32(1 / 9)]


def test_clicks_by_hand() -> None:
    user = PositionUser((0.0, 0.5, 1.0), eta=1.0)
    # click * examine: 1 * 1, 1 * 1/2, .5 * 1/3, 0 * 1/4
    draws = np.array([0.99, 0.49, 0.17, 0.001], np.float32)
    assert user(np.array([2, 2, 1, 0]), draws, NEVER_USED).tolist() == [True, True, False, False]


def test_with_eta_0_it_is_a_cascade_that_never_stops() -> None:
    draws = draw_uniform(stream(seed_key(51), 1), 400).reshape(100, 4)
    grades, click = np.array([0, 1, 2, 1]), (0.1, 0.5, 0.9)
    position, cascade = PositionUser(click, eta=0.0), CascadeUser(click, (0.0, 0.0, 0.0))
    assert all((position(grades, d, NEVER_USED) == cascade(grades, d, d)).all() for d in draws)


@settings(deadline=None)
@given(st.floats(0, 3), st.lists(st.integers(0, 2), min_size=2, max_size=9), st.data())
def test_one_click_says_nothing_about_another(eta: float, grades: list[int], data: st.DataObject) -> None:
    """Each position depends on its own grade and draw alone."""
    user, n = PositionUser((0.1, 0.5, 0.9), eta=eta), len(grades)
    draws = np.array(data.draw(st.lists(st.floats(0.01, 0.99), min_size=n, max_size=n)), np.float32)
    changed = data.draw(st.integers(0, n - 1))
    others = np.arange(n) != changed
    other_grades = np.where(others, grades, 2 - np.array(grades))
    before, after = (user(np.array(g), draws, draws) for g in (grades, other_grades))
    assert before[others].tolist() == after[others].tolist()


def test_click_rates_follow_the_closed_form() -> None:
    user, grades, n = PositionUser((0.1, 0.5, 0.9), eta=0.5), np.array([2, 0, 1, 2]), 10_000
    draws = draw_uniform(stream(seed_key(52), 1), 4 * n).reshape(n, 4)
    rates = np.mean([user(grades, d, NEVER_USED) for d in draws], axis=0)
    expected = np.array([0.9, 0.1, 0.5, 0.9]) / np.sqrt([1, 2, 3, 4])
    assert (np.abs(rates - expected) <= 4 * np.sqrt(expected * (1 - expected) / n)).all()  # four standard errors


@pytest.mark.parametrize("eta", [-0.5, float("nan")])
def test_a_negative_eta_is_refused(eta: float) -> None:
    with pytest.raises(ValueError, match=r"eta is .*, must be >= 0"):
        PositionUser((0.0, 1.0), eta=eta)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the click probability of grade 2 is 1\.5, must be from 0 to 1"):
        PositionUser((0.0, 0.5, 1.5))
