"""Data-sharing and synthetic sharing: what the global set is, who gets it, what the warm-up gives, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plug import Plug
from tiny_settings import run_plainly

from hushrank.engine import train
from hushrank.engine.estimate import count_planned
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plan import Cell, estimate_bytes, make_plans
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.recipes.disclosure import who_learns
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe, hash_recipe
from hushrank.recipes.resolve import resolve
from hushrank.runs.click_log import LogRequest, make_log
from hushrank.runs.review import review_results
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.types import QuerySet

INTENTS = "intent-change-like:n_queries=40,shortest=10,mean_length=20,longest=40,n_features=8,grade_shares=.8/.2"
REMEDIES = ["data-sharing", "synthetic-sharing"]
NOTHING = {"alpha": 0, "warm_up": 0}


def recipe(remedy: str = "data-sharing", partition: str = "labels-1", **changes: Any) -> Recipe:
    n_clients = 4 if partition == "intents" else 3
    usual = {"data": INTENTS if partition == "intents" else "tiny", "n_clients": n_clients, "folds": [1], "rounds": 4}
    named = {"partition": partition, "remedy": remedy, "shared_share": 0.25}
    if remedy == "none":
        del named["shared_share"]
    return change_recipe(NAMED["fpdgd"], {**usual, **named, **changes})


def made(remedy: str = "data-sharing", partition: str = "labels-1", **changes: Any) -> Setting:
    return resolve(recipe(remedy, partition, **changes))


def common(setting: Setting, repeat: int = 0) -> QuerySet:
    assert setting.warm_up is not None
    return setting.warm_up.groups_of(0, repeat)[0].train


def assert_same_bits(ours: list[CellResult], theirs: list[CellResult]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.params.tobytes() == b.params.tobytes() and a.online.tobytes() == b.online.tobytes()
        assert a.test.tobytes() == b.test.tobytes()


@pytest.mark.parametrize("remedy", REMEDIES)
@pytest.mark.parametrize(
    ("partition", "engine"),
    [("labels-1", "plain"), ("labels-1", "numba"), ("labels-1", "xla"), ("intents", "numba"), ("iid", "numba")],
)
def test_without_shared_queries_and_warm_up_it_is_federated_averaging(remedy: str, partition: str, engine: str) -> None:
    plain = simulate(made("none", partition), Options(engine=engine))[0]
    assert_same_bits(simulate(made(remedy, partition, **NOTHING), Options(engine=engine))[0], plain)


def test_recipes_without_a_remedy_keep_their_hash_and_defaults_have_none() -> None:
    usual = {"data": "tiny", "n_clients": 3, "partition": "labels-1"}
    bare = change_recipe(NAMED["fpdgd"], {**usual, "remedy": "data-sharing"})
    said = {"remedy": "data-sharing", "shared_share": 0.1, "alpha": 1, "warm_up": 1000}
    assert hash_recipe(bare) == hash_recipe(change_recipe(NAMED["fpdgd"], {**usual, **said}))
    assert hash_recipe(NAMED["fpdgd"]) == "44136fa3"  # as before there were remedies


# The global set


def test_the_global_set_has_whole_queries_of_the_training_set() -> None:
    setting = made()
    whole, shared = setting.dataset.folds[0].train, common(setting)
    assert shared.n_queries == 9  # a quarter of 36
    for query, name in enumerate(shared.query_ids):
        there = whole.rows(whole.query_ids.index(name))
        assert np.array_equal(shared.features[shared.rows(query)], whole.features[there])
        assert np.array_equal(shared.grades[shared.rows(query)], whole.grades[there])


def test_a_share_alpha_of_it_goes_to_every_client_and_leaves_their_own_parts() -> None:
    before, after = made("none"), made(alpha=0.5)
    given = common(after).query_ids[:4]  # round(.5 * 9), half to even
    for old, new in zip(before.groups_of(0, 0), after.groups_of(0, 0), strict=True):
        own = [name for name in old.train.query_ids if name not in given]
        assert new.train.query_ids == (*own, *given)
        kept = [old.train.rows(q) for q, name in enumerate(old.train.query_ids) if name not in given]
        rows = np.concatenate([old.train.features[each] for each in kept])
        assert np.array_equal(new.train.features[: len(rows)], rows)
        assert new.train.grades[len(rows) :].tolist() == after_grades(after, len(given))


def after_grades(setting: Setting, n: int) -> list[int]:
    shared = common(setting)
    return [int(grade) for grade in shared.grades[: shared.starts[n]]]


def test_clients_of_different_intents_get_the_union_and_share_features() -> None:
    before, after = made("none", "intents"), made("data-sharing", "intents")
    whole, given = after.dataset.folds[0].train, set(common(after).query_ids)
    is_given = np.repeat([name in given for name in whole.query_ids], whole.lengths)
    for old, new in zip(before.groups_of(0, 0), after.groups_of(0, 0), strict=True):
        assert new.train.features is whole.features
        assert np.array_equal(new.train.grades[is_given], whole.grades[is_given])
        assert np.array_equal(new.train.grades[~is_given], old.train.grades[~is_given])
        assert not np.array_equal(new.train.grades, old.train.grades)


def test_clients_that_have_everything_already_keep_it() -> None:
    assert made("data-sharing", "iid").groups is None
    (group,) = made("synthetic-sharing", "iid").groups_of(0, 0)
    assert group.train.n_queries == 36 + 9


@pytest.mark.parametrize("remedy", REMEDIES)
def test_repeats_and_seeds_have_other_global_sets(remedy: str) -> None:
    one, same, other = (made(remedy, repeats=2, seed=seed) for seed in (1, 1, 2))
    found = [common(*place).features.tobytes() for place in ((one, 0), (one, 1), (other, 0))]
    assert len(set(found)) == 3
    assert [common(same, repeat).features.tobytes() for repeat in (0, 1)] == found[:2]
    assert common(made(remedy, seed=1)).features.tobytes() == found[0]  # one repeat of two is the same as alone


def test_all_queries_may_be_shared() -> None:
    for group in made(shared_share=1.0).groups_of(0, 0):
        assert sorted(group.train.query_ids) == sorted(made().dataset.folds[0].train.query_ids)


# Synthetic queries


def test_synthetic_queries_come_on_top_and_none_is_a_clients() -> None:
    before, after = made("none"), made("synthetic-sharing", synthetic_queries=12)
    given, whole = common(after), after.dataset.folds[0].train
    assert given.n_queries == 12 and set(np.unique(given.grades)) == {0, 1, 2}
    real = {row.tobytes() for row in whole.features}
    assert not any(row.tobytes() in real for row in given.features)
    for old, new in zip(before.groups_of(0, 0), after.groups_of(0, 0), strict=True):
        assert new.train.n_queries == old.train.n_queries + 12
        assert np.array_equal(new.train.features[: old.train.n_documents], old.train.features)


def test_synthetic_queries_do_not_depend_on_how_often_documents_are_counted() -> None:
    """Four groups have the same documents here, each with grades of its own."""
    given = common(made("synthetic-sharing", "intents", synthetic_queries=200))
    whole = made("none", "intents").dataset.folds[0].train
    assert abs(given.lengths.mean() - whole.lengths.mean()) < 3  # 200 lists with a spread of some 8: error .6
    first, second = made("synthetic-sharing", "intents").groups_of(0, 0)[:2]
    assert first.train.features is second.train.features


# The warm-up


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
@pytest.mark.parametrize("remedy", REMEDIES)
def test_every_training_begins_with_its_own_warm_ranker(remedy: str, engine: str) -> None:
    setting = made(remedy, warm_up=60, repeats=2, clicks=["perfect", "informational"])
    results, _ = simulate(setting, Options(engine=engine))
    assert setting.warm_up is not None
    warm, _ = simulate(setting.warm_up, Options(engine=engine))
    assert [result.first.tobytes() for result in results if result.first is not None] == [
        result.params.tobytes() for result in warm
    ]
    assert len({result.params.tobytes() for result in warm}) == 4
    for number, (user, repeat) in enumerate((u, r) for u in range(2) for r in range(2)):
        plain, _ = run_plainly(setting.warm_up, Cell(user, 0, repeat), setting.warm_up.rounds)
        np.testing.assert_allclose(warm[number].params, plain, atol=1e-5)


def test_a_warm_up_searches_as_often_as_it_says_with_draws_of_its_own() -> None:
    for n_searches in (1, 60, 101, 1000):
        warm = made(warm_up=n_searches).warm_up
        assert warm is not None and warm.rounds * warm.method.population.interactions[0] == n_searches
    setting = made()
    assert setting.warm_up is not None
    assert not np.array_equal(cell_key(setting, Cell(0, 0, 0)), cell_key(setting.warm_up, Cell(0, 0, 0)))


def test_the_searches_of_warm_ups_are_planned_for() -> None:
    alone, warm = (made(warm_up=n, repeats=2) for n in (0, 60))
    assert count_planned(warm) - count_planned(alone) == 2 * 60  # a user, a fold, two repeats


def test_a_warm_up_begins_where_the_training_would() -> None:
    setting = made(ranker="mlp", hidden=4)
    assert setting.warm_up is not None
    first = initial_params(setting, Cell(0, 0, 0))
    assert first.any() and np.array_equal(first, initial_params(setting.warm_up, Cell(0, 0, 0)))


def test_a_training_that_moves_nothing_after_its_warm_up_is_noticed() -> None:
    setting = made(warm_up=60)
    silent = replace(setting.method.population, dropout=0.999999)
    setting = replace(setting, method=replace(setting.method, population=silent))
    results, _ = simulate(setting, Options(engine="numba"))
    assert results[0].params.any()
    assert "ranker-still" in [notice.name for notice in review_results(setting, results)]


@pytest.mark.parametrize(
    ("remedy", "engine"), [("data-sharing", "numba"), ("synthetic-sharing", "numba"), ("synthetic-sharing", "xla")]
)
def test_fast_engines_give_the_plain_ones_ranker(remedy: str, engine: str) -> None:
    setting = made(remedy, warm_up=60)
    fast, plain = (simulate(setting, Options(engine=name))[0][0] for name in (engine, "plain"))
    np.testing.assert_allclose(fast.params, plain.params, atol=1e-5, rtol=1e-4)
    np.testing.assert_allclose(fast.online, plain.online, atol=1e-6)


@pytest.mark.parametrize("stop_after", [1, 3, 5, 7])  # four rounds of the warm-up come first
def test_a_run_stopped_before_or_after_its_warm_up_resumes_to_the_same_bits(
    stop_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = made("synthetic-sharing", warm_up=400, rounds=6)
    whole, _ = simulate(setting, Options(engine="numba"))
    monkeypatch.setattr(train, "_CALL_SECONDS", 1e-9)  # one round per call
    options = Options(engine="numba", checkpoints=tmp_path, checkpoint_seconds=0.0, identity="one")
    with pytest.raises(RuntimeError, match="pulled the plug"):
        simulate(setting, replace(options, saved=Plug(stop_after)))
    assert (tmp_path / "warm-up" / "batch-000.safetensors").exists()
    assert (tmp_path / "batch-000.safetensors").exists() == (stop_after > 4)
    assert_same_bits(simulate(setting, options)[0], whole)


def test_sharing_mends_clients_that_have_one_grade_each() -> None:
    """They learn nothing from lists in which all documents are alike; perfect users, 60 rounds, five seeds."""
    usual: dict[str, Any] = {"rounds": 60, "repeats": 5, "clicks": "perfect"}
    alone, real, synthetic = (
        np.array([result.test[-1] for result in simulate(made(name, **usual), Options(engine="numba"))[0]])
        for name in ("none", *REMEDIES)
    )
    assert (real > alone).all() and (synthetic > alone).all()


# What is said, and what is refused


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ("data-sharing", "25 % of all training queries with documents and grades, and every client has 100 % of these"),
        ("synthetic-sharing", "sums over each client's documents"),
    ],
)
@pytest.mark.parametrize("masked", [{}, {"secure_sum": True}])
def test_reports_say_what_is_given_away(remedy: str, words: str, masked: dict[str, Any]) -> None:
    chosen = recipe(remedy, warm_up=60, **masked)
    said = who_learns(chosen, resolve(chosen).method)
    assert words in said.promise and words in dict(said.lines)["the server and every client"]
    assert "Queries, documents" not in said.promise and "Clicks stay on each client" in said.promise
    assert "searches" not in dict(said.lines)["a client"]
    plain = recipe("none", **masked)
    assert "Queries, documents and clicks stay" in who_learns(plain, resolve(plain).method).promise


@pytest.mark.parametrize("remedy", REMEDIES)
@pytest.mark.parametrize(
    "privacy", [{"privacy": "sound", "epsilon": 1}, {"privacy": "paper", "epsilon": 1, "sensitivity": 3}]
)
def test_no_epsilon_is_promised_for_what_is_shared(remedy: str, privacy: dict[str, Any]) -> None:
    recipe("none", **privacy)
    with pytest.raises(ValueError, match=f"remedy={remedy} shares .* privacy={privacy['privacy']} does not protect"):
        recipe(remedy, **privacy)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("fpdgd", {"alpha": 1.5}, r"alpha is 1\.5, must be from 0 to 1"),
    ("fpdgd", {"alpha": -0.1}, r"alpha is -0\.1, must be from 0 to 1"),
    ("fpdgd", {"alpha": float("nan")}, "alpha is nan, must be a finite number"),
    ("fpdgd", {"shared_share": 2}, r"shared_share is 2\.0, must be from 0 to 1"),
    ("fpdgd", {"shared_share": -1}, r"shared_share is -1\.0, must be from 0 to 1"),
    ("fpdgd", {"shared_share": 0.01}, r"shared_share is 0\.01, which is none of 36 training queries: raise it"),
    ("fpdgd", {"warm_up": -1}, "warm_up is -1, must be at least 0"),
    ("pdgd", {"interactions": 10}, "has no simulated clients that send updates"),
    ("foltr-es", {"n_clients": 10}, "has no simulated clients that send updates"),
    ("mse", {}, "is for learning from clicks; recipe mse learns from labels"),
]


@pytest.mark.parametrize("remedy", REMEDIES)
@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_what_cannot_be_shared_is_refused_before_a_directory_exists(
    remedy: str, name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    sizes = {"n_clients": 4, "rounds": 1} if name == "fpdgd" else {}
    with pytest.raises(ValueError, match=message):
        run_changed(name, {"data": "tiny", "remedy": remedy, **sizes, **changes}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_warm_up_beyond_the_memory_limit_is_refused_before_a_directory_exists(tmp_path: Path) -> None:
    chosen = recipe("synthetic-sharing", warm_up=100, synthetic_queries=400, alpha=0)
    setting = resolve(chosen)
    assert setting.warm_up is not None
    needs = [
        max(estimate_bytes(each, plan) for plan in make_plans(each, platform="cpu", n_devices=1))
        for each in (setting, setting.warm_up)
    ]
    assert needs[0] < needs[1]
    with pytest.raises(ValueError, match=f"needs about {needs[1]:,} bytes and the memory limit is {needs[0]:,}"):
        run_recipe(chosen, RunOptions(out=tmp_path / "run", memory_limit=needs[0], device="cpu"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("partition", "n_clients"), [("labels-2", 3), ("dirichlet", 3), ("labels-1", 6)])
def test_lists_cannot_be_counted_where_clients_divide_the_documents_of_a_grade(partition: str, n_clients: int) -> None:
    made("data-sharing", partition, n_clients=n_clients)
    with pytest.raises(ValueError, match="of one grade are divided among clients: use partition=labels-1 with one"):
        made("synthetic-sharing", partition, n_clients=n_clients)


@pytest.mark.parametrize("partition", ["labels-1", "queries", "quantity", "clicks", "intents", "queries+clicks"])
def test_lists_are_counted_where_a_client_has_all_documents_of_a_grade(partition: str) -> None:
    assert common(made("synthetic-sharing", partition)).n_queries > 0


def run_changed(name: str, changes: dict[str, Any], out: Path) -> None:
    run_recipe(change_recipe(NAMED[name], changes), RunOptions(out=out))


def test_a_click_log_has_nothing_to_share(tmp_path: Path) -> None:
    make_log(LogRequest("tiny", n_impressions=30, n_clients=3), tmp_path / "log.jsonl")
    changes = {"data": "tiny", "folds": [1], "remedy": "data-sharing", "log": str(tmp_path / "log.jsonl")}
    with pytest.raises(ValueError, match="a click log has no simulated clients that send updates"):
        run_changed("fpdgd", changes, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_synthetic_queries_are_at_least_one_and_not_for_real_ones() -> None:
    with pytest.raises(ValueError, match="synthetic_queries is 0, must be at least 1"):
        recipe("synthetic-sharing", synthetic_queries=0)
    with pytest.raises(ValueError, match="synthetic_queries is for remedy=synthetic-sharing"):
        recipe("data-sharing", synthetic_queries=5)
