"""Noise that takes part of itself back: what it hides, exactly, and how much of it a ranker keeps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hushrank.privacy.banded import BITS, coefficients, column_norm, count_answers, next_noise, sum_errors
from hushrank.types import Array


def all_noise(fresh: Array, width: int) -> Array:
    """[rounds, n] w of z [rounds, n]."""
    past, found = np.zeros((width - 1, fresh.shape[1]), np.int64), []
    for each in fresh:
        found.append(next_noise(past, each))
        past = np.concatenate([found[-1][None], past])[: width - 1]
    return np.array(found)


def band(rounds: int, width: int) -> Array:
    """[rounds, rounds] C in units of 2^-BITS."""
    made = np.zeros((rounds, rounds), np.int64)
    for j, each in enumerate(coefficients(width)):
        made += np.diag([each] * (rounds - j), -j) if j < rounds else 0
    return made


@pytest.mark.parametrize("width", [1, 2, 5, 12])
def test_what_is_published_is_a_function_of_the_noisy_product_alone(width: int) -> None:
    """Other updates, and fresh noise that makes up for them in C x + z: every published number is the same."""
    rng, rounds = np.random.default_rng(5), 20
    x, other = rng.integers(-1000, 1000, (2, rounds, 3))
    z = rng.integers(-(2**30), 2**30, (rounds, 3))
    z_other = z + band(rounds, width) @ (x - other)
    np.testing.assert_array_equal(x + all_noise(z, width), other + all_noise(z_other, width))
    assert np.any(x != other)


def test_coefficients_are_the_square_root_of_summation() -> None:
    rounds = 40
    root = band(rounds, rounds) / 2**BITS
    np.testing.assert_allclose(root @ root, np.tril(np.ones((rounds, rounds))), atol=0.01)
    assert coefficients(1) == (2**BITS,) and coefficients(3) == (1024, 512, 384)
    with pytest.raises(ValueError, match="at least 1"):
        coefficients(0)


@pytest.mark.parametrize(("rounds", "separation"), [(7, 2), (8, 3), (9, 4)])
def test_no_way_to_answer_moves_the_product_further_than_is_accounted_for(rounds: int, separation: int) -> None:
    """Every choice of rounds that keeps the rests, with answers of norm 1 that point anywhere: worst are signs."""
    c, worst = band(rounds, separation) / 2**BITS, 0.0
    for n in range(1, rounds + 1):
        for chosen in itertools.combinations(range(rounds), n):
            if all(b - a >= separation for a, b in itertools.pairwise(chosen)):
                for signs in itertools.product((-1.0, 1.0), repeat=n):
                    answers = np.zeros(rounds)
                    answers[list(chosen)] = signs
                    worst = max(worst, float(np.linalg.norm(c @ answers)))
    limit = math.sqrt(count_answers(rounds, separation)) * column_norm(separation)
    assert limit * 0.85 < worst <= limit  # the last answers' columns end with the training


def test_without_rests_it_would_be_moved_further() -> None:
    """Why the separation must be kept: answers in a row meet in the product."""
    c = band(8, 4) / 2**BITS
    assert np.linalg.norm(c @ np.ones(8)) > 1.5 * math.sqrt(8) * column_norm(4)


def test_the_sum_of_rounds_keeps_little_noise() -> None:
    rng, rounds, width = np.random.default_rng(9), 64, 8
    fresh = np.rint(rng.normal(0.0, 2.0**30, (rounds, 4000))).astype(np.int64)
    found = np.cumsum(all_noise(fresh, width), axis=0).std(axis=1) / 2.0**20
    np.testing.assert_allclose(found, sum_errors(rounds, width), rtol=0.06)
    assert found[-1] < 0.5 * math.sqrt(rounds)  # independent noise keeps all of it
    np.testing.assert_allclose(sum_errors(rounds, 1), np.sqrt(np.arange(1, rounds + 1)))


def test_resting_costs_little_and_independent_noise_much() -> None:
    """Noise in the mean of the last ranker at equal epsilon, relative to everybody in every round: one tenth each."""
    rounds, rest = 1000, 10
    everybody = math.sqrt(rounds) * math.sqrt(rounds)  # deviation of a round's noise * that of the sum
    independent = rest * math.sqrt(count_answers(rounds, rest)) * math.sqrt(rounds)
    correlated = rest * math.sqrt(count_answers(rounds, rest)) * column_norm(rest) * sum_errors(rounds, rest)[-1]
    assert correlated / everybody == pytest.approx(1.2, abs=0.02)
    assert independent / everybody == pytest.approx(3.2, abs=0.05)


def test_answers_that_rests_allow() -> None:
    assert [count_answers(rounds, 4) for rounds in (1, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]
    assert count_answers(100, 1) == 100
