"""Which mechanism a recipe asks for, and what it guarantees, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hushrank.engine.setting import Method
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import Exchange, UpdateExchange, format_sum
from hushrank.federation.keys import evolution_of
from hushrank.federation.summation import MaskedSum, OpenSum, Summation
from hushrank.privacy.agreed import DELTA
from hushrank.privacy.named import make_protection
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.protection import Exposure, UpdateProtection
from hushrank.recipes.population import clients_of
from hushrank.recipes.recipe import Recipe

SUM_BOUND = 1.0  # of an update's numbers in a secure sum, unless given


def exchange_of(recipe: Recipe, *, n_params: int, top_grade: int = 2) -> tuple[Exchange, Summation]:
    """What clients send, with what protects it, and how it is added up."""
    if recipe.is_evolution:
        chosen = evolution_of(recipe, privacy=recipe.privacy, variant=recipe.variant, top_grade=top_grade)
        return chosen, OpenSum()
    summation, protection = summation_of(recipe, protection_of(recipe, n_params=n_params), n_params=n_params)
    return UpdateExchange(protection), summation


def protection_of(recipe: Recipe, *, n_params: int) -> UpdateProtection:
    """The mechanism on updates; for a sound one with an epsilon, with just the noise that keeps it over all rounds."""
    exposure = exposure_of(recipe, clients_of(recipe), n_params=n_params)
    return make_protection({**asdict(recipe), "placement": recipe.noise_at}, exposure)


def summation_of(recipe: Recipe, protection: UpdateProtection, *, n_params: int) -> tuple[Summation, UpdateProtection]:
    """How updates are added up, and the mechanism on the grid of a secure sum's numbers, if there is one."""
    if not recipe.secure_sum:
        return OpenSum(), protection
    format = format_sum(protection, clients_of(recipe), n_params=n_params, largest=recipe.sum_bound or SUM_BOUND)
    return MaskedSum(format), protection.on_grid(format.step)


def exposure_of(recipe: Recipe, population: Population, *, n_params: int) -> Exposure:
    """How often a client of this recipe is seen, among how many and by whom."""
    return Exposure(
        n_params=n_params,
        cohort=population.cohort_size,
        interactions=max(population.interactions),
        rounds=recipe.rounds,
        delta=DELTA if recipe.delta is None else recipe.delta,
        sampling=population.sampling_rate,
        scheme=population.scheme,
        adjacency=recipe.adjacency or Adjacency.zero_out,
        separation=population.separation,
        is_secure=recipe.secure_sum,
    )


def explain_guarantee(recipe: Recipe, method: Method) -> dict[str, Any] | None:
    """What a whole training guarantees, as JSON with a sentence; None where nothing is done to a client's update."""
    return method.protection.explain(exposure_of(recipe, method.population, n_params=method.n_sent))
