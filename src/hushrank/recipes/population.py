"""Who takes part in a recipe's federation, and what makes its clients differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hushrank.clicks.keys import LOGGED
from hushrank.federation.cohort import Population
from hushrank.federation.keys import population_of
from hushrank.partitions.alike import IID
from hushrank.partitions.division import Aspect
from hushrank.partitions.mixture import Partition, mean_searches
from hushrank.partitions.named import check_mixture, find_parts
from hushrank.personal.population import is_population, population_named
from hushrank.recipes.options import options_for

if TYPE_CHECKING:
    from hushrank.recipes.recipe import Recipe


def partition_of(recipe: Recipe) -> Partition:
    """What makes clients differ."""
    return Partition(find_parts(recipe.partition, options_for(recipe, "partition")), recipe.control, recipe.seed)


def clients_of(recipe: Recipe) -> Population:
    """Who takes part, each searching as often as the partition says; not yet in groups."""
    population, partition = population_of(recipe), partition_of(recipe)
    for part in partition.parts.values():
        searches = part.searches(population.n_clients)
        if searches is not None:
            alike = (mean_searches(np.array(searches), population.n_clients),) if recipe.control else searches
            population = replace(population, interactions=alike)
    return population


def count_users(recipe: Recipe) -> Recipe:
    """The recipe of personalised search with as many clients as its data have users, as far as that is known by now."""
    if is_population(recipe.data):
        return replace(recipe, n_clients=population_named(recipe.data).n_users)
    return replace(recipe, n_clients=max(recipe.n_clients, recipe.cohort or 0, 2 * recipe.n_malicious + 1))


def check_partition(recipe: Recipe) -> None:
    """Refuse what cannot be divided whatever the data."""
    if recipe.partition == IID:
        if recipe.control:
            raise ValueError("control is true, but partition is iid, whose clients are all alike: choose a partition.")
        return
    check_mixture(recipe.partition)
    divides_people = any(part.aspect is Aspect.people for part in partition_of(recipe).parts.values())
    if divides_people and len(recipe.users) > 1:
        raise ValueError(
            f"partition is {recipe.partition!r}, which says how people click, and clicks names {len(recipe.users)} "
            "users: name one, whose expected MaxRR is then measured."
        )
    if recipe.is_central or recipe.clicks == LOGGED:
        what = (
            "recipe pdgd is central and has one learner" if recipe.is_central else "a click log says who clicked what"
        )
        raise ValueError(f"partition is {recipe.partition!r}, but {what}: leave partition out, or run fpdgd.")
