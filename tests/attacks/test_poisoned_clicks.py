"""Malicious clients that click on what is not relevant: groups of their own, all other draws as before."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from hushrank.clicks.named import named_user
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.round import Federation
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.streams import seed_key
from hushrank.types import Array, Client

SMALL = {"data": "tiny", "folds": [1], "rounds": 2, "n_clients": 10, "interactions": 4}
POISONED = {"attack": "poisoned-clicks", "n_malicious": 3}


def setting_of(changes: Mapping[str, object], recipe: str = "fpdgd") -> Setting:
    return resolve(change_recipe(NAMED[recipe], {**SMALL, **changes}))


def federation_of(changes: Mapping[str, object], recipe: str = "fpdgd") -> Federation:
    return make_federation(setting_of(changes, recipe), Cell(0, 0, 0))


def test_the_clients_with_the_lowest_ids_click_as_the_poison_user() -> None:
    federation, poison = federation_of(POISONED), named_user("poison", n_grades=3)
    people = [federation.user_of(Client(id, 4, federation.population.groups[id])) for id in range(10)]
    assert people == [poison] * 3 + [federation.user] * 7
    assert federation.attack is None and federation.n_malicious == 3


def learnt_by(federation: Federation, id: int, params: Array) -> Array:
    """What a client learns in the first round."""
    population = federation.population
    group = population.groups[id % len(population.groups)]
    client = Client(id, population.interactions[id % len(population.interactions)], group)
    return federation.study(federation, params, client, key=seed_key(1), round=1)[0].delta


@pytest.mark.parametrize("partition", ["iid", "labels-1", "dirichlet", "quantity", "clicks"])
def test_honest_clients_learn_bit_by_bit_what_they_learn_without_liars(partition: str) -> None:
    n = 9 if partition in ("labels-1", "clicks") else 10
    honest, lied_to = (federation_of({"partition": partition, "n_clients": n, **liars}) for liars in ({}, POISONED))
    params = honest.ranker.initial(0 * honest.queries.features[0])
    same = [np.array_equal(learnt_by(honest, id, params), learnt_by(lied_to, id, params)) for id in range(n)]
    assert all(same[3:]) and not all(same[:3])


def test_with_nobody_malicious_there_are_no_groups() -> None:
    setting = setting_of({**POISONED, "n_malicious": 0})
    assert setting.groups is None and setting.method == setting_of({}).method


def test_evolution_strategies_have_such_people_too() -> None:
    federation = federation_of({"n_malicious": 2, "attack": "poisoned-clicks"}, "foltr-es")
    assert [group.name for group in federation.groups] == ["all+malicious", "all"]


def test_a_secure_sum_hides_such_liars() -> None:
    assert setting_of({"secure_sum": True, **POISONED}).method.is_secure


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        ("pdgd", {"n_clients": 1, **POISONED}, "recipe pdgd is central"),
        ("fpdgd", {"log": "clicks.tsv", **POISONED}, "a click log says who clicked what"),
        ("fpdgd", {"poison": "poisson", **POISONED}, "poison is 'poisson'; did you mean 'poison'"),
        ("fpdgd", {"partition": "clicks", "control": True, "n_clients": 9, **POISONED}, "draws anew in every round"),
        ("fpdgd", {"attack": "sign-flip", "n_malicious": 3, "poison": "perfect"}, "poison is for attack=poisoned-cl"),
        ("fpdgd", {"attack": "sign-flip", "n_malicious": 3, "knowledge": "full"}, "knowledge is for attack=little-is"),
        ("fpdgd", {"attack": "fang-krum", "knowledge": "own"}, "knowledge is 'own', must be one of partial, full"),
    ],
)
def test_what_cannot_work_is_refused(recipe: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        change_recipe(NAMED[recipe], {**SMALL, **changes})
