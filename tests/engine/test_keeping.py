"""What clients keep of their updates is the same on every engine, changes no ranker, and calibrates new updates."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from remedy_settings import assert_same_bits, change_method, results
from tiny_settings import N_FEATURES, tiny_setting

from hushrank.aggregation.named import find_rule
from hushrank.aggregation.server_step import ServerStep
from hushrank.attacks.named import find_attack
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting, without_clients
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population, sample_ids
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange, format_sum
from hushrank.federation.summation import MaskedSum
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.none import OpenUpdates
from hushrank.remedies.control_variates import ControlVariates
from hushrank.types import Array

ENGINES = ("plain", "numba", "xla")
ALL, SOME = Population(7, (2,)), Population(7, (1, 3, 2), cohort=5, dropout=0.3)
CLIP = 0.02  # below most lengths
SOUND = UpdateExchange(SoundGaussian(CLIP, 2.0))
PAPER = UpdateExchange(PaperNoise(4.0, 0.5, 7))
MEDIAN, FLIP = find_rule("median"), find_attack("sign-flip")
MASKED = MaskedSum(format_sum(OpenUpdates(), SOME, n_params=N_FEATURES))
METHODS: dict[str, dict[str, Any]] = {
    "open": {"population": SOME},
    "clipped": {"population": SOME, "exchange": UpdateExchange(OpenUpdates(CLIP))},
    "sound": {"population": SOME, "exchange": SOUND},
    "paper": {"population": ALL, "exchange": PAPER},
    "secure": {"population": SOME, "summation": MASKED},
    "rule": {"population": SOME, "rule": MEDIAN},
    "attack": {"population": SOME, "attack": FLIP, "n_malicious": 2},
}
CASES = [(name, engine) for name in METHODS for engine in ("numba", "xla")]


def keeping_setting(*, rounds: int = 7, **method: Any) -> Setting:
    setting = tiny_setting(users=("perfect",), population=method.pop("population", SOME), n_folds=1, rounds=rounds)
    return change_method(setting, **method)


def key_of(setting: Setting) -> Array:
    return cell_key(setting, Cell(0, 0, 0))


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_clients_keep_the_same_lengths_on_every_engine(name: str, engine: str) -> None:
    setting = keeping_setting(**METHODS[name], keep_every=3)
    plain, fast = (results(setting, each)[0] for each in ("plain", engine))
    lengths = plain.kept["lengths"]
    assert lengths.shape == (7, 3) and lengths.dtype == fast.kept["lengths"].dtype == np.float32
    for place, round in enumerate((1, 4, 7)):  # who was asked keeps its own, whether its answer arrived or not
        ids = sample_ids(setting.method.population, key_of(setting), round)
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(lengths[:, place])), ids)
    same = 1 if name == "paper" else 3  # rounds; Why: fast engines draw the published noise as one number
    np.testing.assert_allclose(fast.kept["lengths"][:, :same], lengths[:, :same], atol=1e-6)
    assert np.nanmax(lengths) > 0
    if name in ("clipped", "sound"):
        assert np.nanmax(lengths) == pytest.approx(CLIP, rel=1e-4) and np.nanmax(lengths) <= CLIP * (1 + 1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", METHODS)
def test_keeping_changes_no_bit_of_the_training(name: str, engine: str) -> None:
    setting = keeping_setting(**METHODS[name])
    assert_same_bits(results(change_method(setting, keep_every=2), engine), results(setting, engine))


def test_a_length_is_that_of_what_the_client_learnt() -> None:
    """One client, one round: the ranker moves by its update."""
    setting = keeping_setting(population=Population(1, (3,)), keep_every=1, rounds=2)
    one, both = results(replace(setting, rounds=1), "plain")[0], results(setting, "plain")[0]
    assert one.first is not None
    moved = [np.linalg.norm(one.params - one.first), np.linalg.norm(both.params - one.params)]
    np.testing.assert_allclose(both.kept["lengths"], [moved], rtol=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_who_leaves_moves_nobody_elses_first_update(engine: str) -> None:
    for population in (ALL, SOME, Population(7, (2,), cohort=3, sampling="poisson")):
        setting = keeping_setting(population=population, keep_every=1, rounds=1)
        left = replace(setting, method=without_clients(setting.method, (0, 5)))
        whole, others = (results(each, engine)[0].kept["lengths"] for each in (setting, left))
        assert np.isnan(others[[0, 5]]).all()
        np.testing.assert_array_equal(np.delete(others, (0, 5), axis=0), np.delete(whole, (0, 5), axis=0))


@pytest.mark.parametrize("engine", ["numba", "xla"])
def test_a_stopped_training_keeps_the_same(tmp_path: Path, engine: str) -> None:
    setting = keeping_setting(keep_every=2)
    whole = results(setting, engine)[0]
    stop_after(setting, 3, engine, tmp_path)
    resumed = results(setting, engine, checkpoints=tmp_path)[0]
    assert resumed.kept["lengths"].tobytes() == whole.kept["lengths"].tobytes()
    assert resumed.params.tobytes() == whole.params.tobytes()


def stop_after(setting: Setting, n: int, engine: str, place: Path) -> None:
    """A training that is interrupted once its n-th look is on disk."""
    looks = threading.Semaphore(n)

    def report(_: object) -> None:
        if not looks.acquire(blocking=False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(setting, Options(engine=engine, checkpoints=place, checkpoint_seconds=0, report=report))


def calibrated(setting: Setting, kept: Array, *, stride: int) -> Setting:
    steps = replace(setting, rounds=kept.shape[-1], kept=kept[None, None, None])
    return change_method(steps, keep_every=None, calibrates=True, stride=stride)


@pytest.mark.parametrize(("name", "engine"), [case for case in CASES if case[0] != "paper"])
def test_calibrated_trainings_are_the_same_on_every_engine(name: str, engine: str) -> None:
    setting = keeping_setting(**METHODS[name], keep_every=3)
    kept = 1.7 * results(setting, "plain")[0].kept["lengths"]
    again = calibrated(setting, kept, stride=3)
    again = replace(again, method=without_clients(again.method, (1, 4)))
    plain, fast = (results(again, each)[0] for each in ("plain", engine))
    assert np.abs(plain.params).max() > 0
    np.testing.assert_allclose(fast.params, plain.params, atol=2e-6)
    np.testing.assert_array_equal(fast.searches, plain.searches)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_calibrated_update_has_the_kept_length_and_never_more_than_the_clip(engine: str) -> None:
    alone = Population(1, (3,))
    for clip, expected in ((None, 0.5), (0.3, 0.3)):
        setting = keeping_setting(population=alone, exchange=UpdateExchange(OpenUpdates(clip)), rounds=1)
        found = results(calibrated(setting, np.array([[0.5]], np.float32), stride=1), engine)[0]
        assert found.first is not None
        assert np.linalg.norm(found.params - found.first) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_calibrated_weights_stay_within_the_published_norm(engine: str) -> None:
    exchange = UpdateExchange(PaperNoise(1e9, 1.0, 1))  # next to no noise; weights within 1/2
    setting = keeping_setting(population=Population(1, (3,)), exchange=exchange, rounds=1)
    found = results(calibrated(setting, np.array([[9.0]], np.float32), stride=1), engine)[0]
    assert np.linalg.norm(found.params) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_calibration_and_with_every_round_it_is_a_training_without_the_leaver(engine: str) -> None:
    """Stride 1 and all searches: bit for bit a fresh training of a federation in which the seat was always empty."""
    setting = keeping_setting(keep_every=1, exchange=SOUND)
    fresh = change_method(setting, keep_every=None, population=replace(SOME, absent=(2,)))
    start = tuple(map(float, results(setting, engine)[0].first))  # type: ignore[arg-type]
    unlearnt = replace(setting, start=start, method=without_clients(setting.method, (2,)))
    unlearnt = change_method(unlearnt, keep_every=None, stride=1, calibrates=False)
    assert_same_bits(results(unlearnt, engine), results(fresh, engine))


def sums_setting(**method: Any) -> Setting:
    return keeping_setting(**method, server_step=ServerStep("sgd", 1.5, fade=20), rounds=5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["open", "clipped", "attack"])
def test_what_clients_added_sums_up_to_the_ranker_and_changes_no_bit(name: str, engine: str) -> None:
    setting = sums_setting(**METHODS[name])
    found = results(change_method(setting, keeps_sums=True), engine)
    assert_same_bits(found, results(setting, engine))
    assert found[0].first is not None
    np.testing.assert_allclose(found[0].first + found[0].kept["sums"].sum(axis=0), found[0].params, atol=1e-6)
    plain = results(change_method(setting, keeps_sums=True), "plain")[0]
    np.testing.assert_allclose(found[0].kept["sums"], plain.kept["sums"], atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_under_sound_privacy_the_sums_are_what_stands_behind_the_noise(engine: str) -> None:
    setting = sums_setting(population=SOME, exchange=SOUND)
    silent = change_method(setting, exchange=UpdateExchange(SoundGaussian(CLIP, 0.0)), keeps_sums=True)
    found = results(silent, engine)[0]
    assert found.first is not None
    np.testing.assert_allclose(found.first + found.kept["sums"].sum(axis=0), found.params, atol=1e-6)
    noisy = results(change_method(setting, keeps_sums=True), engine)
    assert_same_bits(noisy, results(setting, engine))


CENTRAL = {"population": Population(1, (4,)), "batch": 1}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({**CENTRAL, "keep_every": 2}, "not central training or foltr-es"),
        ({"exchange": Evolution(), "keep_every": 2}, "not central training or foltr-es"),
        ({"remedy": ControlVariates(), "keep_every": 2}, "this remedy sends and keeps more"),
        ({"keep_every": 0}, "keep_every must be at least 1"),
        ({"keep_every": 2, "stride": 2}, "all rounds from the first on"),
        ({"keeps_sums": True, "rule": MEDIAN}, "only with aggregation=mean"),
        ({"keeps_sums": True, "summation": MASKED}, "only with aggregation=mean"),
        ({"keeps_sums": True, "server_step": ServerStep("adam")}, "only with aggregation=mean"),
        ({"keeps_sums": True, "exchange": PAPER, "population": ALL}, "clients add noise"),
        ({"calibrates": True}, "give those of"),
    ],
)
def test_what_cannot_be_kept_is_refused(method: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        keeping_setting(**method)


def test_kept_lengths_of_another_run_are_refused() -> None:
    setting = keeping_setting(rounds=3)
    for kept in (np.zeros((7, 2)), np.zeros((6, 3))):
        with pytest.raises(ValueError, match=r"\(1, 1, 1, 7\).*at least 3 steps"):
            change_method(replace(setting, kept=kept[None, None, None]), calibrates=True)


def test_results_of_remedies_carry_what_clients_keep() -> None:
    found: CellResult = results(keeping_setting(remedy=ControlVariates()), "plain")[0]
    assert found.kept and all(len(array) == 7 for array in found.kept.values())


def test_lengths_are_kept_on_one_device() -> None:
    with pytest.raises(ValueError, match="devices is 2, but rules, attacks, keep_every"):
        simulate(keeping_setting(keep_every=2), Options(engine="xla", devices=2))
