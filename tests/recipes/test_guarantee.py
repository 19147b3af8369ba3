"""What a recipe's protection guarantees, in numbers and in words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hushrank.federation.summation import MaskedSum, OpenSum
from hushrank.privacy.accounting import Training, training_epsilon
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.sum_format import SumFormat
from hushrank.recipes.guarantee import explain_guarantee, protection_of, summation_of
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve_method

OPEN = OpenUpdates()
SAMPLED = {"privacy": "sound", "noise_multiplier": 4.0, "rounds": 20, "n_clients": 100, "cohort": 10}


def recipe_with(**changes: Any) -> Recipe:
    return change_recipe(NAMED["fpdgd"], changes)


def explain(recipe: Recipe) -> dict[str, Any]:
    found = explain_guarantee(recipe, resolve_method(recipe, n_features=46))
    assert found is not None
    return found


def test_a_cohort_of_fixed_size_makes_epsilon_no_smaller() -> None:
    found = explain(recipe_with(**SAMPLED))
    assert found["epsilon"] == pytest.approx(training_epsilon(Training("gaussian", 4.0, 20), delta=1e-5))
    assert found["sampling"] == 1.0 and "Every round counts in full" in found["guarantee"]
    assert found["epsilon"] == explain(recipe_with(**{**SAMPLED, "cohort": 100}))["epsilon"]


def test_poisson_sampling_does_and_says_against_whom() -> None:
    found = explain(recipe_with(**SAMPLED, sampling="poisson"))
    assert found["epsilon"] == pytest.approx(training_epsilon(Training("gaussian", 4.0, 20, sampling=0.1), delta=1e-5))
    assert found["epsilon"] < explain(recipe_with(**SAMPLED))["epsilon"] / 5
    assert found["sampling"] == 0.1 and found["adjacency"] == "zero-out"
    assert "with probability 0.1, independently" in found["guarantee"]
    assert "while it stays and answers (zero-out)" in found["guarantee"]
    assert "a client's own ledger counts every round that it answers in full" in found["guarantee"]


SHARED = {"noise_at": "clients", "n_honest": 8}


def test_clients_noise_counts_every_round_in_full_because_the_server_knows_whom_it_asked() -> None:
    found = explain(recipe_with(**SAMPLED, **SHARED, sampling="poisson"))
    assert found["epsilon"] == pytest.approx(training_epsilon(Training("gaussian", 4.0, 20), delta=1e-5))
    assert found["sampling"] == 1.0 and found["noise_at"] == "clients" and found["n_honest"] == 8
    assert "the server included if a secure sum hides single ones" in found["guarantee"]


def test_with_a_secure_sum_the_guarantee_says_that_the_server_sees_the_sum_alone() -> None:
    found = explain(recipe_with(**SAMPLED, **SHARED, secure_sum=True))
    assert "everybody, the server included, which sees only the sum of a round" in found["guarantee"]
    assert "as long as 8 clients add their noise honestly; with fewer answers a round is lost" in found["guarantee"]
    published = explain(recipe_with(privacy="paper", epsilon=4.5, secure_sum=True))
    assert published["guarantee"].endswith("a secure sum shows the server no single upload")
    assert "secure sum" not in explain(recipe_with(privacy="paper", epsilon=4.5))["guarantee"]


def test_noise_stands_on_the_grid_of_a_secure_sums_whole_numbers() -> None:
    recipe = recipe_with(**{**SAMPLED, "n_clients": 20_000, "cohort": 20_000}, **SHARED, secure_sum=True)
    summation, mechanism = summation_of(recipe, protection_of(recipe, n_params=46), n_params=46)
    assert isinstance(mechanism, NoisySum) and summation.is_secure
    assert (format := summation.format) is not None
    assert mechanism.step == format.step > 0.1 / 2**20 and format.n_clients == 20_000
    deviation = 0.4 / 8**0.5 * (1 + 1 / 8**2) ** 0.5  # of a share, on the coarsest grid that is allowed
    assert format.largest == pytest.approx(0.1 + deviation * math.sqrt(2 * math.log(2 * 20_000 * 46 / 1e-12)))
    assert format.wraps
    unbounded, nothing = summation_of(
        recipe_with(secure_sum=True, sum_bound=3.0, interactions=[2, 5]), OPEN, n_params=46
    )
    assert nothing == OPEN and unbounded == MaskedSum(SumFormat(3.0, 1000, 5))
    assert summation_of(recipe_with(**SAMPLED), OPEN, n_params=46) == (OpenSum(), OPEN)


def test_a_wanted_epsilon_needs_less_noise_with_poisson_sampling_and_the_ledger_pays_for_it() -> None:
    wanted = {**SAMPLED, "noise_multiplier": "none", "epsilon": 1.0, "mechanism": "laplace"}
    fixed, drawn = (
        protection_of(recipe_with(**wanted, sampling=sampling), n_params=46) for sampling in ("fixed", "poisson")
    )
    assert isinstance(fixed, NoisySum) and isinstance(drawn, NoisySum)
    assert drawn.noise_multiplier < fixed.noise_multiplier / 3
    assert explain(recipe_with(**wanted, sampling="poisson"))["epsilon"] == pytest.approx(1.0, rel=2e-3)
    assert drawn.spend().ratio == 1 / drawn.noise_multiplier > fixed.spend().ratio  # what a round costs who was asked
