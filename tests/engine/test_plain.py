"""The plain engine: rules, attacks and people that have no fast twin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.aggregation.named import RULES, find_rule
from hushrank.attacks.named import find_attack
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, name_engine, simulate
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import UpdateExchange
from hushrank.learners.named import NamedLearner
from hushrank.learners.pdgd import pdgd_gradient
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.types import Array


def changed(**changes: object) -> Setting:
    setting = tiny_setting(users=("perfect",), population=Population(5, (2,)), n_folds=1)
    return replace(setting, method=replace(setting.method, **changes))  # type: ignore[arg-type] # keys of Method


def last_params(setting: Setting, engine: str = "auto") -> Array:
    return simulate(setting, Options(engine=engine))[0][0].params


def test_with_nobody_malicious_an_attack_leaves_the_run_bit_equal() -> None:
    honest = last_params(changed(), "plain")
    assert last_params(changed(attack=find_attack("sign-flip"), n_malicious=0), "plain").tobytes() == honest.tobytes()


def test_everybody_lying_by_sign_runs_the_training_backwards() -> None:
    once = replace(changed(), rounds=1)
    liars = replace(changed(attack=find_attack("sign-flip"), n_malicious=5), rounds=1)
    np.testing.assert_array_equal(last_params(liars, "plain"), -last_params(once, "plain"))


def test_a_rule_gets_all_updates_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def first_only(updates: Array, weights: Array) -> Array:
        seen.append((updates.shape, weights.tolist()))
        return updates[0]

    monkeypatch.setitem(RULES, "first-only", first_only)
    last_params(replace(changed(rule=find_rule("first-only")), rounds=2), "plain")
    assert seen == [((5, 6), [2.0] * 5)] * 2


def test_a_rule_that_gives_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "all", lambda updates, _weights: updates)
    with pytest.raises(ValueError, match="aggregation=all gave"):
        last_params(changed(rule=find_rule("all")), "plain")


def test_a_fast_engine_refuses_what_only_the_plain_one_does() -> None:
    mine = changed(learner=NamedLearner("mine", lambda *arguments: pdgd_gradient(*arguments)))
    with pytest.raises(ValueError, match="engine=numba does not do learner=mine"):
        name_engine(mine, Options(engine="numba"), "cpu")
    assert name_engine(mine, Options(), "cpu") == "plain"
    assert name_engine(changed(), Options(), "cpu") == "numba"


def test_rules_and_attacks_run_on_the_fast_engines() -> None:
    assert name_engine(changed(attack=find_attack("sign-flip"), n_malicious=2), Options(), "cpu") == "numba"


def test_an_attack_on_updates_that_carry_noise_of_their_own_needs_the_plain_engine() -> None:
    noise = SoundGaussian(0.1, 1.0, "clients", 3)
    lying = changed(attack=find_attack("sign-flip"), n_malicious=2, exchange=UpdateExchange(noise))
    assert name_engine(lying, Options(), "cpu") == "plain"
