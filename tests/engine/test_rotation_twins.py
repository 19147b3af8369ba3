"""Clients that take turns: every engine asks the same, each rests, and correlated noise is the same everywhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, simulate
from hushrank.federation.cohort import Population, sample_ids
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.correlated import CorrelatedGaussian
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.protection import UpdateProtection
from hushrank.streams import seed_key

TURNS = Population(11, (1, 3, 2), cohort=3, dropout=0.2, sampling="rotation")
PROTECTIONS = [OpenUpdates(), CorrelatedGaussian(0.05, 2.0, separation=3)]


def turning_setting(protection: UpdateProtection) -> Setting:
    setting = tiny_setting(users=("perfect",), population=TURNS, n_folds=1, rounds=12)
    return replace(setting, method=replace(setting.method, exchange=UpdateExchange(protection)))


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=["open", "correlated"])
def test_engines_equal_the_plain_round(protection: UpdateProtection, engine: str) -> None:
    setting = turning_setting(protection)
    plain, fast = (simulate(setting, Options(engine=name))[0][0] for name in ("plain", engine))
    assert np.abs(plain.params).max() > 0
    np.testing.assert_allclose(fast.params, plain.params, atol=1e-6)
    np.testing.assert_array_equal(fast.searches, plain.searches)


@pytest.mark.parametrize(("n", "cohort"), [(11, 3), (12, 3), (10, 9), (100, 7), (5, 5)])
def test_everybody_has_a_turn_and_rests(n: int, cohort: int) -> None:
    population = Population(n, cohort=cohort, sampling="rotation")
    asked = [sample_ids(population, seed_key(1), round) for round in range(1, 4 * n)]
    assert all(len(set(ids.tolist())) == cohort for ids in asked)
    for client in range(n):
        turns = [round for round, ids in enumerate(asked) if client in ids]
        assert len(turns) >= 2 and min(b - a for a, b in pairwise(turns)) >= population.separation == n // cohort


def test_turns_need_a_cohort_that_can_be_counted() -> None:
    with pytest.raises(ValueError, match="needs cohort"):
        Population(10, sampling="rotation")
    with pytest.raises(ValueError, match=r"below 2\^31"):
        Population(10**6, cohort=10**4, sampling="rotation")
