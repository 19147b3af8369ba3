"""Partitions in recipes: keys, controls, mixtures, seeds and repeats, and what is refused at the door."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, simulate
from hushrank.federation.cohort import count_interactions
from hushrank.partitions.mixture import divide_clients
from hushrank.recipes.population import clients_of, partition_of
from hushrank.recipes.recipe import NAMED, Recipe, as_json, change_recipe, hash_recipe, recipe_from_json
from hushrank.recipes.resolve import resolve

INTENTS = "intent-change-like:n_queries=40,shortest=10,mean_length=20,longest=40,n_features=8,grade_shares=.8/.2"


def recipe(partition: str, n_clients: int, **changes: Any) -> Recipe:
    data = INTENTS if "intents" in partition else "tiny"
    usual = {"data": data, "n_clients": n_clients, "folds": [1], "rounds": 4, "partition": partition}
    return change_recipe(NAMED["fpdgd"], {**usual, **changes})


def groups(setting: Setting, repeat: int = 0) -> list[str]:
    return [group.name for group in setting.groups_of(0, repeat)] if setting.groups else []


def test_a_recipe_without_a_partition_keeps_its_name_and_its_setting() -> None:
    """The digests that the package gave before there were partitions."""
    assert hash_recipe(NAMED["fpdgd"]) == "44136fa3"
    setting = resolve(change_recipe(NAMED["fpdgd"], {"data": "tiny", "partition": "iid"}))
    assert setting.groups is None and setting.method.population.groups == (0,)


def test_options_are_kept_with_the_recipe_and_read_back() -> None:
    made = recipe("intents+quantity", 4, carry=0.5, quantities=[2, 4])
    assert made.options == {"carry": 0.5, "quantities": (2, 4)}
    assert recipe_from_json(as_json(made)) == made
    assert hash_recipe(made) != hash_recipe(recipe("intents+quantity", 4, carry=0.25, quantities=[2, 4]))
    assert recipe("intents", 4, carry=0.0).options == {}  # at its default


@pytest.mark.parametrize(
    ("partition", "n_clients", "names"),
    [
        ("labels-2", 3, ["labels-0-1", "labels-0-2", "labels-1-2"]),
        ("intents", 8, ["intent-1", "intent-2", "intent-3", "intent-4"]),
        ("clicks", 3, ["perfect", "navigational", "informational"]),
        ("quantity", 5, [f"searches-{n}" for n in (1, 3, 5, 7, 9)]),
        ("dirichlet", 2, ["client-1", "client-2"]),
        ("queries", 2, ["cluster-1", "cluster-2"]),
        ("labels-1+quantity", 3, ["labels-0+searches-1", "labels-1+searches-3", "labels-2+searches-5"]),
        ("intents+quantity", 4, [f"intent-{i + 1}+searches-{n}" for i, n in enumerate((1, 3, 5, 7))]),
    ],
)
def test_groups_are_named_by_what_they_have(partition: str, n_clients: int, names: list[str]) -> None:
    assert groups(resolve(recipe(partition, n_clients))) == names


def test_a_mixture_of_intents_and_clicks_crosses_them() -> None:
    setting = resolve(recipe("intents+clicks", 12))
    assert len(groups(setting)) == 12 and "intent-4+informational" in groups(setting)
    found = setting.groups_of(0, 0)[0]
    assert found.user is not None and found.train.features is setting.dataset.folds[0].train.features


def test_searches_of_a_mixture_are_those_of_the_list_and_the_control_makes_as_many() -> None:
    ids = np.arange(4)
    made = recipe("intents+quantity", 4)
    counts = count_interactions(resolve(made).method.population, ids)
    control = count_interactions(clients_of(recipe("intents+quantity", 4, control=True)), ids)
    assert counts.tolist() == [1, 3, 5, 7] and control.tolist() == [4, 4, 4, 4]
    assert count_interactions(clients_of(recipe("quantity", 5, control=True)), np.arange(5)).tolist() == [5] * 5


def test_a_cluster_without_relevant_test_queries_is_not_measured_by_those_of_others() -> None:
    setting = resolve(recipe("queries", 12))
    found = setting.groups_of(0, 0)
    tests = [group.test for group in found if group.test is not None]
    assert len(tests) == 12 and any(test.n_queries == 0 for test in tests)
    assert sum(test.n_queries for test in tests) == setting.dataset.folds[0].test.n_queries
    looks = simulate(setting, Options(engine="numba"))[0][0].looks
    each = np.array([looks[f"offline/nDCG@10/{group.name}"][-1] for group in found])
    assert np.array_equal(np.isnan(each), [not test.grades.any() for test in tests])
    assert looks["personal/nDCG@10"][-1] == pytest.approx(float(np.nanmean(each)), rel=1e-6)


# Controls


def test_the_control_of_intents_trains_on_the_union_and_measures_each_intent() -> None:
    setting = resolve(recipe("intents", 4, control=True))
    train = setting.dataset.folds[0].train
    for group in setting.groups_of(0, 0):
        assert group.train is train and group.test is not None
        assert not np.array_equal(group.test.grades, setting.dataset.folds[0].test.grades)
    other = resolve(recipe("intents", 4))
    pairs = zip(setting.groups_of(0, 0), other.groups_of(0, 0), strict=True)
    assert all(a.test and b.test and np.array_equal(a.test.grades, b.test.grades) for a, b in pairs)


@pytest.mark.parametrize("partition", ["labels-1", "labels-2", "dirichlet"])
def test_the_control_of_divided_documents_is_the_run_without_a_partition_bit_by_bit(partition: str) -> None:
    control = resolve(recipe(partition, 3, control=True))
    alike = resolve(recipe("iid", 3))
    one, other = (simulate(setting, Options(engine="numba"))[0][0] for setting in (control, alike))
    assert one.params.tobytes() == other.params.tobytes() and one.online.tobytes() == other.online.tobytes()


def test_the_control_of_clicks_draws_people_anew_and_one_click_model_is_as_before() -> None:
    control, divided = (resolve(recipe("clicks", 3, control=control)) for control in (True, False))
    assert control.method.population.regroup and not divided.method.population.regroup
    assert groups(control) == groups(divided)
    seen = simulate(control, Options(engine="numba"))[0][0].shown
    assert np.isnan(seen["online/perfect"]).any() or np.isnan(seen["online/informational"]).any()  # nobody, some rounds


def test_a_control_has_no_skew() -> None:
    made = recipe("intents+clicks", 12, control=True)
    partition, fold = partition_of(made), resolve(made).dataset.folds[0]
    skews = partition.measure(partition.whole_of(fold, 0, n_clients=12, n_grades=2))
    assert [(skew.name, skew.value) for skew in skews] == [("intents", 0.0), ("clicks", 0.0)]


# Seeds and repeats


def labels_of(setting: Setting, repeat: int) -> list[bytes]:
    return [group.train.grades.tobytes() for group in setting.groups_of(0, repeat)]


@pytest.mark.parametrize(("partition", "n_clients"), [("intents", 4), ("labels-1", 6), ("dirichlet", 2)])
def test_the_same_seed_gives_the_same_division_and_repeats_give_others(partition: str, n_clients: int) -> None:
    one, same, other = (resolve(recipe(partition, n_clients, repeats=2, seed=seed)) for seed in (1, 1, 2))
    assert [labels_of(one, r) for r in range(2)] == [labels_of(same, r) for r in range(2)]
    features = [[g.train.features.tobytes() for g in s.groups_of(0, r)] for s, r in ((one, 0), (one, 1), (other, 0))]
    labels = [labels_of(one, 0), labels_of(one, 1), labels_of(other, 0)]
    assert all(a != b or x != y for (a, b), (x, y) in zip(_pairs(features), _pairs(labels), strict=True))


def _pairs(found: list[list[bytes]]) -> list[tuple[list[bytes], list[bytes]]]:
    return [(found[0], found[1]), (found[0], found[2])]


def test_one_repeat_of_several_is_the_same_as_alone() -> None:
    one, two = (resolve(recipe("intents", 4, repeats=n)) for n in (1, 2))
    assert labels_of(one, 0) == labels_of(two, 0)


UNDRAWN: list[tuple[str, int, dict[str, Any]]] = [
    ("labels-1", 3, {}),
    ("labels-1+quantity", 3, {}),
    ("labels-1+clicks", 3, {}),
    ("clicks", 3, {}),
    ("clicks", 3, {"control": True}),
    ("clicks+labels-1", 6, {"control": True}),  # whose documents are drawn, but all clients have them all
    ("quantity", 5, {}),
    ("intents", 4, {"carry": 1.0}),
]


@pytest.mark.parametrize(("partition", "n_clients", "changes"), UNDRAWN)
def test_a_division_without_chance_is_made_once_for_all_repeats(
    partition: str, n_clients: int, changes: dict[str, Any]
) -> None:
    setting = resolve(recipe(partition, n_clients, folds=[1, 2], repeats=3, **changes))
    assert setting.groups is not None and len(setting.groups) == 2 and not setting.is_divided_anew
    assert {setting.place_of(fold, repeat) for fold in range(2) for repeat in range(3)} == {(0, 0), (1, 0)}
    for fold in range(2):
        first, *others = ([group.train for group in setting.groups_of(fold, repeat)] for repeat in range(3))
        assert all(one is other for sets in others for one, other in zip(first, sets, strict=True))


@pytest.mark.parametrize(
    ("partition", "n_clients", "changes"),
    [
        ("labels-1", 6, {}),
        ("labels-2", 3, {}),
        ("labels-1+quantity", 6, {}),
        ("dirichlet", 3, {}),
        ("queries", 2, {}),
        ("queries", 2, {"control": True}),
        ("intents", 4, {"carry": 0.5}),
        ("intents", 4, {"carry": 0.5, "control": True}),
    ],
)
def test_a_division_by_chance_is_drawn_in_every_repeat(partition: str, n_clients: int, changes: dict[str, Any]) -> None:
    setting = resolve(recipe(partition, n_clients, folds=[1, 2], repeats=3, **changes))
    assert setting.is_divided_anew and setting.groups is not None and len(setting.groups) == 6
    found = [
        [
            queries.features.tobytes() + queries.grades.tobytes()
            for g in groups
            for queries in (g.train, g.test or g.train)
        ]
        for groups in setting.groups
    ]
    assert len({b"".join(each) for each in found[:3]}) > 1


@pytest.mark.parametrize("engine", ["numba", "xla", "plain"])
@pytest.mark.parametrize(("partition", "n_clients"), [("labels-1+quantity", 3), ("clicks", 3)])
def test_repeats_that_share_a_division_learn_as_if_each_had_its_own(
    partition: str, n_clients: int, engine: str
) -> None:
    made = recipe(partition, n_clients, folds=[1, 2], repeats=2)
    shared = resolve(made)
    divided, population = partition_of(made), clients_of(made)
    each = [
        divide_clients(divided, replace(shared.dataset, folds=(fold,)), population, repeats=1).groups
        for fold in shared.dataset.folds
        for _ in range(2)
    ]
    own = replace(shared, groups=tuple(groups[0] for groups in each if groups is not None))
    assert own.is_divided_anew and not shared.is_divided_anew
    for one, other in zip(*(simulate(s, Options(engine=engine))[0] for s in (shared, own)), strict=True):
        assert one.params.tobytes() == other.params.tobytes() and one.online.tobytes() == other.online.tobytes()
        assert all(np.array_equal(one.looks[name], other.looks[name], equal_nan=True) for name in one.looks)


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize(("partition", "n_clients"), [("intents+clicks", 12), ("labels-1+quantity", 3)])
def test_a_partition_gives_the_plain_engines_ranker(partition: str, n_clients: int, engine: str) -> None:
    setting = resolve(recipe(partition, n_clients, repeats=2))
    fast, plain = (simulate(setting, Options(engine=name))[0] for name in (engine, "plain"))
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_allclose(a.params, b.params, atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(a.online, b.online, atol=1e-6)


# Refusals


@pytest.mark.parametrize(
    ("partition", "n_clients", "changes", "message"),
    [
        ("intents", 5, {}, r"5 clients cannot be divided evenly among 4 intents: n_clients must be 4, 8, 12, \.\.\."),
        ("labels-1", 4, {}, r"4 clients cannot be divided evenly among 3 grades: n_clients must be 3, 6, 9"),
        ("labels-2", 4, {}, "evenly among 3 combinations of 2 grades: n_clients must be 3, 6, 9"),
        ("clicks", 4, {}, r"evenly among 3 click behaviours \(perfect, navigational, informational\)"),
        ("clicks", 4, {"behaviour": "pbm"}, "evenly among 5 click behaviours"),
        ("queries", 5, {"clusters": 2}, "5 clients cannot be divided evenly among 2 clusters of queries"),
        ("queries", 100, {}, "fold 1 has 36 training queries, fewer than 100 clusters: take fewer clients"),
        ("intents", 4, {"data": "tiny"}, "partition=intents needs data whose grades differ by intent"),
        ("dirichlet", 100, {"concentration": 0.01}, "would have no documents of fold 1's training queries: raise"),
        ("quantity", 5, {"quantities": [2, 3], "control": True}, "5 clients make 12 searches a round, which cannot"),
    ],
)
def test_data_that_cannot_be_divided_so_is_refused(
    partition: str, n_clients: int, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        resolve(recipe(partition, n_clients, **changes))


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("fpdgd", {"partition": "intents", "carry": 1.5}, "carry is 1.5, must be from 0 to 1"),
        ("fpdgd", {"partition": "intents", "carry": -0.1}, "carry is -0.1, must be from 0 to 1"),
        ("fpdgd", {"partition": "dirichlet", "concentration": 0}, "concentration is 0.0, must be > 0"),
        (
            "fpdgd",
            {"partition": "quantity", "quantities": [0, 3]},
            r"quantities is \[0, 3\], must be at least 1 search",
        ),
        ("fpdgd", {"partition": "clicks", "behaviour": "dcm"}, "behaviour is 'dcm', must be one of ccm, pbm"),
        ("fpdgd", {"partition": "labels"}, "nothing is called 'labels'; did you mean 'labels-"),
        ("fpdgd", {"partition": "intents+size"}, "partition is 'intents[+]size', and nothing is called 'size'"),
        ("fpdgd", {"partition": "intents+labels-1"}, "intents and labels-1 both divide documents: keep one"),
        ("fpdgd", {"partition": "clicks+clicks"}, "clicks and clicks both divide people"),
        ("fpdgd", {"partition": "iid+clicks"}, "iid divides nothing"),
        ("fpdgd", {"partition": "clicks", "carry": 0.5}, "carry is for partition=intents; here partition is 'clicks'"),
        ("fpdgd", {"control": True}, "control is true, but partition is iid"),
        ("fpdgd", {"partition": "clicks", "clicks": ["perfect", "poison"]}, "which says how people click"),
        ("fpdgd", {"partition": "queries", "log": "clicks.jsonl"}, "a click log says who clicked what"),
        ("pdgd", {"partition": "quantity"}, "recipe pdgd is central and has one learner"),
        ("mse", {"partition": "quantity"}, "partition is for learning from clicks"),
    ],
)
def test_what_no_data_can_help_is_refused_with_the_recipe(method: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        change_recipe(NAMED[method], changes)
