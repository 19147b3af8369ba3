"""What a recipe's protection guarantees, in numbers and in words."""

from __future__ import annotations

from typing import Any

import pytest

from hushrank.experiments.guarantee import explain_protection, protection_of
from hushrank.experiments.recipe import NAMED, Recipe, change_recipe
from hushrank.privacy.accounting import Training, training_epsilon
from hushrank.privacy.noisy_sum import NoisySum

SAMPLED = {"privacy": "sound", "noise_multiplier": 4.0, "rounds": 20, "n_clients": 100, "cohort": 10}


def recipe_with(**changes: Any) -> Recipe:
    return change_recipe(NAMED["fpdgd"], changes)


def explain(recipe: Recipe) -> dict[str, Any]:
    protection = protection_of(recipe)
    assert protection is not None
    return explain_protection(recipe, protection, n_params=46)


def test_a_cohort_of_fixed_size_makes_epsilon_no_smaller() -> None:
    found = explain(recipe_with(**SAMPLED))
    assert found["epsilon"] == training_epsilon(Training("gaussian", 4.0, 20), delta=1e-5)
    assert found["sampling"] == 1.0 and "Every round counts in full" in found["guarantee"]
    assert found["epsilon"] == explain(recipe_with(**{**SAMPLED, "cohort": 100}))["epsilon"]


def test_poisson_sampling_does_and_says_against_whom() -> None:
    found = explain(recipe_with(**SAMPLED, sampling="poisson"))
    assert found["epsilon"] == training_epsilon(Training("gaussian", 4.0, 20, sampling=0.1), delta=1e-5)
    assert found["epsilon"] < explain(recipe_with(**SAMPLED))["epsilon"] / 5
    assert found["sampling"] == 0.1 and found["adjacency"] == "add-remove"
    assert "with probability 0.1, by a coin of its own" in found["guarantee"]
    assert "by adding or removing one client" in found["guarantee"]
    assert "a client's own ledger counts every round that it answers in full" in found["guarantee"]


def test_a_wanted_epsilon_needs_less_noise_with_poisson_sampling_and_the_ledger_pays_for_it() -> None:
    wanted = {**SAMPLED, "noise_multiplier": "none", "epsilon": 1.0, "mechanism": "laplace"}
    fixed, drawn = (protection_of(recipe_with(**wanted, sampling=sampling)) for sampling in ("fixed", "poisson"))
    assert isinstance(fixed, NoisySum) and isinstance(drawn, NoisySum)
    assert drawn.noise_multiplier < fixed.noise_multiplier / 3
    assert explain(recipe_with(**wanted, sampling="poisson"))["epsilon"] == pytest.approx(1.0, rel=2e-3)
    assert drawn.spend().ratio == 1 / drawn.noise_multiplier > fixed.spend().ratio  # what a round costs who was asked
