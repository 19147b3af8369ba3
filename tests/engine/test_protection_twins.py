"""Protected federations: the fast engines give what the plain round gives, and the noise that was promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import N_FEATURES, tiny_setting

from hushrank.engine.noise import mean_noise
from hushrank.engine.setting import Setting, why_not_fast
from hushrank.engine.simulate import Options, name_engine, simulate
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.protection import UpdateProtection
from hushrank.streams import seed_key

UNEQUAL = Population(10, (1, 3, 2), cohort=7, dropout=0.3)


def protected(protection: UpdateProtection, *, population: Population = UNEQUAL) -> Setting:
    setting = tiny_setting(users=("perfect", "informational"), population=population, n_folds=1)
    return replace(setting, method=replace(setting.method, exchange=UpdateExchange(protection)))


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize(
    "protection",
    [SoundGaussian(0.05, 1.5), SoundGaussian(0.02, 0.0), SoundLaplace(0.1, 0.7), OpenUpdates(0.03)],
    ids=["gaussian", "clipped only", "laplace", "bounded"],
)
def test_sound_engines_equal_the_plain_round_with_sampling_and_dropouts(
    protection: UpdateProtection, engine: str
) -> None:
    setting = protected(protection)
    plain, fast = (simulate(setting, Options(engine=name))[0] for name in ("plain", engine))
    for ours, theirs in zip(plain, fast, strict=True):
        assert np.abs(ours.params).max() > 0
        np.testing.assert_allclose(theirs.params, ours.params, atol=1e-6)
        np.testing.assert_allclose(theirs.online, ours.online, atol=1e-6)


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize(("variant", "bound"), [("paper", 0.02), ("published-code", 0.04)])
def test_the_published_clipping_is_the_plain_one(engine: str, variant: str, bound: float) -> None:
    """With next to no noise both engines differ from the plain round by that noise alone."""
    setting = protected(PaperNoise(1e9, 0.04, 10, variant), population=Population(10, (2,)))
    plain, fast = (simulate(setting, Options(engine=name))[0] for name in ("plain", engine))
    free = simulate(
        replace(setting, method=replace(setting.method, exchange=UpdateExchange())), Options(engine="plain")
    )[0]
    for ours, theirs, unclipped in zip(plain, fast, free, strict=True):
        np.testing.assert_allclose(theirs.params, ours.params, atol=1e-7)
        assert bound / 2 < np.linalg.norm(ours.params) <= bound + 1e-6 < np.linalg.norm(unclipped.params)


def test_the_published_noise_of_a_mean_has_the_published_spread() -> None:
    """The mean of n uploads carries Laplace(Delta / epsilon) / n: standard deviation sqrt(2) Delta / (epsilon n)."""
    method = protected(PaperNoise(2.0, 3.0, 10), population=Population(10, (2,))).method
    draws = np.concatenate([mean_noise(method, seed_key(1), r) for r in range(400)])
    assert len(draws) == 400 * N_FEATURES
    expected = np.sqrt(2) * 3.0 / 2.0 / 10
    # a Laplace deviation's own error is sqrt(5 / n) / 2 of it: 2.3 % here; three of them
    assert draws.std() == pytest.approx(expected, rel=0.07) and abs(draws.mean()) < 3 * expected / np.sqrt(len(draws))


def test_sound_updates_weigh_alike_and_the_sum_is_divided_by_the_expected_cohort() -> None:
    """One client that learnt a clipped update of norm c moves the mean by c / cohort, whatever it searched."""
    setting = protected(SoundGaussian(1e-3, 0.0), population=Population(5, (4,), dropout=0.9999))
    one = replace(setting, rounds=1, method=replace(setting.method, population=Population(5, (1, 4), dropout=0.0)))
    moved = simulate(one, Options(engine="numba"))[0][0].params
    assert np.linalg.norm(moved) <= 1e-3 + 1e-9


def test_a_bound_on_updates_bounds_a_round_and_weighs_as_before() -> None:
    """The weighted mean of vectors of at most that length is no longer; without the bound it is."""
    short, long = (
        simulate(replace(protected(OpenUpdates(norm), population=Population(10, (1, 3))), rounds=1))[0][0].params
        for norm in (1e-3, None)
    )
    assert 1e-5 < np.linalg.norm(short) <= 1e-3 + 1e-9 < np.linalg.norm(long)


def test_published_noise_on_unequal_weights_runs_on_the_plain_engine() -> None:
    """Shares times different weights are no single Laplace draw."""
    unequal = protected(PaperNoise(4.5, 5.0, 10), population=Population(10, (1, 2)))
    assert why_not_fast(unequal) == "privacy=paper with unequal interactions"
    assert name_engine(unequal, Options(), "cpu") == "plain"
