"""Cohorts drawn by a coin for each client: every engine draws the same clients, also none at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import N_FEATURES, tiny_setting

from hushrank.aggregation.server_step import ServerStep
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population, sample_ids
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.protection import UpdateProtection
from hushrank.streams import Purpose, stream

FEW = Population(10, (1, 3, 2), cohort=2, dropout=0.2, sampling="poisson")
ROUNDS = 12
OPEN, NOISY = OpenUpdates(), SoundGaussian(0.05, 2.0)


def drawn_setting(*, protection: UpdateProtection = OPEN, rounds: int = ROUNDS) -> Setting:
    setting = tiny_setting(users=("perfect",), population=FEW, n_folds=1, rounds=rounds)
    return replace(setting, method=replace(setting.method, exchange=UpdateExchange(protection)))


KEY = cell_key(drawn_setting(), Cell(0, 0, 0))
SIZES = [len(sample_ids(FEW, KEY, round)) for round in range(1, ROUNDS + 1)]
EMPTY = 1 + SIZES.index(0)  # the first round in which nobody is drawn, with chance .8^10 = .11 in each


def assert_equal_engines(setting: Setting, engine: str) -> None:
    plain, fast = (simulate(setting, Options(engine=name))[0][0] for name in ("plain", engine))
    assert np.abs(plain.params).max() > 0
    np.testing.assert_allclose(fast.params, plain.params, atol=1e-6)
    np.testing.assert_allclose(fast.online, plain.online, atol=1e-6)
    np.testing.assert_array_equal(fast.searches, plain.searches)


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize("protection", [OPEN, NOISY], ids=["open", "sound"])
def test_engines_equal_the_plain_round_in_full_and_in_empty_rounds(protection: UpdateProtection, engine: str) -> None:
    assert EMPTY > 1 and max(SIZES) > 2
    assert_equal_engines(drawn_setting(protection=protection), engine)


def test_evolution_strategies_draw_the_same_clients() -> None:
    setting = drawn_setting()
    evolution, step = Evolution(p=0.7, antithetic=False), ServerStep("adam", 0.001)
    assert_equal_engines(
        replace(setting, method=replace(setting.method, exchange=evolution, server_step=step)), "numba"
    )


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_where_nobody_is_drawn_an_open_round_is_lost_and_a_sound_one_is_all_noise(engine: str) -> None:
    """A step taken only when somebody was there would tell that somebody was."""

    def last(n: int, protection: UpdateProtection) -> CellResult:
        return simulate(drawn_setting(protection=protection, rounds=n), Options(engine=engine))[0][0]

    before, after = last(EMPTY - 1, OPEN), last(EMPTY, OPEN)
    np.testing.assert_array_equal(before.params, after.params)
    assert after.online[-1] == 0 == after.searches[-1]
    before, after = last(EMPTY - 1, NOISY), last(EMPTY, NOISY)
    noise = NOISY.server_noise(N_FEATURES, key=stream(KEY, Purpose.SERVER_NOISE, EMPTY))
    np.testing.assert_allclose(after.params - before.params, noise / 2, atol=1e-6)  # a cohort of 2 on average
    assert np.abs(noise).min() > 1e-3


def test_a_sound_sum_is_divided_by_the_cohort_on_average() -> None:
    """Updates clipped to 1e-9, no noise: the step is at most drawn / expected of that."""
    everybody_answers = replace(FEW, dropout=0.0)
    round = 1 + SIZES.index(max(SIZES))
    setting = drawn_setting(protection=SoundGaussian(1e-9, 0.0), rounds=round)
    setting = replace(setting, method=replace(setting.method, population=everybody_answers))
    before, after = (
        simulate(replace(setting, rounds=n), Options(engine="plain"))[0][0].params for n in (round - 1, round)
    )
    assert 0 < np.linalg.norm(after - before) <= max(SIZES) / 2 * 1e-9 * (1 + 1e-6)
