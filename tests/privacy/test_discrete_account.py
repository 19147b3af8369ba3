"""What discrete noise costs: divergences computed on its support are at most what is claimed."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from hushrank.privacy.accounting import Training, gaussian_epsilon, training_epsilon
from hushrank.privacy.discrete_account import NoiseGrid, discrete_epsilon, share_distance
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import SoundLaplace
from hushrank.privacy.protection import Exposure
from hushrank.privacy.renyi import Spend, renyi_cost
from hushrank.types import Array

REACH = 400  # of the supports: beyond, less than 1e-16 is left of any law here


def gaussian_law(deviation: float) -> Array:
    """[2 REACH + 1] of the numbers from -REACH to REACH."""
    weights = np.exp(-(np.arange(-REACH, REACH + 1.0) ** 2) / (2 * deviation**2))
    return np.asarray(weights / weights.sum())


def laplace_law(scale: float) -> Array:
    weights = np.exp(-np.abs(np.arange(-REACH, REACH + 1.0)) / scale)
    return np.asarray(weights / weights.sum())


def moved(law: Array, steps: int) -> Array:
    return np.roll(law, steps)


def divergence(here: Array, there: Array, epsilon: float) -> float:
    """The hockey stick: the largest P(S) - e^epsilon P'(S)."""
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


def of_two(first: Array, second: Array) -> Array:
    return np.multiply.outer(first, second).ravel()


@pytest.mark.parametrize("deviation", [1.0, 1.5, 4.0])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8])
def test_a_claim_is_never_less_than_the_divergence_of_discrete_gaussian_noise(
    deviation: float, ratio: float, delta: float
) -> None:
    law, steps = gaussian_law(deviation), math.ceil(ratio * deviation)
    continuous = partial(_gaussian, steps / deviation)
    claimed = discrete_epsilon(continuous, delta=delta, deviation=deviation, n_values=1)
    assert divergence(law, moved(law, steps), claimed) <= delta


def _gaussian(ratio: float, delta: float) -> float:
    return gaussian_epsilon(ratio, delta=delta)


def test_the_continuous_epsilon_alone_would_be_too_little() -> None:
    """So the addition is needed: on a coarse grid a discrete law is told apart better, here with delta 1.6 times."""
    law, delta = gaussian_law(1.0), 1e-5
    assert divergence(law, moved(law, 1), _gaussian(1.0, delta)) > 1.5 * delta


@pytest.mark.parametrize(("steps", "rounds"), [((2, 0), 1), ((2, 1), 1), ((1, 1), 1), ((2, 2), 2)])
def test_the_claim_holds_for_several_numbers_and_rounds(steps: tuple[int, int], rounds: int) -> None:
    deviation, delta = 3.0, 1e-4
    law = gaussian_law(deviation)[REACH - 45 : REACH + 46]  # within 15 deviations
    here, there = of_two(law, law), of_two(moved(law, steps[0]), moved(law, steps[1]))
    clip_steps = math.hypot(*steps) / math.sqrt(rounds)  # the two numbers are of one round, or of one each
    training = Training("gaussian", deviation / clip_steps, rounds, grid=NoiseGrid(clip_steps, 2 // rounds))
    assert divergence(here, there, training_epsilon(training, delta=delta)) <= delta


@pytest.mark.parametrize("q", [0.1, 0.6])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_the_claim_holds_with_sampling_in_both_directions(q: float, accountant: str) -> None:
    deviation, steps, delta = 3.0, 3, 1e-4
    without = gaussian_law(deviation)
    drawn = (1 - q) * without + q * moved(without, steps)
    training = Training("gaussian", deviation / steps, 1, sampling=q, grid=NoiseGrid(steps, 1))
    claimed = training_epsilon(training, delta=delta, accountant=accountant)
    assert divergence(drawn, without, claimed) <= delta and divergence(without, drawn, claimed) <= delta


@pytest.mark.parametrize(("variance", "n_shares"), [(1.0, 2), (1.0, 5), (2.0, 3)])
def test_the_sum_of_gaussian_shares_is_as_near_to_a_gaussian_as_stated(variance: float, n_shares: int) -> None:
    total = share = gaussian_law(math.sqrt(variance))
    for _ in range(n_shares - 1):
        total = np.convolve(total, share, mode="same")
    ideal = gaussian_law(math.sqrt(n_shares * variance))
    seen = ideal > 1e-12  # Why: below, the convolution's rounding is larger
    assert np.abs(np.log(total[seen] / ideal[seen])).max() <= share_distance(variance, n_shares=n_shares) < 2e-3
    claimed = discrete_epsilon(
        partial(_gaussian, 1.0), delta=1e-4, deviation=math.sqrt(n_shares * variance), n_values=1, n_shares=n_shares
    )
    steps = math.floor(math.sqrt(n_shares * variance))
    assert divergence(total, moved(total, steps), claimed) <= 1e-4


def test_shares_that_are_too_small_are_worth_nothing() -> None:
    assert share_distance(0.9, n_shares=2) == math.inf and share_distance(0.9, n_shares=1) == 0.0
    assert discrete_epsilon(partial(_gaussian, 1.0), delta=1e-5, deviation=1.0, n_values=9, n_shares=2) == math.inf


@pytest.mark.parametrize(("noise_multiplier", "clip_steps"), [(0.5, 1), (0.5, 4), (1.3, 3), (2.0, 1), (3.3, 7)])
def test_discrete_laplace_noise_is_covered_by_continuous_noise(noise_multiplier: float, clip_steps: int) -> None:
    """delta(e) of continuous noise that is moved by r scales is 1 - e^((e - r) / 2)."""
    mechanism = on_steps(noise_multiplier, clip_steps)
    law, ratio = laplace_law(mechanism.whole_scale), 1 / noise_multiplier
    for epsilon in np.linspace(0.0, 1.1 * ratio, 60):
        most = max(0.0, -math.expm1((epsilon - ratio) / 2))
        for k in range(1, clip_steps + 1):
            assert divergence(law, moved(law, k), epsilon) <= most + 1e-15
    assert np.abs(np.log(law / moved(law, clip_steps)))[clip_steps:-clip_steps].max() <= ratio * (1 + 1e-12)


@pytest.mark.parametrize("steps", [(1, 2), (2, 1), (1, 1)])
def test_two_numbers_are_covered_too_and_in_the_currency_of_ledgers(steps: tuple[int, int]) -> None:
    law = laplace_law(on_steps(1.3, 3).whole_scale)[REACH - 150 : REACH + 151]
    here, there = of_two(law, law), of_two(moved(law, steps[0]), moved(law, steps[1]))
    for epsilon in np.linspace(0.0, 0.8, 30):
        assert divergence(here, there, epsilon) <= max(0.0, -math.expm1((epsilon - 1 / 1.3) / 2)) + 1e-12
    for order in (1.5, 2.0, 8.0):
        cost = math.log(float((here**order * there ** (1 - order)).sum())) / (order - 1)
        assert cost <= renyi_cost(Spend("laplace", 1 / 1.3), order)


def on_steps(noise_multiplier: float, clip_steps: int) -> SoundLaplace:
    return SoundLaplace(float(clip_steps), noise_multiplier, least_step=1.0)


def test_without_rounding_the_scale_up_it_would_not_be_covered() -> None:
    law = laplace_law(4.0)  # z C = 2 * 2, and not 5
    assert divergence(law, moved(law, 1), 0.0) > -math.expm1(-1 / 4 / 2)


@pytest.mark.parametrize("order", [1.1, 2.0, 16.0])
def test_the_discrete_gaussian_costs_a_ledger_no_more_than_the_continuous(order: float) -> None:
    numbers = np.arange(-200, 201.0)  # ln of the weights: powers of them are beyond float64
    here, there = -(numbers**2) / 8, -((numbers - 1) ** 2) / 8
    terms = order * here + (1 - order) * there - math.log(np.exp(here).sum())
    cost = math.log(np.exp(terms).sum()) / (order - 1)
    assert cost <= renyi_cost(Spend("gaussian", 1 / 2.0), order) * (1 + 1e-12)


EXPOSURE = Exposure(n_params=46, cohort=1000, rounds=50, delta=1e-5)


@pytest.mark.parametrize(("placement", "step"), [((), 2.0**-4), (("clients", 900), 2.0**-7)])
def test_a_training_is_explained_with_what_its_grid_costs(placement: tuple[Any, ...], step: float) -> None:
    fine = SoundGaussian(0.1, 26.39, *placement)
    ideal = training_epsilon(Training("gaussian", 26.39, 50), delta=1e-5)
    assert ideal < fine.explain(EXPOSURE)["epsilon"] < ideal * (1 + 1e-6)
    coarse = replace(fine, least_step=step)
    more = 46 * 50 / 12 / (26.39 * 0.1 / step) ** 2  # n / (12 s^2) and a little for the tails: .11 with 42 steps
    assert more < coarse.explain(EXPOSURE)["epsilon"] - ideal < 1.5 * more


def test_the_noise_for_an_epsilon_is_found_on_its_grid() -> None:
    for placement in ((), ("clients", 3)):
        found = SoundGaussian(0.1, 0.0, *placement).fit(1.0, EXPOSURE)
        assert 0.998 < found.explain(EXPOSURE)["epsilon"] <= 1.0
