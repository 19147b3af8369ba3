"""Updates with NaN or infinities are refused before aggregation, counted, and survived, on every engine alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.aggregation.named import RULES, find_rule
from hushrank.attacks.named import FunctionAttack, find_attack
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population, answer_mask
from hushrank.runs.simulation import count_lost_rounds
from hushrank.types import Array, AttackView, Knowledge

ENGINES = ["plain", "numba", "xla"]
SOME = Population(13, (1, 3, 2), dropout=0.1)  # one for nearly all tests: a program is compiled once
SOME_OFTEN_SILENT = replace(SOME, dropout=0.45)
NOTHING = FunctionAttack(lambda view, *, key: np.full_like(view.own, np.nan) if len(key) else view.own)


@dataclass(frozen=True, slots=True)
class Broken:
    """All but the last malicious client send a number that is none in one place."""

    knowledge: ClassVar[Knowledge] = Knowledge.own
    value: float = float("nan")

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None
        sent = view.own.copy()
        sent[:-1, 2] = self.value
        return sent


def make(rule: str = "mean", *, population: Population = SOME, **changes: object) -> Setting:
    setting = tiny_setting(users=("perfect",), population=population, n_folds=1)
    method = replace(setting.method, rule=find_rule(rule, assumed_malicious=2), **changes)  # type: ignore[arg-type]
    return replace(setting, method=method)


def result(setting: Setting, engine: str) -> CellResult:
    return simulate(setting, Options(engine=engine))[0][0]


@pytest.mark.parametrize("rule", ["mean", "krum", "trimmed-mean"])
def test_every_engine_leaves_them_out_and_goes_on(rule: str) -> None:
    setting = make(rule, attack=Broken(np.inf if rule == "krum" else np.nan), n_malicious=3)
    plain, *fast = (result(setting, engine) for engine in ENGINES)
    assert plain.params.any() and np.isfinite(plain.params).all()
    assert plain.shown["evidence/refused"].max() == 2  # all but the last of those three who answered
    for other in fast:
        np.testing.assert_allclose(other.params, plain.params, atol=3e-6)
        assert other.shown["evidence/refused"].tolist() == plain.shown["evidence/refused"].tolist()


@pytest.mark.parametrize("engine", ENGINES[:2])  # the third shares the server's part with the second
def test_the_mean_is_that_of_the_others(engine: str) -> None:
    def agree(view: AttackView, *, key: Array) -> Array:
        assert view.others is not None and len(key)
        return view.others.mean(axis=0)[None]

    alike = replace(SOME, interactions=(2,), dropout=0.0)
    silent, agreeing = (
        result(replace(make(population=alike, attack=attack, n_malicious=1), rounds=1), engine).params
        for attack in (NOTHING, FunctionAttack(agree, Knowledge.everybody))
    )
    np.testing.assert_allclose(silent, agreeing, atol=1e-6)  # the mean of twelve is that of these and their mean


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", ["mean", "multi-krum"])
def test_a_round_in_which_too_few_are_left_is_lost(engine: str, rule: str) -> None:
    found = result(make(rule, attack=NOTHING, n_malicious=13), engine)
    refused = found.shown["evidence/refused"]
    assert not found.params.any() and ((refused > 8) & (refused <= 13)).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_in_peace_nothing_is_counted(engine: str) -> None:
    assert "evidence/refused" not in result(make("trimmed-mean"), engine).shown


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_refused_counts_as_caught(engine: str) -> None:
    found = result(make("multi-krum", attack=NOTHING, n_malicious=2), engine)
    assert set(found.shown["evidence/caught"].tolist()) == {1.0}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", ["trimmed-mean", "multi-krum", "bulyan"])
def test_a_rule_that_assumes_no_liar_gives_the_ranker_of_the_mean(engine: str, rule: str) -> None:
    setting = make()
    careless = replace(setting, method=replace(setting.method, rule=find_rule(rule, assumed_malicious=0)))
    np.testing.assert_allclose(result(careless, engine).params, result(setting, engine).params, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_round_with_too_few_answers_for_the_rule_is_lost_as_the_others_go_on(engine: str) -> None:
    setting = make("krum", population=SOME_OFTEN_SILENT)
    rule = find_rule("krum", assumed_malicious=3)  # seven of thirteen must answer
    found = result(replace(setting, method=replace(setting.method, rule=rule), rounds=8), engine)
    is_lost = np.isnan(found.shown["evidence/wronged"])
    assert 0 < is_lost.sum() < 8 and found.params.any()


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_gives_the_plain_rounds_ranker_on_the_fused_loop(rule: str) -> None:
    setting = make(rule, attack=find_attack("sign-flip"), n_malicious=2)
    plain, fast = result(setting, "plain"), result(setting, "numba")
    assert plain.params.any()
    np.testing.assert_allclose(fast.params, plain.params, atol=3e-6)


def test_rounds_that_a_rule_lost_are_counted() -> None:
    setting = make("krum", population=SOME_OFTEN_SILENT)
    needed = setting.method.quorum.needed(13)
    key = cell_key(setting, Cell(0, 0, 0))
    answers = [
        answer_mask(SOME_OFTEN_SILENT, key, round, np.arange(13)).sum() for round in range(1, setting.rounds + 1)
    ]
    assert needed == 5 and count_lost_rounds(setting) == sum(n < needed for n in answers)
