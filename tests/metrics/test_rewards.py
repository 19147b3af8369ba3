"""Rewards by hand: each in its declared set, each set as large as it says."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.metrics.max_rr import max_rr_values
from hushrank.metrics.rewards import REWARD_NAMES, FiniteReward, RangeReward, finite_reward, range_reward
from hushrank.types import Array

CLICKS = np.array([False, True, False, True])
GRADES = np.array([1, 2, 0, 0])
NOTHING = np.zeros(4, bool)


@pytest.mark.parametrize(
    ("name", "value", "without_click"),
    [("MaxRR", 1 / 2, 0.0), ("LastRR", 1 / 4, 0.0), ("click-through", 1.0, 0.0)],
)
def test_rewards_of_clicks(name: str, value: float, without_click: float) -> None:
    reward = finite_reward(name)
    assert reward(GRADES, CLICKS, GRADES) == value
    assert reward(GRADES, NOTHING, GRADES) == without_click


def test_rewards_of_clicks_have_values_of_their_own() -> None:
    assert finite_reward("MaxRR").values == finite_reward("LastRR").values == max_rr_values(10)
    assert len(finite_reward("MaxRR", k=5).values) == 6
    assert finite_reward("click-through").values == (0.0, 1.0)


def test_ndcg_is_rounded_to_the_nearest_point_of_its_grid() -> None:
    dcg, ideal = 1 + 3 / log2(3), 3 + 1 / log2(3)
    assert dcg / ideal == pytest.approx(0.797, abs=0.001)
    assert range_reward("nDCG")(GRADES, NOTHING, GRADES) == pytest.approx(dcg / ideal)
    assert finite_reward("nDCG", n_points=5).values == (0, 0.25, 0.5, 0.75, 1)
    assert finite_reward("nDCG", n_points=5)(GRADES, NOTHING, GRADES) == 0.75
    assert finite_reward("nDCG", n_points=2)(GRADES, NOTHING, GRADES) == 1


def test_dcg_goes_up_to_the_best_list_that_can_be() -> None:
    reward = finite_reward("DCG", k=2, n_points=4, top_grade=2)
    best = 3 + 3 / log2(3)
    assert reward.values == pytest.approx((0, best / 3, 2 * best / 3, best))
    assert reward(np.array([2, 2]), NOTHING[:2], GRADES) == pytest.approx(best)
    assert reward(np.array([1, 0]), NOTHING[:2], GRADES) == pytest.approx(best / 3)  # 1 of 4.89, nearest is 1.63
    assert range_reward("DCG", k=2).high == pytest.approx(best)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=10),
    st.sampled_from(REWARD_NAMES),
    st.integers(2, 30),
)
def test_a_reward_is_always_in_its_set(shown: list[tuple[int, bool]], name: str, n_points: int) -> None:
    grades, is_clicked = (np.array(column) for column in zip(*shown, strict=True))
    reward = finite_reward(name, n_points=n_points)
    assert reward(grades, is_clicked, grades) in reward.values
    free = range_reward(name)
    assert free.low <= free(grades, is_clicked, grades) <= free.high


def test_a_reward_beyond_its_range_is_moved_to_the_end() -> None:
    def three(*_: Array) -> float:
        return 3.0

    assert RangeReward("three", 0.0, 1.0, three)(GRADES, CLICKS, GRADES) == 1.0
    assert FiniteReward("three", (0.0, 0.5), three)(GRADES, CLICKS, GRADES) == 0.5


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="no reward is called 'maxrr'; did you mean 'MaxRR'"):
        finite_reward("maxrr")
    with pytest.raises(ValueError, match="no reward is called '!'; known: MaxRR, LastRR"):
        range_reward("!")
    with pytest.raises(ValueError, match="n_points is 1, must be at least 2"):
        finite_reward("nDCG", n_points=1)
    with pytest.raises(ValueError, match="must be at least two, ascending"):
        FiniteReward("odd", (1.0, 0.0), lambda *_: 0.0)
    with pytest.raises(ValueError, match=r"from 1.0 to 0.0, must be finite and ascending"):
        RangeReward("odd", 1.0, 0.0, lambda *_: 0.0)
