"""Rules and attacks see the same updates on every engine, and remember the same things."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from tiny_settings import UNEQUAL, run_plainly, tiny_setting

from hushrank.aggregation.named import RULES, CheckedRule, find_rule, register_rule
from hushrank.attacks.named import ATTACKS, FunctionAttack, find_attack
from hushrank.engine import simulate as simulation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.groups import Group
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.types import Array, AttackView, Combined, Gathered, Knowledge

FAST = ["numba", "xla"]


@dataclass(frozen=True, slots=True)
class Momentum:
    """Remembers the mean of what it gave so far, and tells how many updates there were."""

    share: float = 0.5

    def __call__(self, gathered: Gathered) -> Combined:
        mean = np.average(gathered.updates, axis=0, weights=gathered.weights)
        kept = self.share * gathered.memory.get("kept", np.zeros_like(mean)) + (1 - self.share) * mean
        return Combined(kept, {"updates": len(gathered.updates), "round": gathered.round}, {"kept": kept})


@pytest.fixture(autouse=True)
def own_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "momentum", Momentum)


def make(**changes: object) -> Setting:
    setting = tiny_setting(users=("perfect", "informational"), population=UNEQUAL, n_folds=1)
    return replace(setting, method=replace(setting.method, **changes))  # type: ignore[arg-type] # keys of Method


def results(setting: Setting, engine: str, **options: object) -> list[CellResult]:
    return simulate(setting, Options(engine=engine, **options))[0]  # type: ignore[arg-type]


def assert_twins(setting: Setting, engine: str) -> None:
    for user, result in enumerate(results(setting, engine)):
        params, online = run_plainly(setting, Cell(user, 0, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, atol=3e-6)
        np.testing.assert_allclose(result.online, online, atol=1e-6)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("name", ["median", "momentum"])
def test_a_plain_rule_gives_the_plain_rounds_ranker_on_every_engine(engine: str, name: str) -> None:
    assert_twins(make(rule=find_rule(name)), engine)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("rule", ["mean", "median"])
def test_an_attack_gives_the_plain_rounds_ranker_on_every_engine(engine: str, rule: str) -> None:
    assert_twins(make(attack=find_attack("sign-flip"), n_malicious=4, rule=find_rule(rule)), engine)


def test_an_attack_under_the_servers_noise_is_the_plain_rounds() -> None:
    noise = SoundGaussian(0.1, 0.5)
    assert_twins(make(attack=find_attack("sign-flip"), n_malicious=4, exchange=UpdateExchange(noise)), "numba")


@pytest.mark.parametrize("engine", ["plain", *FAST])
def test_evidence_is_recorded_round_by_round(engine: str) -> None:
    result = results(make(rule=find_rule("momentum")), engine)[0]
    assert result.shown["evidence/round"].tolist() == [1, 2, 3, 4]
    assert all(1 <= n <= 7 for n in result.shown["evidence/updates"])  # of a cohort of seven, some never answer


@pytest.mark.parametrize("engine", FAST)
def test_what_a_rule_remembers_is_in_the_checkpoint(engine: str, tmp_path: Path) -> None:
    whole = make(rule=find_rule("momentum"))
    expected = results(whole, engine)
    results(replace(whole, rounds=2), engine, checkpoints=tmp_path)
    resumed = results(whole, engine, checkpoints=tmp_path)
    for a, b in zip(resumed, expected, strict=True):
        assert a.params.tobytes() == b.params.tobytes()
        assert a.shown["evidence/round"].tolist() == b.shown["evidence/round"].tolist()


def test_settings_of_a_rule_reach_it() -> None:
    rule = find_rule("momentum", share=0.25)
    assert rule == CheckedRule("momentum", Momentum(0.25))


@pytest.mark.parametrize(
    ("knowledge", "sees_own", "sees_others"),
    [(Knowledge.nothing, False, False), (Knowledge.own, True, False), (Knowledge.everybody, True, True)],
)
def test_an_attack_sees_what_its_knowledge_allows(knowledge: Knowledge, sees_own: bool, sees_others: bool) -> None:
    views: list[AttackView] = []

    def look(view: AttackView, *, key: Array) -> Array:
        del key
        views.append(view)
        return np.zeros((view.n_malicious, len(view.params)))

    setting = make(attack=FunctionAttack(look, knowledge), n_malicious=2, population=Population(5, (1,)))
    results(setting, "numba")
    assert {(view.own is not None, view.others is not None) for view in views} == {(sees_own, sees_others)}
    assert {(view.n_clients, view.n_malicious) for view in views} == {(5, 2)}
    if sees_others:
        assert {view.others.shape for view in views if view.others is not None} == {(3, 6)}


def test_an_attack_that_sends_the_wrong_number_of_updates_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTACKS, "short", lambda view, *, key: np.zeros((1, 6)) * len(key) * view.round)
    with pytest.raises(ValueError, match=r"the attack sends \(1, 6\) numbers, must be 4 updates of 6"):
        results(make(attack=find_attack("short"), n_malicious=4, population=Population(5, (1,))), "numba")


def test_updates_that_do_not_fit_are_refused_with_their_bytes() -> None:
    many = make(rule=find_rule("median"), population=Population(100_000, (1,)))
    with pytest.raises(ValueError, match=r"needs about [\d,]+ bytes and the memory limit is 1,000,000"):
        simulate(many, Options(memory_limit=1_000_000))


def test_a_rule_whose_distances_do_not_fit_is_refused_with_their_bytes() -> None:
    many = make(rule=find_rule("bulyan", assumed_malicious=5), population=Population(100_000, (1,)))
    with pytest.raises(ValueError, match=r"needs about 8\d,[\d,]+ bytes and the memory limit is 16,000,000,000"):
        simulate(many, Options(memory_limit=16_000_000_000))  # 100,000 x 100,000 x 8 bytes


def test_a_round_without_a_quorum_leaves_the_rules_memory_alone() -> None:
    silent = make(rule=find_rule("momentum"), population=Population(2, (1,), dropout=0.999999))
    result = results(silent, "numba")[0]
    assert not result.params.any() and "evidence/round" not in result.shown


@pytest.mark.parametrize("engine", ["plain", *FAST])
def test_a_rule_keeps_what_it_returns_and_nothing_else(engine: str, tmp_path: Path) -> None:
    def odd(gathered: Gathered) -> Combined:
        state, round = gathered.memory, gathered.round
        shapes = [np.shape(array) for array in state.values()]
        assert set(state) <= {"odd", "even"} and len(state) <= 1 and shapes in ([], [()])
        memory = {"odd" if round % 2 else "even": np.asarray(round)}
        return Combined(gathered.updates.mean(axis=0), {"known": len(state)}, memory)

    whole = make(rule=CheckedRule("odd", odd), population=Population(4, (1,)))
    results(replace(whole, rounds=2), engine, checkpoints=tmp_path)
    resumed = results(whole, engine, checkpoints=tmp_path)[0]
    assert resumed.shown["evidence/known"].tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("engine", ["plain", *FAST])
def test_a_round_in_which_nobody_was_drawn_is_passed_over(engine: str) -> None:
    few = Population(6, (1,), cohort=1, sampling="poisson")
    result = results(replace(make(rule=find_rule("median"), population=few), rounds=12), engine)[0]
    assert (result.shown["searches"] == 0).any() and np.isfinite(result.params).all()


def test_rules_need_all_clients_on_one_device() -> None:
    with pytest.raises(
        ValueError, match="devices is 2, but rules, attacks, keep_every and remedies that keep something"
    ):
        simulate(make(rule=find_rule("median")), Options(engine="xla", devices=2))


def test_a_rule_with_another_number_of_parameters_is_refused_when_it_is_registered() -> None:
    with pytest.raises(ValueError, match="aggregation=wrong takes 3 parameters, must be 2"):
        register_rule("wrong", lambda updates, weights, share: updates[0] * weights[0] * share)  # type: ignore[misc, arg-type]


def test_without_a_limit_updates_must_fit_into_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "count_memory", lambda: 1_000)
    with pytest.raises(ValueError, match=r"needs about [\d,]+ bytes and this machine's memory is 1,000"):
        simulate(make(rule=find_rule("median")), Options())


@pytest.mark.parametrize("engine", FAST)
def test_a_rule_may_remember_arrays_of_any_size_where_clients_differ(engine: str) -> None:
    alike = make(rule=find_rule("momentum"))
    train = alike.dataset.folds[0].train
    method = replace(alike.method, population=replace(UNEQUAL, groups=(0, 1)))
    differ = replace(alike, method=method, groups=((Group("one", train), Group("other", train)),))
    assert np.isfinite(results(differ, engine)[-1].params).all()
