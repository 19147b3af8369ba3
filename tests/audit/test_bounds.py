"""The bounds on epsilon: closed forms, limits, and brute force over every outcome of small mechanisms."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from hushrank.audit.bounds import (
    Guesses,
    chance_of_guesses,
    event_epsilon,
    guesses_epsilon,
    normal_distance,
    rate_above,
    rate_below,
)


def test_an_interval_of_no_hits_and_of_all_hits_has_a_closed_form() -> None:
    assert float(rate_below(np.asarray(0), 20, failure=0.01)) == 0.0
    assert float(rate_above(np.asarray(20), 20, failure=0.01)) == 1.0
    assert float(rate_above(np.asarray(0), 20, failure=0.01)) == pytest.approx(1 - 0.01 ** (1 / 20))  # (1 - r)^20 = .01
    assert float(rate_below(np.asarray(20), 20, failure=0.01)) == pytest.approx(0.01 ** (1 / 20))  # r^20 = .01


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 0.97])
def test_an_interval_misses_the_rate_at_most_as_often_as_said(rate: float) -> None:
    n, failure = 40, 0.05
    chances = np.array([math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)])
    counts = np.arange(n + 1)
    assert chances[rate_below(counts, n, failure=failure) > rate].sum() <= failure
    assert chances[rate_above(counts, n, failure=failure) < rate].sum() <= failure


def test_an_event_shows_the_logarithm_of_its_odds_less_delta() -> None:
    assert float(event_epsilon(np.asarray(0.5), np.asarray(0.1), delta=0.1)) == pytest.approx(math.log(4.0))
    assert float(event_epsilon(np.asarray(0.1), np.asarray(0.5), delta=0.0)) == pytest.approx(-math.log(5.0))
    assert float(event_epsilon(np.asarray(0.05), np.asarray(0.0), delta=0.1)) == -math.inf


def test_two_normal_numbers_that_are_two_deviations_apart_are_found_to_be() -> None:
    above = [0.5 * math.erfc(x / math.sqrt(2)) for x in (-0.5, 1.5)]  # P(N(2, 1) > 1.5), P(N(0, 1) > 1.5)
    assert float(normal_distance(np.asarray(above[0]), np.asarray(above[1]))) == pytest.approx(2.0)


def chance_by_hand(n_right: list[int], chances: list[float], v: int) -> float:
    return sum(chance for right, chance in zip(n_right, chances, strict=True) if right >= v)


@pytest.mark.parametrize("m", [1, 3, 6])
def test_randomised_responses_of_every_canary_reach_the_pure_bound(m: int) -> None:
    """Each bit told truly with e / (1 + e): the worst mechanism of epsilon 1, all 2^m outcomes by hand."""
    truth = math.e / (1 + math.e)
    told = list(product((True, False), repeat=m))  # which canaries' bits are told as they are
    chances = [math.prod(truth if is_true else 1 - truth for is_true in each) for each in told]
    for v in range(m + 1):
        brute = chance_by_hand([sum(each) for each in told], chances, v)
        assert chance_of_guesses(Guesses(m, m, v), epsilon=1.0, delta=0.0) == pytest.approx(brute)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_guesses_from_a_common_noisy_count_are_dependent_and_keep_to_the_bound(epsilon: float) -> None:
    """A count of five canaries with two-sided geometric noise: one number, all guesses made of it. Every count of
    canaries and every noise up to 60 by hand. Clopper and Pearson's interval would take them for independent."""
    m, a = 5, math.exp(-epsilon)
    noise = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-60, 61)}
    outcomes: dict[int, float] = {}
    for bits in product((0, 1), repeat=m):
        for z, chance in noise.items():
            guess = int(sum(bits) + z > m / 2)  # for all alike
            right = sum(bit == guess for bit in bits)
            outcomes[right] = outcomes.get(right, 0.0) + chance / 2**m
    for v in range(m + 1):
        brute = sum(chance for right, chance in outcomes.items() if right >= v)
        assert brute <= chance_of_guesses(Guesses(m, m, v), epsilon=epsilon, delta=0.0) + 1e-12


@pytest.mark.parametrize("delta", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("n_betrayed", [1, 2, 5])
def test_bits_betrayed_with_probability_delta_keep_to_the_bound(delta: float, n_betrayed: int) -> None:
    """Five bits by responses of epsilon 1, but `n_betrayed` of them told as they are with a probability that makes each
    canary's chance of being betrayed delta: (1, delta) holds for every canary."""
    m, truth = 5, math.e / (1 + math.e)
    betrayal = min(1.0, delta * m / n_betrayed)  # a random set of n_betrayed has each canary with n_betrayed / m

    def at_least(n: int, v: int) -> float:
        return sum(math.comb(n, k) * truth**k * (1 - truth) ** (n - k) for k in range(max(v, 0), n + 1))

    for v in range(1, m + 1):
        brute = betrayal * at_least(m - n_betrayed, v - n_betrayed) + (1 - betrayal) * at_least(m, v)
        pure = chance_of_guesses(Guesses(m, m, v), epsilon=1.0, delta=0.0)
        assert pure < brute <= chance_of_guesses(Guesses(m, m, v), epsilon=1.0, delta=delta) + 1e-12


def test_what_delta_adds_is_the_formula_worked_by_hand() -> None:
    """m = 3, v = 2, epsilon 0: W of 3 fair coins is 0, 1, 2, 3 with 1, 3, 3, 1 eighths. P(W >= 2) = 4/8; the largest of
    P(W = 1) / 1 = 3/8 and P(W in 0..1) / 2 = 2/8 is 3/8; so 4/8 + 2 * 3 * .01 * 3/8."""
    found = chance_of_guesses(Guesses(3, 3, 2), epsilon=0.0, delta=0.01)
    assert found == pytest.approx(0.5 + 6 * 0.01 * 0.375)


def test_the_bound_of_guesses_is_where_their_chance_is_the_failure() -> None:
    guesses = Guesses(1000, 400, 330)
    epsilon = guesses_epsilon(guesses, delta=1e-6, failure=0.001)
    assert chance_of_guesses(guesses, epsilon=epsilon, delta=1e-6) == pytest.approx(0.001, rel=0.01)
    assert guesses_epsilon(Guesses(100, 100, 50), delta=0.0, failure=0.001) == 0.0  # as good as guessing blindly
