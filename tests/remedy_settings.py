"""Settings of remedies for the tests: tiny ones, and one whose clients want opposite things."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tiny_settings import UNEQUAL, tiny_setting

from hushrank.engine.inputs import cell_key, initial_memory, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population
from hushrank.federation.groups import Group, divide_population
from hushrank.federation.round import Federation, run_round
from hushrank.remedies.remedy import Remedy
from hushrank.types import Array, NamedArrays


def with_remedy(remedy: Remedy, *, population: Population = UNEQUAL, **tiny: Any) -> Setting:
    """A tiny setting whose ranker keeps the remedy's layers on clients. tiny: of `tiny_setting`."""
    setting = tiny_setting(population=population, **{"users": ("navigational",), **tiny})
    return change_method(setting, remedy=remedy, ranker=replace(setting.method.ranker, personal=remedy.layers))


def change_method(setting: Setting, **changes: Any) -> Setting:
    return replace(setting, method=replace(setting.method, **changes))


def opposed(setting: Setting) -> Setting:
    """Every second client finds relevant what the others do not."""
    groups = tuple(
        (
            Group("usual", fold.train),
            Group("turned", turned(fold.train), test=turned(fold.test), vali=turned(fold.vali)),
        )
        for fold in setting.dataset.folds
    )
    population = divide_population(setting.method.population, groups[0], (0, 1))
    return replace(setting, method=replace(setting.method, population=population), groups=groups)


def turned(queries: Any) -> Any:
    return replace(queries, grades=(2 - queries.grades).astype(np.uint8))


def results(setting: Setting, engine: str, **options: Any) -> list[CellResult]:
    return simulate(setting, Options(engine=engine, **options))[0]


def follow(
    setting: Setting, n_rounds: int, *, federation: Federation | None = None
) -> tuple[Federation, list[NamedArrays], list[Array]]:
    """The plain rounds of the first cell: what is remembered, and the parameters, after each; before the first too."""
    cell = Cell(0, 0, 0)
    federation, params = federation or make_federation(setting, cell), initial_params(setting, cell)
    states: list[NamedArrays] = [initial_memory(setting, params)]
    rankers = [params]
    for round in range(1, n_rounds + 1):
        state, params, _ = run_round(federation, states[-1], rankers[-1], key=cell_key(setting, cell), round=round)
        states.append(state)
        rankers.append(params)
    return federation, states, rankers


def assert_same_bits(ours: list[CellResult], theirs: list[CellResult]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.params.tobytes() == b.params.tobytes()
        for name in b.shown:
            assert a.shown[name].tobytes() == b.shown[name].tobytes()
        for name in b.looks:
            assert a.looks[name].tobytes() == b.looks[name].tobytes()
