"""Which engine computes a setting, why, and how long the slow one will take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_settings import tiny_setting

from hushrank.aggregation.server_step import ServerStep
from hushrank.engine import choice, estimate
from hushrank.engine.choice import choose_engine
from hushrank.engine.estimate import count_planned, estimate_plain_seconds
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import Population
from hushrank.learners.named import NamedLearner
from hushrank.types import Array, Ranker


def mine(ranker: Ranker, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array) -> Array:
    return ranker.score_gradient(params, features[ranking], is_clicked.astype(scores.dtype))


def with_own_learner() -> Setting:
    setting = tiny_setting()
    return replace(setting, method=replace(setting.method, learner=NamedLearner("mine", mine)))


def test_a_fall_to_the_plain_engine_names_what_the_fast_ones_cannot_do() -> None:
    found = choose_engine(with_own_learner(), wanted="auto", platform="cpu")
    assert found.name == "plain" and found.is_fallback and found.reason == "the fast engines do not do learner=mine"


def test_an_engine_that_was_asked_for_is_no_fall() -> None:
    for engine in ("plain", "numba", "xla"):
        found = choose_engine(tiny_setting(), wanted=engine, platform="cpu")
        assert (found.name, found.reason, found.is_fallback) == (engine, "asked for", False)


@pytest.mark.parametrize(
    ("setting", "platform", "devices", "reason"),
    [
        (tiny_setting(ranker="mlp"), "gpu", None, "device=gpu"),
        (tiny_setting(), "gpu", None, "device=gpu"),
        (tiny_setting(), "cpu", 2, "devices=2"),
        (tiny_setting(population=Population(1, (4,)), batch=2, server_step=ServerStep("adam")), "cpu", None, "=adam"),
    ],
)
def test_xla_says_why_it_is_not_numba(setting: Setting, platform: str, devices: int | None, reason: str) -> None:
    found = choose_engine(setting, wanted="auto", platform=platform, devices=devices)
    assert found.name == "xla" and reason in found.reason and not found.is_fallback


def test_networks_on_a_processor_need_no_jax() -> None:
    found = choose_engine(tiny_setting(ranker="mlp"), wanted="auto", platform="cpu")
    assert (found.name, found.reason) == ("numba", "the fastest for this ranker on a processor")


@pytest.mark.parametrize(("platform", "devices", "obstacle"), [("gpu", None, "device=gpu"), ("cpu", 2, "devices=2")])
def test_a_fused_loop_that_was_asked_for_in_vain_says_what_it_cannot_do(
    platform: str, devices: int | None, obstacle: str
) -> None:
    with pytest.raises(ValueError, match=f"^engine=numba does not do {obstacle}: leave --engine out, or use"):
        choose_engine(tiny_setting(ranker="mlp"), wanted="numba", platform=platform, devices=devices)


def test_a_machine_without_numba_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "has_engine", lambda name: name != "numba")
    found = choose_engine(tiny_setting(), wanted="auto", platform="cpu")
    assert found.name == "xla" and "numba not installed" in found.reason and not found.is_fallback
    monkeypatch.setattr(choice, "has_engine", lambda name: name == "plain")
    found = choose_engine(tiny_setting(), wanted="auto", platform="cpu")
    assert found.name == "plain" and "numba and jax not installed" in found.reason and found.is_fallback


def test_the_planned_searches_are_those_of_all_trainings() -> None:
    setting = tiny_setting(population=Population(10, (4,), cohort=7), rounds=5, repeats=2, n_folds=2)
    assert count_planned(setting) == 3 * 2 * 2 * 5 * 7 * 4  # users, folds, repeats, rounds, clients, searches


def test_the_estimate_is_all_searches_at_the_rate_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "measure_plain_rate", lambda _: 100.0)
    setting = with_own_learner()
    assert estimate_plain_seconds(setting) == count_planned(setting) / 100
    monkeypatch.setattr(estimate, "measure_plain_rate", lambda _: None)
    assert estimate_plain_seconds(setting) is None


def test_a_rate_is_measured_of_federations_and_of_central_training() -> None:
    central = tiny_setting(population=Population(1, (1_000_000,)), batch=2)  # whose round would take an hour
    for setting in (with_own_learner(), central):
        rate = estimate.measure_plain_rate(setting)
        assert rate is not None and rate > 0
