"""Clients that differ: groups with their own queries, labels, people and searches, the same on every engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from seeds import pick_seed
from tiny_settings import N_FEATURES, UNEQUAL, random_queries, run_plainly, tiny_setting

from hushrank.clicks.named import named_user
from hushrank.engine.evaluate import examine, prepare_examiner
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, name_engine, simulate
from hushrank.federation.cohort import Population, count_interactions, draw_groups, find_groups
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.groups import Group, divide_population
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.streams import seed_key
from hushrank.types import Array

ENGINES = ["plain", "numba", "xla"]


def three_groups(setting: Setting) -> tuple[tuple[Group, ...], ...]:
    """Other queries; the same documents with other labels; and other people who search once."""
    groups = []
    for fold in setting.dataset.folds:
        own = random_queries(50 + fold.number, 9)
        turned = replace(fold.train, grades=(2 - fold.train.grades).astype(np.uint8))
        groups.append(
            (
                Group("own", own, test=random_queries(70, 5)),
                Group("turned", turned),
                Group("informed", fold.train, user=named_user("informational", n_grades=3), n_interactions=1),
            )
        )
    return tuple(groups)


def divided(*, population: Population = UNEQUAL, **changes: Any) -> Setting:
    setting = tiny_setting(users=("perfect",), population=population)
    groups = three_groups(setting)
    several = divide_population(population, groups[0], (0, 1, 2, 1))
    method = replace(setting.method, population=several, **changes)  # keys of Method
    return replace(setting, method=method, groups=groups)


def results(setting: Setting, engine: str) -> list[CellResult]:
    return simulate(setting, Options(engine=engine))[0]


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize("changes", [{}, {"exchange": Evolution(antithetic=False)}], ids=["updates", "rewards"])
def test_groups_give_the_plain_rounds_ranker_on_every_engine(engine: str, changes: dict[str, Any]) -> None:
    setting = divided(**changes)
    for result in results(setting, engine):
        params, online = run_plainly(setting, Cell(0, result.fold - 1, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, atol=3e-6, rtol=1e-5)
        np.testing.assert_allclose(result.online, online, atol=1e-6)


@pytest.mark.parametrize("engine", ["numba", "xla"])
def test_what_each_group_saw_is_recorded(engine: str) -> None:
    fast, plain = results(divided(), engine)[0], results(divided(), "plain")[0]
    for name in ("online/own", "online/turned", "online/informed"):
        np.testing.assert_allclose(fast.shown[name], plain.shown[name], atol=1e-6)
    assert fast.shown["searches"].tolist() == plain.shown["searches"].tolist()


def test_a_group_is_measured_on_its_own_queries_where_it_has_some() -> None:
    found = results(divided(), "numba")[0].looks
    assert found["offline/nDCG@10/turned"].tolist() == found["offline/nDCG@10"].tolist()
    assert found["offline/nDCG@10/own"].tolist() != found["offline/nDCG@10"].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_one_group_is_the_case_without_groups_bit_by_bit(engine: str) -> None:
    alike = tiny_setting(users=("perfect",), n_folds=1)
    single = replace(alike, groups=tuple((Group("all", fold.train),) for fold in alike.dataset.folds))
    expected, found = results(alike, engine)[0], results(single, engine)[0]
    assert found.params.tobytes() == expected.params.tobytes()
    assert found.online.tobytes() == expected.online.tobytes()
    np.testing.assert_allclose(found.shown["online/all"], found.online, atol=1e-6)


def test_a_population_is_divided_by_client_and_searches_as_its_groups_do() -> None:
    population = divided(population=Population(6, (3,))).method.population
    ids = np.arange(6)
    assert find_groups(population, ids).tolist() == [0, 1, 2, 1, 0, 1]
    assert count_interactions(population, ids).tolist() == [3, 3, 1, 3, 3, 3]


def test_groups_that_do_not_fit_the_population_are_refused() -> None:
    setting = tiny_setting()
    with pytest.raises(ValueError, match="the population has 1 groups: every fold must describe as many"):
        replace(setting, groups=three_groups(setting))
    with pytest.raises(ValueError, match=r"clients are assigned to groups \[0, 2\], must be each of 0 to 2"):
        divide_population(Population(4), three_groups(setting)[0], (0, 2))


# Personal parameters


def personal(ranker: str, **changes: Any) -> Setting:
    setting = divided(**changes)
    made = (
        MlpRanker(N_FEATURES, 5, personal=("output/weights",))
        if ranker == "mlp"
        else LinearRanker(N_FEATURES, personal=("weights",))
    )
    return replace(setting, method=replace(setting.method, ranker=made))


@pytest.mark.parametrize(
    ("ranker", "engine"), [("mlp", "numba"), ("mlp", "xla"), ("linear", "numba"), ("linear", "xla")]
)
def test_personal_parameters_are_the_plain_rounds_on_every_engine(ranker: str, engine: str) -> None:
    fast, plain = (results(personal(ranker), name) for name in (engine, "plain"))
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_allclose(a.params, b.params, atol=5e-6, rtol=1e-4)
        np.testing.assert_allclose(a.online, b.online, atol=1e-6)


@pytest.mark.parametrize(("ranker", "engine"), [("mlp", "numba"), ("mlp", "xla"), ("linear", "numba")])
def test_only_the_shared_part_of_an_update_is_clipped(ranker: str, engine: str) -> None:
    clipped = {"exchange": UpdateExchange(SoundGaussian(0.02, 0.0))}
    fast, plain = (results(personal(ranker, **clipped), name) for name in (engine, "plain"))
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_allclose(a.params, b.params, atol=5e-6, rtol=1e-4)


def test_a_group_of_people_without_a_click_table_needs_the_plain_engine() -> None:
    setting = divided()
    groups = tuple((replace(first, user=lambda grades, *_: grades > 0), *rest) for first, *rest in setting.groups or ())
    assert name_engine(replace(setting, groups=groups), Options(), "cpu") == "plain"


def test_a_ranker_that_is_personal_as_a_whole_teaches_nobody_else() -> None:
    setting = personal("linear", population=Population(4, (2,)))
    alone = results(replace(setting, rounds=1), "numba")[0]
    assert alone.params.any()  # what is reported is the mean of the clients' own
    shared = replace(setting, method=replace(setting.method, ranker=LinearRanker(N_FEATURES)))
    np.testing.assert_allclose(alone.params, _mean_update(shared), atol=1e-6)


def _mean_update(setting: Setting) -> Array:
    """[n_params] of the four clients' first updates, each counted once."""
    from hushrank.engine.inputs import cell_key, initial_params
    from hushrank.engine.plain import make_federation
    from hushrank.federation.cohort import sample_cohort
    from hushrank.federation.local import learn

    cell = Cell(0, 0, 0)
    federation, key = make_federation(setting, cell), cell_key(setting, cell)
    start = initial_params(setting, cell)
    cohort = sample_cohort(setting.method.population, key, 1)
    return np.asarray(np.mean([learn(federation, start, c, key=key, round=1)[0].delta for c in cohort], axis=0))


def test_a_name_of_no_parameter_cannot_be_personal() -> None:
    with pytest.raises(ValueError, match=r"personal is \['input'\], must be some of hidden/weights"):
        MlpRanker(4, 3, personal=("input",))


# Groups that are drawn anew, and divisions that differ by repeat


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize("population", [UNEQUAL, Population(5, (2,))], ids=["sampled", "everybody"])
def test_groups_drawn_anew_are_the_plain_rounds_on_every_engine(engine: str, population: Population) -> None:
    setting = divided(population=replace(population, regroup=True))
    for result in results(setting, engine):
        params, online = run_plainly(setting, Cell(0, result.fold - 1, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, atol=3e-6, rtol=1e-5)
        np.testing.assert_allclose(result.online, online, atol=1e-6)
    fixed = results(divided(population=population), engine)
    assert fixed[0].params.tolist() != results(setting, engine)[0].params.tolist()


def test_a_client_behaves_as_every_group_in_its_turn_and_as_often_as_they_are() -> None:
    population = Population(2000, groups=(0, 1, 2, 1), regroup=True)
    key, ids = seed_key(pick_seed(3)), np.arange(2000)
    one, two = (draw_groups(population, key, round, ids) for round in (1, 2))
    shares = np.bincount(one) / 2000  # 1/4, 1/2, 1/4; four standard errors are .045
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.045)
    assert 0.3 < np.mean(one == two) < 0.45  # by chance (1/4)^2 + (1/2)^2 + (1/4)^2 = .375
    assert find_groups(population, ids[:4]).tolist() == [0, 1, 2, 1]  # where they belong stays


def divided_by_repeat() -> Setting:
    setting = divided(population=Population(4, (2,)))
    others = [
        tuple(
            replace(group, train=random_queries(90 + fold, 12), test=random_queries(95 + fold, 6)) for group in groups
        )
        for fold, groups in enumerate(setting.groups or ())
    ]
    both = [division for pair in zip(setting.groups or (), others, strict=True) for division in pair]
    return replace(setting, groups=tuple(both), repeats=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_repeat_may_have_a_division_of_its_own(engine: str) -> None:
    setting = divided_by_repeat()
    for result in results(setting, engine):
        params, online = run_plainly(setting, Cell(0, result.fold - 1, result.repeat), setting.rounds)
        np.testing.assert_allclose(result.params, params, atol=3e-6, rtol=1e-5)
        np.testing.assert_allclose(result.online, online, atol=1e-6)
        own = prepare_examiner(random_queries(95 + result.fold - 1, 6))
        measured = examine(own, setting.method.ranker, result.params).ndcg
        is_own = np.isclose(result.looks["offline/nDCG@10/turned"][-1], measured)
        assert is_own == (result.repeat == 1)


def test_divisions_that_fit_neither_folds_nor_repeats_are_refused() -> None:
    setting = divided_by_repeat()
    with pytest.raises(
        ValueError, match="groups are given 4 times: give them for every fold, or every fold and repeat"
    ):
        replace(setting, repeats=3)
