"""What recipe fedps may say, and what it is refused for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushrank.keys import keys_of
from hushrank.personal.keys import PersonalKeys, settings_of
from hushrank.personal.population import population_named
from hushrank.personal.shapes import WEEK
from hushrank.privacy.placement import Scheme
from hushrank.recipes.personal_setting import (
    exposure_of_clients,
    find_population,
    name_users,
    resolve_personal,
    server_step_of,
    with_users,
)
from hushrank.recipes.recipe import NAMED, change_recipe, hash_recipe

FEDPS = NAMED["fedps"]
LATE = {"topology": "proxy", "stragglers": 0.1}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cohort": 1}, "cohort is 1: a step with one client would show what that client alone has learnt"),
        ({"data": "personal-like:n_users=1", "cohort": "none"}, "cohort is 1"),
        ({"model": "bert"}, "model is 'bert', must be one of original, knrm, peps, hrnn, htps"),
        ({"offload": "whole"}, "offload is for topology=proxy; here topology is flat"),
        ({"topology": "proxy", "offload": "upper"}, "there are none: set stragglers"),
        (
            {**LATE, "model": "hrnn", "offload": "upper"},
            "only those of peps can be divided; here model is hrnn. Set mo",
        ),
        ({**LATE, "model": "htps", "offload": "upper"}, "here model is htps"),
        ({**LATE, "model": "knrm", "offload": "upper"}, "or offload=whole or none"),
        ({**LATE, "model": "original", "offload": "upper"}, "the engine's own order"),
        ({"topology": "proxy", "users_per_proxy": 1}, "users_per_proxy is 1"),
        ({"topology": "proxy", "aggregation": "median"}, "a summing proxy passes on only sums"),
        ({"topology": "proxy", "secure_sum": True, "aggregation": "median"}, "a secure sum shows only their sum"),
        ({"topology": "proxy", "secure_sum": True, "privacy": "sound", "epsilon": 1}, "adds its noise at the server"),
        ({"topology": "proxy", "sum_bound": 0.5}, "sum_bound is for secure_sum"),
        ({"topology": "proxy", "cohort": 1}, "cohort is 1"),
        ({"topology": "central", "cohort": 5}, "without clients that send anything: leave cohort out"),
        ({"topology": "central", "epochs": 2}, "epochs is for topology=flat"),
        ({"topology": "central", "privacy": "sound", "epsilon": 1}, "without clients"),
        ({"model": "original", "epochs": 2}, "epochs is for a model that is trained"),
        ({"model": "original", "rounds": 2, "cohort": 3}, "trains nothing"),
        ({"hidden_by": "group-user"}, "here topology is flat, and logs stay with their users"),
        ({"hidden_by": "cover-query", "topology": "proxy"}, "here topology is proxy"),
        ({"hidden_by": "mask", "topology": "central"}, "must be one of group-user, cover-query"),
        ({"hidden_by": "cover-query", "topology": "central", "model": "original"}, "hidden_by is for a model"),
        ({"stages": 4}, "stages is for updating=retrain"),
        ({"updating": "online", "rounds": 9}, "has no rounds"),
        ({"updating": "online", "privacy": "sound", "epsilon": 1}, "promises nothing"),
        ({"updating": "online", "topology": "central"}, "waits for clients"),
        ({"updating": "retrain", "eval_every": 2}, "measured after every stage"),
        ({"privacy": "paper", "epsilon": 4.5}, "use privacy=sound"),
        ({"privacy": "sound", "epsilon": 1, "adjacency": "add-remove"}, "adjacency=add-remove does not hold"),
        ({"privacy": "sound", "epsilon": 1, "mechanism": "correlated"}, "mechanism=correlated does not hold"),
        ({"secure_sum": True}, "fewer clients than the others"),
        ({"interactions": 3}, "learns from users' logs"),
        ({"partition": "intents"}, "learns from users' logs"),
        ({"learning_rate": 0.3}, "has models of its own"),
        ({"sampling": "poisson"}, "asks every client once in every round"),
        ({"sigma": 0.1}, "sigma is for recipe foltr-es"),
        ({"attack": "poisoned-clicks", "n_malicious": 3}, "a click log says who clicked what"),
        ({"aggregation": "bulyan", "assumed_malicious": 3}, "is not defined for 10 clients"),
        ({"aggregation": "krum"}, "makes one client's update the step"),
        ({"attack": "at-bound", "n_malicious": 3}, "bounds none: say how long they are with bound"),
        ({"update_norm": 0.5}, "its length alone bounds nobody's influence: leave update_norm out"),
        ({"updating": "online", "server_fade": True}, "takes as many as clients apply for: leave server_fade out"),
        ({"stragglers": 1.0}, "somebody has to answer"),
        ({"data": "personal-like:n_users=20", "cohort": 30}, "must be from 1 to n_clients, which is 20"),
    ],
)
def test_what_cannot_work_is_refused_at_the_door(changes: dict[str, object], said: str) -> None:
    if changes.get("cohort") == "none":
        changes = {**changes, "cohort": None}
    with pytest.raises(ValueError, match=said):
        change_recipe(FEDPS, changes)


@pytest.mark.parametrize(("model", "way"), [("peps", "upper"), ("hrnn", "whole"), ("htps", "none"), ("knrm", "whole")])
def test_every_model_can_be_handed_over_whole_and_peps_in_halves(model: str, way: str) -> None:
    assert settings_of(change_recipe(FEDPS, {**LATE, "model": model, "offload": way})).offload == way


def test_its_keys_are_no_other_recipe_s_and_leave_their_names() -> None:
    with pytest.raises(ValueError, match="model is for recipe fedps; fpdgd does not have it"):
        change_recipe(NAMED["fpdgd"], {"model": "peps"})
    assert hash_recipe(NAMED["fpdgd"]) == "44136fa3"  # of an empty object: nothing is special


def test_defaults_are_those_of_the_paper_but_for_sizes() -> None:
    settings = settings_of(FEDPS)
    assert (settings.model, settings.topology, settings.epochs, settings.word_vectors) == ("peps", "flat", 1, "frozen")
    assert settings.local_rate == 1e-3 and settings.stragglers == 0 and settings.n_trainings == 1


def test_numbers_that_the_help_calls_defaults_are_those_of_the_recipe_and_of_keys_that_are_unset() -> None:
    of_recipe = settings_of(FEDPS)
    nothing: dict[str, Any] = dict.fromkeys(keys_of(PersonalKeys))
    unset = settings_of(replace(FEDPS, **nothing))
    said = {
        name: re.search(r"default (?:all up to )?([\d.,]*\d)", key.help) for name, key in keys_of(PersonalKeys).items()
    }
    numbers = {name: float(found[1].replace(",", "")) for name, found in said.items() if found}
    assert {name: getattr(of_recipe, name) for name in numbers} == numbers
    assert {name: getattr(unset, name) for name in numbers} == numbers
    assert numbers["word_dim"] == 32 and len(numbers) == 11


def test_users_come_from_the_data() -> None:
    population = find_population("personal-like:n_users=12")
    assert with_users(FEDPS, population).n_clients == 12
    with pytest.raises(ValueError, match="n_clients is 50, but personal-like has 12 users"):
        with_users(change_recipe(FEDPS, {"n_clients": 50}), population)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ("personal-like", "personal-like:n_users=20"),
        ("aol-like:seed=3", "aol-like:seed=3,n_users=20"),
        ("personal-like:n_users=12", "personal-like:n_users=12"),
        ("logs/aol", "logs/aol"),
    ],
)
def test_n_clients_is_the_number_of_generated_users_unless_the_data_say_another(data: str, named: str) -> None:
    assert name_users(replace(FEDPS, data=data, n_clients=20)).data == named
    assert name_users(replace(FEDPS, data=data)).data == data


def test_a_client_is_seen_once_in_a_round_and_every_round_counts_in_full() -> None:
    staged = change_recipe(FEDPS, {"updating": "continue", "stages": 4, "rounds": 2, "privacy": "sound", "epsilon": 2})
    exposure = exposure_of_clients(staged, n_params=10)
    assert exposure.rounds == 3 * 2 and exposure.sampling == 1 and exposure.scheme == Scheme.rotation


def test_all_weeks_are_measured_on_lists_of_one_size() -> None:
    """aol-like has 50 documents in the test period, in which the last week lies, and 5 before."""
    name, sizes = "aol-like:n_users=3,n_documents=1200,median_searches=200", {}
    small = {"data": name, "cohort": 2, "word_dim": 4}
    for updating in ("once", "continue"):
        _, setting = resolve_personal(change_recipe(FEDPS, {**small, "updating": updating}))
        population = setting.people.population
        log = population.log_of(1)
        weeks = (log.times - population.periods.train) // WEEK
        sizes[updating] = [int(np.diff(log.starts)[weeks == week].max()) for week in (6, 7)]
        np.testing.assert_array_equal(log.queries, population_named(name).log_of(1).queries)
    assert sizes["once"][1] > 5 and sizes == {"once": [5, sizes["once"][1]], "continue": [5, 5]}


@pytest.mark.parametrize(("updating", "n_steps"), [("once", 2 * 2), ("retrain", 2 * 2), ("continue", 2 * 2 * 3)])
def test_the_rate_of_the_server_falls_to_zero_in_the_last_step(updating: str, n_steps: int) -> None:
    """Nine clients, four at a time, make two steps: one of four and one of five. Retraining begins anew every week."""
    stages = None if updating == "once" else 4
    changes = {"data": "personal-like:n_users=9", "cohort": 4, "rounds": 2, "server_fade": True, "stages": stages}
    recipe = with_users(change_recipe(FEDPS, {**changes, "updating": updating}), find_population(str(changes["data"])))
    assert server_step_of(recipe).fade == n_steps
