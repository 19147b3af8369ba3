"""Bulyan chooses clients by Krum, one after another, and trims what they say."""

from __future__ import annotations

import numpy as np
import pytest
from gathered_rounds import make_round, random_round, reordered
from hypothesis import given
from hypothesis import strategies as st

from hushrank.aggregation import bulyan
from hushrank.aggregation.bulyan import Bulyan, choose_by_krum
from hushrank.aggregation.distances import DISTANCES
from hushrank.aggregation.krum import krum_scores
from hushrank.types import Array


def test_of_those_chosen_the_values_nearest_to_the_median_are_averaged() -> None:
    # n = 7, m = 1: five are chosen by Krum, and in each coordinate three of five count. 100 and 50 are never chosen.
    round = make_round([0, 1, 2, 3, 7, 50, 100])
    combined = Bulyan(1)(round)
    assert choose_by_krum(round.updates, 1).tolist() == [0, 1, 2, 3, 4]
    assert combined.update.tolist() == [(1 + 2 + 3) / 3] and combined.trust is not None
    assert combined.trust.tolist() == [0, 1, 1, 1, 0, 0, 0]


def test_what_is_left_is_weighed() -> None:
    combined = Bulyan(1)(make_round([0, 1, 2, 3, 7, 50, 100], weights=[1, 4, 1, 1, 1, 9, 9]))
    assert combined.update.tolist() == [(4 * 1 + 2 + 3) / 6]


def test_without_malicious_clients_it_is_the_weighted_mean() -> None:
    round = random_round(1, 5, 3)
    expected = np.average(round.updates, axis=0, weights=round.weights)
    np.testing.assert_allclose(Bulyan(0)(round).update, expected, rtol=1e-13)


def choose_naively(updates: Array, m: int) -> list[int]:
    """Krum, run anew on whoever is left."""
    left = list(range(len(updates)))
    for _ in range(len(updates) - 2 * m):
        left.pop(int(np.argmin(krum_scores(updates[left], m))))
    return sorted(set(range(len(updates))) - set(left))


@pytest.mark.parametrize(("n", "m"), [(11, 2), (40, 9), (60, 3)])
@pytest.mark.parametrize("few", [0, 64])  # scores kept up to date, and summed anew
def test_the_clients_chosen_are_those_of_the_definition(
    n: int, m: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulyan, "_FEW", max(few, 2 * m + 1))
    monkeypatch.setattr(bulyan, "_ROWS", 7)
    updates = np.random.default_rng(5).normal(size=(n, 6))
    updates[:m] = updates[0] + 4  # liars that agree: many equal distances
    assert choose_by_krum(updates, m).tolist() == choose_naively(updates, m)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("exact", "size"), [(10, 1e30), (10, 1e60), (2048, 1e200)])
def test_distances_beyond_what_numbers_hold_choose_no_liar(
    distance: str, exact: int, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit distances are float32, whose largest number is 3.4e38; the largest of float64 is 1.8e308."""
    monkeypatch.setattr(bulyan, "_EXACT", exact)
    monkeypatch.setattr(bulyan, "_FEW", 20)
    updates = np.random.default_rng(5).normal(size=(80, 20))
    updates[:9] *= size
    assert choose_by_krum(updates, 9, distance).min() >= 9
    combined = Bulyan(9, distance)(make_round(updates))
    assert np.abs(combined.update).max() < 2 and combined.trust is not None and not combined.trust[:9].any()


@given(seed=st.integers(0, 999), shift=st.floats(-10, 10))
def test_order_does_not_matter_and_a_shift_passes_through(seed: int, shift: float) -> None:
    round = random_round(seed, 15, 4)  # m = 3: no two of those who are left have only each other
    update = Bulyan(3)(round).update
    order = np.random.default_rng(seed).permutation(15)
    np.testing.assert_allclose(Bulyan(3)(reordered(round, order)).update, update, rtol=1e-10)
    moved = make_round(round.updates + shift, weights=round.weights)
    np.testing.assert_allclose(Bulyan(3)(moved).update, update + shift, rtol=1e-9, atol=1e-9)
