"""Every remedy gives the same on every engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from remedy_settings import change_method, follow, opposed, results, with_remedy
from tiny_settings import UNEQUAL

from hushrank.engine import plan
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import UpdateExchange, format_sum
from hushrank.federation.summation import MaskedSum
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.none import OpenUpdates
from hushrank.remedies.control_variates import ControlVariates
from hushrank.remedies.interpolation import Interpolation
from hushrank.remedies.personal_layers import FedPer
from hushrank.remedies.prox import FedProx
from hushrank.remedies.remedy import Remedy
from hushrank.remedies.tastes import Tastes


@dataclass(frozen=True)
class HeldInterpolation(Interpolation):
    """Somebody's own: interpolation whose local steps are held near where the client began."""

    has_memory: ClassVar[bool] = True

    @property
    def pull(self) -> float:
        return 0.5


REMEDIES = [
    FedProx(mu=0.5),
    FedPer(personal=("weights",)),
    ControlVariates(),
    Interpolation(),
    Tastes(n_tastes=0),
    Tastes(n_tastes=3),
    HeldInterpolation(),
]
COMPILED = (REMEDIES[2], REMEDIES[5])  # what `make test` compiles of them: a program takes seconds
ON_ENGINES = [(remedy, "numba") for remedy in REMEDIES] + [(remedy, "xla") for remedy in COMPILED]
ON_ENGINES_SLOWLY = [
    pytest.param(remedy, "xla", marks=pytest.mark.slow) for remedy in REMEDIES if remedy not in COMPILED
]
LAYERS = FedPer(personal=("output/weights",))


def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tastes that are believed after two rounds, so that few rounds show what they do."""
    monkeypatch.setattr("hushrank.remedies.tastes._SURE", 0.01)
    monkeypatch.setattr("hushrank.remedies.tastes._SETTLE", 2)


def assert_twins(setting: Setting, engine: str) -> None:
    for a, b in zip(results(setting, engine), results(setting, "plain"), strict=True):
        np.testing.assert_allclose(a.params, b.params, atol=5e-6, rtol=1e-4)
        np.testing.assert_allclose(a.online, b.online, atol=1e-6)
        assert a.looks.keys() == b.looks.keys()
        np.testing.assert_allclose(a.looks["personal/nDCG@10"], b.looks["personal/nDCG@10"], atol=1e-6)


@pytest.mark.parametrize(("remedy", "engine"), [*ON_ENGINES, *ON_ENGINES_SLOWLY], ids=repr)
def test_a_remedy_is_the_plain_rounds_with_cohorts_dropouts_and_unequal_searches(
    remedy: Remedy, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager(monkeypatch)
    assert_twins(opposed(with_remedy(remedy, rounds=6)), engine)


@pytest.mark.parametrize(
    "remedy",
    [LAYERS, REMEDIES[5], *(pytest.param(remedy, marks=pytest.mark.slow) for remedy in REMEDIES[2:5])],
    ids=repr,
)
def test_a_remedy_of_networks_is_the_plain_rounds(remedy: Remedy, monkeypatch: pytest.MonkeyPatch) -> None:
    eager(monkeypatch)
    assert_twins(opposed(with_remedy(remedy, ranker="mlp", rounds=5, n_folds=1)), "xla")


@pytest.mark.parametrize("remedy", [LAYERS, *REMEDIES[2:6]], ids=repr)
def test_a_remedy_of_networks_in_the_fused_loop_is_the_plain_rounds(
    remedy: Remedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager(monkeypatch)
    assert_twins(opposed(with_remedy(remedy, ranker="mlp", rounds=5, n_folds=1)), "numba")


@pytest.mark.parametrize(("remedy", "engine"), [*ON_ENGINES, *ON_ENGINES_SLOWLY], ids=repr)
def test_what_is_sent_is_clipped_as_a_whole_and_noisy_as_a_whole(remedy: Remedy, engine: str) -> None:
    setting = change_method(opposed(with_remedy(remedy, n_folds=1)), exchange=UpdateExchange(SoundGaussian(0.05, 0.3)))
    assert_twins(setting, engine)


@pytest.mark.parametrize(("remedy", "engine"), [*ON_ENGINES, *ON_ENGINES_SLOWLY], ids=repr)
def test_a_secure_sum_adds_whole_messages(remedy: Remedy, engine: str) -> None:
    setting = opposed(with_remedy(remedy, n_folds=1, population=Population(6, (2,)), rounds=3))
    format = format_sum(OpenUpdates(), setting.method.population, n_params=setting.method.n_sent, largest=4.0)
    assert_twins(change_method(setting, summation=MaskedSum(format)), engine)


def test_blocks_with_padding_and_batches_of_cells_are_the_plain_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    eager(monkeypatch)
    monkeypatch.setattr(plan, "_BLOCK_ROWS", 8)  # two cells: blocks of at most four of the seven clients
    setting = opposed(with_remedy(ControlVariates(), rounds=5))
    shape = plan.make_plans(setting, platform="cpu")[0].shape
    assert shape.n_cells == 2 and shape.n_blocks * shape.block > shape.n_rows
    assert_twins(setting, "xla")


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
def test_a_round_without_a_quorum_leaves_the_server_as_it_is(engine: str) -> None:
    silent = Population(4, (2,), dropout=0.999999)
    remedy = ControlVariates()
    for result in results(with_remedy(remedy, population=silent, n_folds=1), engine):
        assert not result.params.any()
    _, states, _ = follow(with_remedy(remedy, population=silent, n_folds=1), 3)
    assert not states[-1]["remedy/variate"].any() and states[-1]["personal/variate"].any()


def test_several_devices_are_refused_because_clients_keep_something() -> None:
    with pytest.raises(ValueError, match="remedies that keep something on clients need all clients of a round on one"):
        results(with_remedy(Interpolation(), population=UNEQUAL), "xla", devices=2)
