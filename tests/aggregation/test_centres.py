"""Rules that draw updates to a centre: the geometric median, bounds on length, and mixing with neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from gathered_rounds import make_round, random_round, reordered
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from hushrank.aggregation.centred_clipping import CentredClipping
from hushrank.aggregation.geometric_median import GeometricMedian
from hushrank.aggregation.mixing import INNER, Mixing
from hushrank.aggregation.norm_bound import NormBounding
from hushrank.types import Array, Rule


def test_the_geometric_median_of_a_square_and_its_middle_is_the_middle() -> None:
    combined = GeometricMedian()(make_round([[0, 0], [2, 0], [0, 2], [2, 2], [1, 1]]))
    np.testing.assert_allclose(combined.update, [1, 1], atol=1e-9)


def test_on_a_line_the_geometric_median_is_the_weighted_median() -> None:
    round = make_round([0, 1, 2, 3, 1000], weights=[1, 1, 1, 1, 3])  # half of 7 is reached at 3
    np.testing.assert_allclose(GeometricMedian(1000)(round).update, [3], atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_geometric_median_has_the_smallest_sum_of_distances(seed: int) -> None:
    round = random_round(seed, 9, 4)

    def cost(point: Array) -> float:
        return float(round.weights @ np.linalg.norm(round.updates - point, axis=1))

    best = minimize(cost, round.updates.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    np.testing.assert_allclose(GeometricMedian(2000)(round).update, best.x, atol=1e-5)


def test_one_huge_update_moves_the_geometric_median_little() -> None:
    honest = np.random.default_rng(2).normal(size=(9, 3))
    calm, shaken = (GeometricMedian()(make_round([*honest, lie])).update for lie in (honest[0], 1e30 * np.ones(3)))
    assert np.linalg.norm(shaken - calm) < 1


def test_clients_that_all_say_the_same_have_that_as_their_geometric_median() -> None:
    combined = GeometricMedian()(make_round(np.full((4, 2), 3.0)))
    assert combined.update.tolist() == [3, 3] and combined.trust is not None and combined.trust.tolist() == [1] * 4


def test_a_norm_bound_shortens_what_is_longer() -> None:
    combined = NormBounding(5.0)(make_round([[3, 4], [30, 40], [0, 1]]))  # lengths 5, 50, 1
    np.testing.assert_allclose(combined.update, [(3 + 3 + 0) / 3, (4 + 4 + 1) / 3])
    assert combined.trust is not None and combined.trust.tolist() == [1, 0.1, 1]


def test_the_bound_is_the_median_length_unless_given() -> None:
    found = NormBounding()(make_round([1, 2, 90], weights=[1, 1, 2])).update  # the bound is 2
    np.testing.assert_allclose(found, [(1 + 2 + 2 * 2) / 4])
    np.testing.assert_allclose(NormBounding(norm_factor=2.0)(make_round([1, 2, 90])).update, [(1 + 2 + 4) / 3])


@pytest.mark.parametrize("rule", [NormBounding(), CentredClipping()])
def test_clients_that_learnt_nothing_do_not_silence_the_others(rule: Rule) -> None:
    combined = rule(make_round([0, 0, 0, 0, 1, 2, 90]))  # of those that learnt something the median is 2
    np.testing.assert_allclose(combined.update, [(1 + 2 + 2) / 7])
    assert rule(make_round([0, 0, 0])).update.tolist() == [0]


def test_the_radius_around_a_centre_is_that_of_clients_that_learnt_something() -> None:
    combined = CentredClipping()(make_round([0, 0, 0, 4, 6], memory={"centre": np.array([3.0])}))
    np.testing.assert_allclose(combined.update, [3 + (-2 - 2 - 2 + 1 + 2) / 5])  # 1 and 3 away: the radius is 2


@pytest.mark.parametrize("rule", [NormBounding(1e30), CentredClipping(1e30)])
def test_an_enormous_bound_over_an_update_of_zero_is_no_overflow(rule: Rule) -> None:
    assert rule(make_round([0, 1, 2])).update.tolist() == [1.0]


def test_centred_clipping_moves_the_centre_by_clipped_steps_and_remembers_it() -> None:
    first = CentredClipping(2.0)(make_round([1, 2, 90]))  # from 0: 1, 2 and 2
    np.testing.assert_allclose(first.update, [5 / 3])
    second = CentredClipping(2.0)(make_round([1, 2, 90], memory=first.memory))  # from 5/3: -2/3, 1/3 and 2
    np.testing.assert_allclose(second.update, [5 / 3 + (-2 / 3 + 1 / 3 + 2) / 3])
    assert second.trust is not None and second.trust[:2].tolist() == [1, 1] and second.trust[2] < 0.03
    twice = CentredClipping(2.0, clip_steps=2)(make_round([1, 2, 90]))
    np.testing.assert_allclose(twice.update, second.update)


@pytest.mark.parametrize("rule", [rule(bound) for rule in (NormBounding, CentredClipping) for bound in (1e9, 1e30)])
def test_with_a_wide_bound_they_are_the_weighted_mean(rule: Rule) -> None:
    round = random_round(3, 7, 4)
    np.testing.assert_allclose(rule(round).update, np.average(round.updates, axis=0, weights=round.weights), rtol=1e-12)


def test_mixing_replaces_each_update_by_the_mean_of_its_neighbours() -> None:
    # n = 4, m = 1: three neighbours. Those of 0, 1 and 3 are 0, 1, 3, mean 4/3; those of 99 are 1, 3, 99, mean 103/3.
    combined = Mixing(1, "median")(make_round([0, 1, 3, 99]))
    np.testing.assert_allclose(combined.update, [4 / 3])
    # They were chosen by 3, 4, 4 and 1 of four; in peace by three.
    assert combined.trust is not None and combined.trust.tolist() == [1, 1, 1, pytest.approx(1 / 3)]


def test_of_equally_distant_neighbours_the_first_are_taken() -> None:
    combined = Mixing(1, "median")(make_round([0, 5, 5, 5]))  # 0 mixes with the first two of the three
    np.testing.assert_allclose(combined.update, [5])


@pytest.mark.parametrize("inner", INNER)
def test_mixing_without_malicious_clients_is_the_weighted_mean_whatever_follows(inner: str) -> None:
    round = random_round(4, 7, 3)
    expected = np.average(round.updates, axis=0, weights=round.weights)
    np.testing.assert_allclose(Mixing(0, inner)(round).update, expected, rtol=1e-9)


@given(seed=st.integers(0, 999), scale=st.floats(1e-3, 1e3))
def test_order_does_not_matter_and_scale_passes_through(seed: int, scale: float) -> None:
    round = random_round(seed, 9, 5)
    order = np.random.default_rng(seed).permutation(9)
    steady = [inner for inner in INNER if "krum" not in inner]  # Why: mixtures may tie, and it takes the first
    rules: list[Rule] = [GeometricMedian(), NormBounding(), CentredClipping(), *(Mixing(2, inner) for inner in steady)]
    for rule in rules:
        # Why: mixtures coincide, and rounding decides where the steps of its median end, within its smoothing of 1e-6
        slack = 2e-6 if rule == Mixing(2, "geometric-median") else 1e-10
        combined, mixed = rule(round), rule(reordered(round, order))
        np.testing.assert_allclose(mixed.update, combined.update, rtol=1e-8, atol=slack)
        assert combined.trust is not None and mixed.trust is not None
        np.testing.assert_allclose(mixed.trust, combined.trust[order], rtol=1e-6, atol=slack)
        assert ((combined.trust >= 0) & (combined.trust <= 1)).all()
        larger = rule(make_round(round.updates * scale, weights=round.weights))
        np.testing.assert_allclose(larger.update, combined.update * scale, rtol=1e-6, atol=max(slack, 1e-8) * scale)
