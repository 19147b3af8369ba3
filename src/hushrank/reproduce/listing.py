"""What can be rerun, what it needs, and how long it would take here."""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np

from hushrank.data.shapes import SyntheticShape, shape_named
from hushrank.files import Json
from hushrank.personal.keys import PersonalSettings, settings_of
from hushrank.personal.population import GeneratedPopulation, is_population, population_named
from hushrank.recipes.population import clients_of, count_users
from hushrank.recipes.recipe import Recipe
from hushrank.reproduce.literature import PublishedResult, published_results
from hushrank.reproduce.named import REPRODUCTIONS
from hushrank.reproduce.reproduction import Reproduction, ReproductionSize, Trial, choose_data
from hushrank.runs.forget_methods import METHODS, count_steps, find_every
from hushrank.unlearning.lengths import count_kept


class RankerCosts(NamedTuple):
    """CPU-seconds of training and measuring a ranker."""

    search: float  # of a search, however long its list
    product: float  # of each product of a search: a document has one per feature, in networks one per hidden unit too
    look_product: float  # of each product where a ranker is measured
    look_document: float  # of each document there: it is sorted and its gain is counted


class SearchCosts(NamedTuple):
    """CPU-seconds of training and measuring a model of personalised search."""

    search: float  # to train on a search once, beside its documents
    document: float  # and on each document in its list
    central: float  # times as much where all logs are in one place
    look_search: float  # to measure on a search, beside its documents
    look_document: float
    start: float  # of a run: it compiles


# Why: measured on MQ2008, mslr-like and intent-change-like, as test_listing.py has it
_COSTS = {
    "linear": RankerCosts(5e-7, 1.15e-10, 0.0, 5e-8),
    "mlp": RankerCosts(1.8e-6, 1.4e-11, 5e-11, 5e-8),
}
_ROUND_SECONDS = 2e-5  # of a training's round, beside its searches; several trainings share a program
_LOOKS = 20  # of a training, unless eval_every says otherwise
_RUN_SECONDS = 3.0  # of a run, beside its rounds: it starts, loads and measures
# Why: PEPS by benchmarks (personal_speed.json), the others as test_listing.py has it
_SEARCH_COSTS = {
    "original": SearchCosts(0.0, 0.0, 0.0, 6e-5, 0.0, 1.0),
    "knrm": SearchCosts(1e-5, 1.8e-6, 1.0, 6e-5, 2e-7, 3.0),
    "peps": SearchCosts(1.5e-4, 5.5e-5, 1.0, 7.5e-5, 2.75e-5, 10.0),
    "hrnn": SearchCosts(3.2e-4, 2e-6, 1.3, 1.1e-4, 0.0, 8.0),
    "htps": SearchCosts(1.7e-3, 3.1e-5, 3.0, 1.3e-3, 5e-6, 22.0),
}
_USUAL = population_named("aol-like")  # whom users of a log count as that nobody has read yet


def list_results(*, cores: int | None = None) -> list[Json]:
    """Every published result: what it shows, what it needs, and how long it would take here."""
    return [describe_result(result, cores or os.cpu_count() or 1) for result in published_results().values()]


def describe_result(result: PublishedResult, cores: int) -> Json:
    reproduction = REPRODUCTIONS.get(result.name)
    return {
        "name": result.name,
        "aliases": list(result.aliases),
        "paper": result.paper,
        "shows": result.shows,
        "data": list(result.data),
        "can_run": reproduction is not None,
        "why_not": "" if reproduction else f"needs {', '.join(result.needs) or 'a recipe'}",
        "seconds": estimate(result, reproduction, ReproductionSize(), cores) if reproduction else None,
        "quick_seconds": estimate(result, reproduction, ReproductionSize(quick=True), cores) if reproduction else None,
    }


def estimate(result: PublishedResult, reproduction: Reproduction, scale: ReproductionSize, cores: int) -> float:
    """Seconds, from the interactions and the speed of a processor like those of the benchmarks."""
    if reproduction.compute is not None:
        return reproduction.compute_seconds[scale.quick]
    total = 0.0
    for choice in choose_data(result.data, None):
        for trial in reproduction.trials(choice, scale):
            if trial.recipe.is_personal:
                total += estimate_search(trial.recipe)
                continue
            cells = len(trial.recipe.users) * len(trial.recipe.folds or range(5)) * trial.recipe.repeats
            total += cells * estimate_training(trial) + _RUN_SECONDS
    return total / cores


def estimate_training(trial: Trial) -> float:
    """CPU-seconds of one training on generated data: its rounds with their searches, and its looks."""
    recipe, shape = trial.recipe, shape_named(trial.recipe.data)
    rounds, per_round = count_work(trial)
    n_looks = math.ceil(rounds / (recipe.eval_every or math.ceil(rounds / _LOOKS)))
    searching = rounds * (per_round * estimate_one_search(recipe, shape) + _ROUND_SECONDS)
    return searching + n_looks * estimate_look(recipe, shape)


def count_products(recipe: Recipe, shape: SyntheticShape) -> int:
    """To score one document: one per feature, of a network one per hidden unit for each."""
    return shape.n_features * (recipe.hidden if recipe.ranker == "mlp" else 1)


def estimate_one_search(recipe: Recipe, shape: SyntheticShape) -> float:
    """CPU-seconds until a client has searched, clicked and learnt once."""
    costs = _COSTS[recipe.ranker]
    return costs.search + costs.product * shape.mean_length * count_products(recipe, shape)


def estimate_look(recipe: Recipe, shape: SyntheticShape) -> float:
    """CPU-seconds to measure a ranker on test and validation queries: once, and twice more by each intent's labels."""
    costs = _COSTS[recipe.ranker]
    n_documents = shape.mean_length * shape.n_queries * 2 / shape.n_parts
    n_times = 1 + 2 * shape.n_intents if "intents" in recipe.partition else 1
    return n_times * n_documents * (costs.look_document + costs.look_product * count_products(recipe, shape))


def estimate_search(recipe: Recipe) -> float:
    """CPU-seconds of a run of personalised search: what it costs to visit a user and to measure for one."""
    settings, n_users = settings_of(recipe), count_users(recipe).n_clients
    population = population_named(recipe.data) if is_population(recipe.data) else _USUAL
    visit, look = estimate_user(population, settings.model)
    visit *= _SEARCH_COSTS[settings.model].central if settings.is_central else 1.0
    rounds = 1 if settings.updating == "online" else recipe.rounds
    n_looks = settings.n_trainings if settings.is_staged else rounds // (recipe.eval_every or 1)
    n_visits = rounds * settings.epochs * count_logs(settings, population) if settings.is_trained else 0
    return recipe.repeats * n_users * (n_visits * visit + (n_looks + 1) * look) + _SEARCH_COSTS[settings.model].start


def count_logs(settings: PersonalSettings, population: GeneratedPopulation) -> float:
    """How many times as much as what is trained on `once` all trainings of a run read in a round."""
    if not settings.is_staged:
        return 1.0
    shape, n = population.shape, settings.n_trainings
    whole = (shape.train_part + shape.validation_part + shape.test_part) / shape.train_part
    stages_read = n * (n + 1) / 2 if settings.updating == "retrain" else n  # all so far, or each stage's own
    return whole * stages_read / settings.stages


def estimate_user(population: GeneratedPopulation, model: str = "peps") -> tuple[float, float]:
    """CPU-seconds to train once on the searches of a client, and to measure on those of validation and test."""
    shape, sizes, costs = population.shape, population.list_sizes, _SEARCH_COSTS[model]
    n_searches = shape.median_searches * math.exp(shape.spread_searches**2 / 2)  # the mean of a log-normal number
    parts = np.array([shape.train_part, shape.validation_part, shape.test_part])
    n_each = n_searches * (1 - shape.background_weeks / shape.weeks) * parts / parts.sum()
    looks = n_each[1:] * (costs.look_search + costs.look_document * np.array([sizes.other, sizes.test]))
    return float(n_each[0] * (costs.search + costs.document * sizes.other)), float(looks.sum())


def count_work(trial: Trial) -> tuple[int, float]:
    """Rounds of a training, and searches of all clients in one."""
    population, how, rounds = clients_of(trial.recipe), trial.forgetting, trial.recipe.rounds
    each = population.interactions
    takes = () if how is None else METHODS[how.method].takes
    if how is not None and "every" in takes:
        rounds = count_kept(rounds, find_every(how, trial.recipe.keep_every))
    if how is not None and "local_steps" in takes:
        each = count_steps(how, population)
    return rounds, population.cohort_size * sum(each) / len(each)
