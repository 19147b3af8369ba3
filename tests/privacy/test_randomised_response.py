"""Randomised response and Laplace noise on rewards: by hand, their mean and spread, and what they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.metrics.max_rr import max_rr_values
from hushrank.privacy.laplace_reward import add_laplace, noisy_range, privatise_range_reward
from hushrank.privacy.randomised_response import (
    epsilon_bound,
    p_for_epsilon,
    privatise_reward,
    randomise_values,
    total_epsilon,
)
from hushrank.streams import draw_bits, seed_key
from hushrank.types import Array, PrivateReward, SeedReward

VALUES = max_rr_values(10)
ALWAYS, NEVER = 0, 2**32 - 1  # first words with which p = .9 tells the truth, and does not


def words(*shape: int, seed: int = 1) -> Array:
    return draw_bits(seed_key(seed), math.prod(shape)).reshape(shape)


def raw_reward(*rewards: list[float]) -> SeedReward:
    return SeedReward(7, np.array(rewards))


def test_each_interaction_is_answered_and_then_each_direction_averaged() -> None:
    # values 0, .5, 1: a lie with second word w is the w-th of the other two
    draws = np.array([[[ALWAYS, 0], [NEVER, 0]], [[NEVER, 1], [NEVER, 3]]], dtype=np.uint32)
    sent = privatise_reward(raw_reward([1.0, 0.5], [0.5, 0.0]), (0.0, 0.5, 1.0), p=0.9, draws=draws)
    assert isinstance(sent, PrivateReward) and sent.seed == 7
    assert sent.rewards == ((1.0 + 0.0) / 2, (1.0 + 1.0) / 2)  # truth 1, others of .5: 0; of .5: 1, of 0: 1


def test_p_of_one_sends_the_means_and_promises_nothing() -> None:
    sent = privatise_reward(raw_reward([1.0, 0.5], [0.25, 0.25]), VALUES, p=1, draws=words(2, 2, 2))
    assert sent.rewards == (0.75, 0.25)
    assert sent.guarantee.startswith("no guarantee")


@pytest.mark.parametrize(("p", "truth"), [(0.9, 0.0), (0.5, 1 / 3), (0.15, 1.0)])
def test_the_truth_is_told_with_p_and_all_others_alike(p: float, truth: float) -> None:
    n = 40_000
    answers = randomise_values(np.full(n, truth), VALUES, p=p, draws=words(n, 2))
    for value in VALUES:
        share = p if value == truth else (1 - p) / 10
        assert (answers == value).mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / n))


def test_the_mean_answer_is_the_reward_scaled_and_shifted() -> None:
    n, p, k = 100_000, 0.5, len(VALUES)
    for truth in (0.0, 1.0):
        answers = randomise_values(np.full(n, truth), VALUES, p=p, draws=words(n, 2, seed=3))
        constant = (1 - p) / (k - 1) * sum(VALUES)
        expected = truth * (p * k - 1) / (k - 1) + constant  # [foltr-es, Eq. 7]
        assert answers.mean() == pytest.approx(expected, abs=4 * answers.std() / np.sqrt(n))


def test_the_bound_by_hand() -> None:
    assert epsilon_bound(0.9, 11) == pytest.approx(math.log(0.9 * 10 / 0.1)) == pytest.approx(4.4998, abs=1e-4)
    assert epsilon_bound(1, 11) == math.inf


@given(st.floats(0.001, 20), st.integers(2, 200))
def test_p_for_epsilon_is_the_inverse(epsilon: float, n_values: int) -> None:
    p = p_for_epsilon(epsilon, n_values)
    assert epsilon_bound(p, n_values) == pytest.approx(epsilon, rel=1e-6)


def test_the_chances_of_any_answer_differ_by_at_most_the_bound() -> None:
    p, n = 0.7, 4
    truth, other = p, (1 - p) / (n - 1)
    assert math.log(truth / other) == pytest.approx(epsilon_bound(p, n))


def test_interactions_and_rounds_add_up() -> None:
    assert total_epsilon(4.5, n_interactions=4, rounds=250) == 4.5 * 1000
    sent = privatise_reward(raw_reward([1.0, 0.5], [0.25, 0.5]), VALUES, p=0.9, draws=words(2, 2, 2))
    assert (
        "epsilon 4.5 if another takes its place (replace-one)" in sent.guarantee
        and "in this message: 4, together epsilon 18;" in sent.guarantee
    )
    assert "including the server" in sent.guarantee and "every further round adds as much" in sent.guarantee


@pytest.mark.parametrize("p", [1 / 11, 0.05, 0, -1, 1.01, math.nan])
def test_a_p_that_teaches_nothing_or_is_none_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match=r"p is .*, must be above 1/n = 0.09091 \(n = 11 values\) and at most 1"):
        randomise_values(np.array([1.0]), VALUES, p=p, draws=words(1, 2))


@pytest.mark.parametrize("reward", [0.4, -0.1, 1.1, math.nan, 1 / 11])
def test_a_reward_outside_the_declared_set_is_refused_without_being_told(reward: float) -> None:
    with pytest.raises(ValueError, match="a reward is outside the declared set of 11 values") as caught:
        privatise_reward(raw_reward([1.0, reward]), VALUES, p=0.9, draws=words(1, 2, 2))
    assert str(reward) not in str(caught.value)


def test_other_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match=r"draws are \(2,\), must be two uint32 words for each of \(1,\) rewards"):
        randomise_values(np.array([1.0]), VALUES, p=0.9, draws=words(2))
    with pytest.raises(ValueError, match="must be ascending and different"):
        randomise_values(np.array([1.0]), (1.0, 1.0), p=0.9, draws=words(1, 2))
    with pytest.raises(ValueError, match="n_values is 1, must be at least 2"):
        epsilon_bound(0.9, 1)
    with pytest.raises(ValueError, match="epsilon is 0, must be > 0"):
        p_for_epsilon(0, 11)
    with pytest.raises(ValueError, match="rounds is 0, must be at least 1"):
        total_epsilon(1.0, rounds=0)


def test_laplace_noise_has_the_reward_as_its_mean_and_the_spread_of_its_scale() -> None:
    n, epsilon, low, high = 100_000, 2.0, -1.0, 3.0
    noisy = add_laplace(np.full(n, 0.5), low=low, high=high, epsilon=epsilon, draws=words(n, 2))
    scale = (high - low) / epsilon
    assert noisy.mean() == pytest.approx(0.5, abs=4 * scale * np.sqrt(2 / n))  # variance 2 scale^2
    assert noisy.var() == pytest.approx(2 * scale**2, rel=4 * np.sqrt(5 / n) + 0.01)  # kurtosis 6; .01 is cut off
    assert np.abs(noisy - 0.5).mean() == pytest.approx(scale, rel=4 / np.sqrt(n) + 0.001)


def test_noisy_rewards_stand_on_one_grid_whatever_the_truth() -> None:
    draws = words(500, 2)
    for truth in (0.0, 1 / 3, 0.77, 1.0):
        noisy = add_laplace(np.full(500, truth), low=0.0, high=1.0, epsilon=1.5, draws=draws)
        steps = noisy * 1.5 * 1024  # 1,024 steps per scale of 1 / 1.5
        assert np.allclose(steps, np.round(steps), atol=1e-6)


def test_no_noisy_reward_is_likelier_by_more_than_epsilon() -> None:
    """Every 2^12-th of the first words, both signs: the share of each step that is hit often enough to be compared."""
    epsilon = 1.0
    first = np.arange(2**20, dtype=np.uint64) * 2**12
    draws = np.stack([np.tile(first, 2), np.repeat([0, 1], len(first))], axis=-1).astype(np.uint32)
    seen = [
        np.round(add_laplace(np.full(len(draws), truth), low=0.0, high=1.0, epsilon=epsilon, draws=draws) * 1024)
        for truth in (0.0, 1.0)
    ]
    counts = [np.bincount((steps + 12 * 1024).astype(int), minlength=24 * 1024) for steps in seen]
    often = (counts[0] > 300) & (counts[1] > 300)
    assert often.sum() > 1000
    assert np.abs(np.log(counts[0][often] / counts[1][often])).max() <= epsilon + 0.01


def test_privatised_range_rewards_are_means_of_each_direction_and_within_the_noisy_range() -> None:
    raw = raw_reward([0.2, 0.4], [0.9, 1.0])
    sent = privatise_range_reward(raw, low=0.0, high=1.0, epsilon=3.0, draws=words(2, 2, 2))
    noisy = add_laplace(raw.rewards, low=0.0, high=1.0, epsilon=3.0, draws=words(2, 2, 2))
    assert sent.rewards == pytest.approx(noisy.mean(axis=1), rel=1e-6) and sent.seed == 7
    low, high = noisy_range(0.0, 1.0, epsilon=3.0)
    assert (low, high) == (-10 / 3, 1 + 10 / 3) and all(low <= reward <= high for reward in sent.rewards)
    assert "epsilon 3 if another" in sent.guarantee


def test_misuse_of_laplace_noise_is_refused() -> None:
    one: dict[str, Any] = {"low": 0.0, "high": 1.0, "epsilon": 1.0, "draws": words(1, 2)}
    with pytest.raises(ValueError, match=r"a reward is outside the stated range from 0.0 to 1.0"):
        add_laplace(np.array([1.5]), **one)
    with pytest.raises(ValueError, match="epsilon is 0, must be above 0 and at most 20"):
        add_laplace(np.array([0.5]), **{**one, "epsilon": 0})
    with pytest.raises(ValueError, match=r"the range goes from 1.0 to 1.0"):
        add_laplace(np.array([0.5]), **{**one, "low": 1.0})
    with pytest.raises(ValueError, match=r"draws are \(1,\), must be two uint32 words"):
        add_laplace(np.array([0.5]), **{**one, "draws": words(1)})
