"""Weighted updates as whole numbers modulo 2^32, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.privacy.sum_format import SumFormat


def test_a_case_by_hand() -> None:
    """Bound 2 x 3 = 6 for 5 clients: 2^31 / 5 / 6 = 71,582,788, so 2^26 steps per unit; a weight is written in twos."""
    format = SumFormat(2.0, n_clients=5, most_weight=3)
    assert format.step == 2.0**-26
    assert format.write(np.array([0.5, -1.0]), 3).tolist() == [1.5, -3.0, 6.0]
    words = format.add(np.array([[0.5, -1.0], [0.25, 2.0]]), np.array([3, 1]))
    assert words.tolist() == [int(1.75 * 2**26), 2**32 - 2**26, 8 * 2**26]
    total, weight = format.decode(words, n_summed=2)
    assert total.tolist() == [1.75, -1.0] and weight == 4.0


def test_rounding_comes_before_the_weight_so_that_a_sum_is_exact_in_any_order() -> None:
    format = SumFormat(1.0, n_clients=1000, most_weight=7)
    updates = np.random.default_rng(0).uniform(-1, 1, (1000, 9))
    weights = np.random.default_rng(1).integers(0, 8, 1000)
    forwards, backwards = format.add(updates, weights), format.add(updates[::-1], weights[::-1])
    halves = format.add(updates[:300], weights[:300]) + format.add(updates[300:], weights[300:])
    assert np.array_equal(forwards, backwards) and np.array_equal(forwards, halves)
    exact = (weights[:, None] * np.rint(updates / format.step)).sum(axis=0) * format.step
    assert np.array_equal(format.decode(forwards, n_summed=1000)[0], exact)


@given(st.floats(1e-3, 1e3), st.integers(1, 5000), st.integers(1, 100))
def test_everybody_at_the_edge_of_the_range_does_not_wrap(largest: float, n_clients: int, most_weight: int) -> None:
    format = SumFormat(largest, n_clients, most_weight)
    edge = np.floor(largest / format.step) * format.step
    one = format.add(np.array([[edge, -edge]]), np.array([most_weight]))
    words = np.array(n_clients, np.uint32) * one  # everybody sends the same
    total, weight = format.decode(words, n_summed=n_clients)
    assert total == pytest.approx([n_clients * most_weight * edge, -n_clients * most_weight * edge])
    assert weight == n_clients * most_weight


@pytest.mark.parametrize("bad", [1.5, -1.5, np.nan, np.inf])
def test_what_could_wrap_is_refused_without_naming_the_number(bad: float) -> None:
    with pytest.raises(ValueError, match="1 numbers of updates are beyond 1, the range of this secure sum") as refused:
        SumFormat(1.0, 10).write(np.array([0.1, bad]), 1)
    assert str(bad) not in str(refused.value)


def test_noise_beyond_the_range_wraps_and_the_sum_is_right_modulo_2_to_the_32() -> None:
    """2^31 / 4 = 2^29 steps are one unit: a number of 6 wraps, and comes back when -5.5 is added."""
    format = SumFormat(0.75, n_clients=4, wraps=True)
    assert format.step == 2.0**-29
    words = format.add(np.array([[6.0, 0.25], [-5.5, 0.5]]), np.array([1, 1]))
    assert format.decode(words, n_summed=2)[0].tolist() == [0.5, 0.75]
    with pytest.raises(ValueError, match="1 numbers of updates are beyond"):
        format.write(np.array([np.nan]), 1)


@pytest.mark.parametrize("weight", [-1, 4, 0.5, np.nan])
def test_a_weight_that_cannot_be_is_refused(weight: Any) -> None:
    with pytest.raises(ValueError, match="a weight is no whole number from 0 to 3"):
        SumFormat(1.0, 10, 3).write(np.array([0.1]), weight)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0.0, 10), "bound is 0.0"),
        ((1.0, 0), "n_clients is 0, must be from 1"),
        ((1.0, 2**21), "n_clients is 2097152, must be from 1 to 2"),
        ((1.0, 10, 0), "most_weight is 0, must be at least 1"),
    ],
)
def test_a_format_that_cannot_be_is_refused(values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SumFormat(*values)
