"""Every attack on every engine: nobody lies, some lie, and the engines agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from liars import ON_UPDATES, tiny_federation
from tiny_settings import run_plainly

from hushrank.attacks.named import ATTACKS, find_attack
from hushrank.clicks.named import named_user
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import sample_cohort
from hushrank.federation.groups import Group, corrupt_people

FAST = ["numba", "xla"]


def run(setting: Setting, engine: str) -> list[CellResult]:
    return simulate(setting, Options(engine=engine))[0]


def poisoned(n_malicious: int) -> Setting:
    setting = tiny_federation()
    everybody = [(Group("all", fold.train),) for fold in setting.dataset.folds]
    poison = named_user("poison", n_grades=3)
    population, groups = corrupt_people(setting.method.population, everybody, n_malicious=n_malicious, user=poison)
    return replace(setting, method=replace(setting.method, population=population), groups=groups)


@pytest.mark.parametrize("engine", ["plain", *FAST])
def test_with_nobody_malicious_every_attack_leaves_the_run_bit_equal(engine: str) -> None:
    honest = run(tiny_federation(), engine)
    for name in ATTACKS:
        attacked = run(tiny_federation(attack=find_attack(name), n_malicious=0), engine)
        for one, other in zip(honest, attacked, strict=True):
            assert one.params.tobytes() == other.params.tobytes(), name
            assert one.online.tobytes() == other.online.tobytes(), name


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("name", ON_UPDATES)
def test_an_attack_gives_the_plain_rounds_ranker_on_every_engine(engine: str, name: str) -> None:
    setting = tiny_federation(attack=find_attack(name), n_malicious=3)
    for user, result in enumerate(run(setting, engine)):
        params, online = run_plainly(setting, Cell(user, 0, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(result.online, online, atol=1e-6)


@pytest.mark.parametrize("engine", FAST)
def test_poisoned_clicks_give_the_plain_rounds_ranker_on_every_engine(engine: str) -> None:
    setting = poisoned(3)
    assert not setting.method.is_gathered  # what liars send need not be seen
    for user, result in enumerate(run(setting, engine)):
        params, online = run_plainly(setting, Cell(user, 0, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(result.online, online, atol=1e-6)


@pytest.mark.parametrize("engine", ["plain", *FAST])
def test_what_poisoners_see_is_not_measured(engine: str) -> None:
    setting, honest = poisoned(3), run(tiny_federation(), engine)[0]
    result = run(setting, engine)[0]
    assert set(result.shown) == set(honest.shown) and set(result.looks) == set(honest.looks)
    federation = make_federation(setting, Cell(0, 0, 0))
    cohort = sample_cohort(setting.method.population, cell_key(setting, Cell(0, 0, 0)), 1)
    start, key = initial_params(setting, Cell(0, 0, 0)), cell_key(setting, Cell(0, 0, 0))
    seen = [federation.study(federation, start, client, key=key, round=1)[1] for client in cohort]
    assert result.online[0] == pytest.approx(np.mean(seen[3:]), abs=1e-6)
