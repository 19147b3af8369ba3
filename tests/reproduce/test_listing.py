"""How long a result takes is said within a factor of two, whatever its lists, features and rankers."""

from __future__ import annotations

import pytest

from hushrank.data.shapes import shape_named
from hushrank.personal.population import population_named
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reproduce.listing import estimate_look, estimate_search, estimate_training, estimate_user
from hushrank.reproduce.reproduction import Trial

# Searches per CPU-second of `hushrank run fpdgd` on MQ2008, mslr-like:n_queries=500 and intent-change-like: the least
# and the most of three measurements on two busy cores (Zen 4). Two trainings of four or five clients with five searches
# a round; a long run less a short one, so that starting and compiling do not count.
MEASURED = [
    ("mq2008-like", "linear", 5, 700_000, 844_000),
    ("mslr-like:n_queries=500", "linear", 5, 200_000, 410_000),
    ("intent-change-like", "linear", 4, 127_000, 137_000),
    ("mq2008-like", "mlp", 5, 200_000, 315_000),
    ("mslr-like:n_queries=500", "mlp", 5, 57_000, 61_000),
    ("intent-change-like", "mlp", 4, 19_000, 23_000),
]
# CPU-seconds of one look of a training in such runs, with OPENBLAS_NUM_THREADS=1
LOOKS = [
    ("mq2008-like", "linear", 0.0003),
    ("mslr-like:n_queries=500", "linear", 0.0014),
    ("intent-change-like", "linear", 0.0144),
    ("mq2008-like", "mlp", 0.001),
    ("mslr-like:n_queries=500", "mlp", 0.0067),
    ("intent-change-like", "mlp", 0.16),
]
# CPU-milliseconds of a search of 36 users (seed 2001, 46 training and 14.8 later searches each), where clients train on
# it, twelve in a step, where one place does, and where it is measured; one measurement of each, on two busy cores
PERSONAL = [
    ("knrm", "aol-like", 0.019, 0.008, 0.06),
    ("knrm", "personal-like", 0.063, 0.051, 0.068),
    ("hrnn", "aol-like", 0.313, 0.504, 0.12),
    ("hrnn", "personal-like", 0.369, 0.431, 0.108),
    ("peps", "aol-like", 0.25, 0.261, 0.565),
    ("peps", "personal-like", 1.177, 1.229, 0.624),
    ("htps", "aol-like", 1.88, 5.777, 1.408),
    ("htps", "personal-like", 2.652, 7.697, 1.779),
]
N_TRAIN, N_LATER = 1655 / 36, 532 / 36


def train_on(data: str, ranker: str, **more: object) -> Trial:
    partition = {"partition": "intents"} if data.startswith("intent") else {}
    return Trial({}, change_recipe(NAMED["fpdgd"], {"data": data, "ranker": ranker, **partition, **more}))


@pytest.mark.parametrize(("data", "ranker", "n_clients", "least", "most"), MEASURED)
def test_searches_are_estimated_within_a_factor_of_two(
    data: str, ranker: str, n_clients: int, least: int, most: int
) -> None:
    trial = train_on(data, ranker, n_clients=n_clients, interactions=5, rounds=1000, eval_every=1000)
    seconds = estimate_training(trial) - estimate_look(trial.recipe, shape_named(data))
    assert most / 2 < 5 * n_clients * 1000 / seconds < 2 * least


@pytest.mark.parametrize(("data", "ranker", "seconds"), LOOKS)
def test_looks_are_estimated_within_a_factor_of_two(data: str, ranker: str, seconds: float) -> None:
    found = estimate_look(train_on(data, ranker, n_clients=4).recipe, shape_named(data))
    assert seconds / 2 < found < 2 * seconds


def test_more_hidden_units_and_more_looks_take_longer() -> None:
    narrow, wide = (estimate_training(train_on("mslr-like", "mlp", hidden=n)) for n in (10, 64))
    often = estimate_training(train_on("mslr-like", "mlp", hidden=64, eval_every=1))
    assert narrow < wide < often


@pytest.mark.parametrize(("model", "data", "flat", "central", "look"), PERSONAL)
def test_models_of_personalised_search_are_estimated_within_a_factor_of_two(
    model: str, data: str, flat: float, central: float, look: float
) -> None:
    """KNRM in one place is so fast that reading the logs hides it: no more than that is asked of it."""
    visit, measured = estimate_user(population_named(data), model)
    assert 1 / 2 < visit / (flat * N_TRAIN / 1000) < 2 and 1 / 2 < measured / (look * N_LATER / 1000) < 2
    each = {"data": f"{data}:n_users=1000", "model": model, "eval_every": 100}
    short, long = (
        estimate_search(change_recipe(NAMED["fedps"], {**each, "topology": "central", "rounds": n})) for n in (1, 11)
    )
    assert 1 / 2 < (long - short) / (10_000 * central * N_TRAIN / 1000) < (2.5 if model == "knrm" else 2)


def test_a_training_of_every_week_reads_what_there_is_in_that_week() -> None:
    """Measured: PEPS of 300 users, lists of ten, 14 rounds in each of seven weeks: 350 CPU-seconds, 130 and 18."""
    data = "aol-like:n_users=300,n_candidates=10,n_short=10,seed=11"
    each = {"data": data, "model": "peps", "rounds": 14, "stages": 8}
    for how, seconds in {"retrain": 350, "continue": 130, "online": 18}.items():
        own = {name: value for name, value in each.items() if how != "online" or name != "rounds"}
        estimate = estimate_search(change_recipe(NAMED["fedps"], {**own, "updating": how}))
        assert 1 / 2 < estimate / seconds < 2.5


def test_a_model_costs_what_it_costs_and_not_what_peps_does() -> None:
    recipes = [
        change_recipe(NAMED["fedps"], {"data": "aol-like", "model": m}) for m in ("original", "knrm", "peps", "htps")
    ]
    seconds = [estimate_search(recipe) for recipe in recipes]
    assert seconds == sorted(seconds) and seconds[3] > 2 * seconds[2] > 4 * seconds[1]
