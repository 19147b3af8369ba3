"""Krum and Multi-Krum pick updates that lie close to others."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from gathered_rounds import make_round, random_round, reordered
from hypothesis import given
from hypothesis import strategies as st

from hushrank.aggregation import distances
from hushrank.aggregation.krum import Krum, MultiKrum, krum_scores
from hushrank.types import Array


def test_krum_takes_the_update_whose_neighbours_are_nearest() -> None:
    # n = 5, m = 1: the two nearest count. 0: 1 + 2; 1: 1 + 1; 2: 1 + 2; 4: 2 + 3; 100: 96 + 98.
    round = make_round([4, 0, 100, 1, 2])
    assert krum_scores(round.updates, 1).tolist() == [5, 3, 194, 2, 3]
    combined = Krum(1)(round)
    assert combined.update.tolist() == [1] and combined.trust is not None
    assert combined.trust.tolist() == [0, 0, 0, 1, 0]


def test_multi_krum_averages_all_but_m() -> None:
    combined = MultiKrum(1)(make_round([4, 0, 100, 1, 2]))  # without the score 194
    assert combined.update.tolist() == [(4 + 0 + 1 + 2) / 4] and combined.trust is not None
    assert combined.trust.tolist() == [1, 1, 0, 1, 1]


def test_multi_krum_weighs_those_it_keeps() -> None:
    combined = MultiKrum(1)(make_round([4, 0, 100, 1, 2], weights=[3, 1, 9, 1, 1]))
    assert combined.update.tolist() == [(3 * 4 + 0 + 1 + 2) / 6]


def test_squared_distances_are_a_variant_that_may_choose_another_update() -> None:
    # n = 6, m = 2: the two nearest count. 0: 1 + 4 = 5, squared 17; 102.6: 2.6 + 2.6 = 5.2, squared 13.52.
    round = make_round([-1, 0, 4, 100, 102.6, 105.2])
    assert Krum(2)(round).update.tolist() == [0]
    assert Krum(2, "squared")(round).update.tolist() == [102.6]


def test_multi_krum_without_malicious_clients_is_the_weighted_mean() -> None:
    round = random_round(1, 7, 4)
    expected = np.average(round.updates, axis=0, weights=round.weights)
    np.testing.assert_allclose(MultiKrum(0)(round).update, expected, rtol=1e-13)


@given(seed=st.integers(0, 999), shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3))
def test_krum_does_not_mind_order_shift_and_scale(seed: int, shift: float, scale: float) -> None:
    round = random_round(seed, 9, 5)
    chosen = Krum(2)(round).update
    mixed = reordered(round, np.random.default_rng(seed).permutation(9))
    assert Krum(2)(mixed).update.tolist() == chosen.tolist()
    moved = Krum(2)(make_round(round.updates * scale + shift)).trust
    assert moved is not None and round.updates[np.argmax(moved)].tolist() == chosen.tolist()


def naive_scores(updates: Array, m: int) -> list[float]:
    """By the letter of the thesis, one pair at a time."""
    every = [sorted(float(np.sqrt(((a - b) ** 2).sum())) for j, b in enumerate(updates) if j != i) for i, a in
             enumerate(updates)]  # fmt: skip
    return [sum(row[: len(updates) - m - 2]) for row in every]


@pytest.mark.parametrize(("n", "p"), [(7, 3), (40, 60)])  # by differences, and by blocks of a product
def test_scores_are_those_of_the_definition(n: int, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK", 7 * n)
    updates = random_round(3, n, p).updates
    np.testing.assert_allclose(krum_scores(updates, 2), naive_scores(updates, 2), rtol=1e-12)


@pytest.mark.parametrize("far", [0.0, 1e7])  # everybody far from zero
@pytest.mark.parametrize("huge", [1.0, 1e12])  # liars that send enormous updates
def test_blocks_of_a_product_do_not_cancel(far: float, huge: float) -> None:
    updates = far + np.random.default_rng(4).normal(size=(40, 60))
    updates[:8] *= huge
    found, expected = krum_scores(updates, 9), naive_scores(updates, 9)
    np.testing.assert_allclose(found[8:], expected[8:], rtol=1e-6)
    assert np.argmin(found) == np.argmin(expected)


def test_updates_that_overflow_a_square_lose() -> None:
    assert Krum(1)(make_round([4, 0, 1e300, 1, 2])).update.tolist() == [1]


def test_not_even_all_distances_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK", 1 << 17)
    updates = np.random.default_rng(6).normal(size=(1500, 8))
    tracemalloc.start()
    krum_scores(updates, 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1500 * 1500 / 3  # an array [n, n] of float64 would be 18 MB, [n, n, p] 144 MB
