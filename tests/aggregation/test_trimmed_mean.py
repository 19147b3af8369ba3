"""Trimmed Mean and Median look at one coordinate at a time."""

from __future__ import annotations

import numpy as np
import pytest
from gathered_rounds import make_round, random_round, reordered
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hushrank.aggregation import trimmed_mean
from hushrank.aggregation.median import median_aggregate
from hushrank.aggregation.trimmed_mean import TrimmedMean


def test_the_largest_and_the_smallest_of_each_coordinate_are_left_out() -> None:
    round = make_round([[1, 50], [2, 10], [6, 20], [900, 30], [-900, -7]])
    combined = TrimmedMean(1)(round)  # of 1, 2, 6 and of 10, 20, 30
    assert combined.update.tolist() == [3, 20] and combined.trust is None


def test_what_is_left_is_weighed() -> None:
    round = make_round([1, 2, 6, 900, -900], weights=[1, 3, 1, 50, 50])
    assert TrimmedMean(1)(round).update.tolist() == [(1 + 3 * 2 + 6) / 5]


def test_the_median_is_the_middle_value_and_of_two_their_mean() -> None:
    assert median_aggregate(make_round([5, 1, 900])).update.tolist() == [5]
    combined = median_aggregate(make_round([[5, 0], [1, 1], [900, 3], [2, 9]], weights=[1, 99, 1, 1]))
    assert combined.update.tolist() == [(2 + 5) / 2, (1 + 3) / 2] and combined.trust is None


def test_without_malicious_clients_the_trimmed_mean_is_the_weighted_mean() -> None:
    round = random_round(1, 7, 4)
    total = sum(weight * update for weight, update in zip(round.weights, round.updates, strict=True))
    assert TrimmedMean(0)(round).update.tolist() == (total / round.weights.sum()).tolist()


def test_with_all_but_the_middle_left_out_the_trimmed_mean_is_the_median() -> None:
    round = make_round(np.random.default_rng(2).normal(size=(7, 4)))
    assert TrimmedMean(3)(round).update.tolist() == median_aggregate(round).update.tolist()


@pytest.mark.parametrize(("n", "p"), [(10, 46), (31, 400)])
def test_both_are_those_of_numpy_and_scipy(n: int, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimmed_mean, "_BLOCK", 11 * n)
    updates = np.random.default_rng(3).normal(size=(n, p))
    np.testing.assert_array_equal(median_aggregate(make_round(updates)).update, np.median(updates, axis=0))
    expected = stats.trim_mean(updates, 3.5 / n, axis=0)  # scipy rounds down to 3 at each end
    np.testing.assert_allclose(TrimmedMean(3)(make_round(updates)).update, expected, rtol=1e-12, atol=1e-14)


@given(seed=st.integers(0, 999), shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3))
def test_order_does_not_matter_and_shift_and_scale_pass_through(seed: int, shift: float, scale: float) -> None:
    round = random_round(seed, 9, 5)
    order = np.random.default_rng(seed).permutation(9)
    for rule in (TrimmedMean(2), median_aggregate):
        update = rule(round).update
        np.testing.assert_allclose(rule(reordered(round, order)).update, update, rtol=1e-12, atol=1e-14)
        moved = make_round(round.updates * scale + shift, weights=round.weights)
        np.testing.assert_allclose(rule(moved).update, update * scale + shift, rtol=1e-9, atol=1e-9 * scale)


@given(lies=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=2, max_size=2))
def test_two_liars_of_seven_cannot_push_a_coordinate_beyond_the_honest_values(lies: list[float]) -> None:
    round = make_round([*lies, 1, 2, 3, 4, 5])
    for rule in (TrimmedMean(2), median_aggregate):
        assert 1 <= rule(round).update[0] <= 5
