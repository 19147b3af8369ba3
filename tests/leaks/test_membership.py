"""A membership test finds rankers that remember a leaver, and nothing where there is nothing to find."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.data.clicklog import ClickLog
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import Population
from hushrank.federation.replay import Replay
from hushrank.federation.round import run_round
from hushrank.leaks.membership import (
    Preferences,
    describe_membership,
    find_preferences,
    mean_preference,
    measure_membership,
    record_training,
    score_membership,
)
from hushrank.types import Array, QuerySet

CELL = Cell(0, 0, 0)
LEAVERS = range(12)
ROUNDS = 5


def make_setting(seed: int, population: Population, rounds: int = ROUNDS) -> Setting:
    return replace(tiny_setting(users=("informational",), population=population, rounds=rounds), seed=seed)


@cache
def leavers_log() -> ClickLog:
    return record_training(make_setting(1, Population(len(LEAVERS), (4,))), CELL)[1]


def queries() -> QuerySet:
    return make_setting(1, Population(1)).dataset.folds[0].train


def score(setting: Setting, params: Array) -> Array:
    return setting.method.ranker.score(params, queries().features)


@cache
def train_others(seed: int) -> Array:
    """Scores of a ranker of other people: nobody of the log."""
    setting = make_setting(100 + seed, Population(3, (4,)))
    return score(setting, record_training(setting, CELL)[0])


@cache
def train_alone(leaver: int) -> Array:
    """Scores of a ranker that learnt from nothing but the leaver's clicks, each of them ten times."""
    setting = make_setting(1, Population(1, (4,)), 10 * ROUNDS)
    own = np.flatnonzero(leavers_log().clients == leaver)
    federation = replace(make_federation(setting, CELL), study=Replay(leavers_log(), (own,)))
    params = initial_params(setting, CELL)
    state = federation.start(params)
    for round in range(1, setting.rounds + 1):
        state, params, _ = run_round(federation, state, params, key=cell_key(setting, CELL), round=round)
    return score(setting, params)


def rate(leaver: int, tested: Array) -> float:
    return score_membership(find_preferences(leavers_log(), queries(), leaver), tested, train_others(0))


def test_preferences_and_their_mean_by_hand() -> None:
    """Two queries of 2 and 3 documents. Client 0 saw rows 4, 2, 3 and clicked the second: 2 before 4, 2 before 3.

    Scores 0 and ln 3 apart: 1 / (1 + 1 / 3) = 3 / 4; equal scores: 1 / 2. Client 1 clicked nothing.
    """
    few = QuerySet(np.zeros((5, 1), np.float32), np.zeros(5, np.uint8), np.array([0, 2, 5]), ("a", "b"))
    shown, is_clicked = np.array([2, 0, 1, 1, 0]), np.array([False, True, False, False, False])
    places = (np.array([0, 3, 5]), shown, is_clicked, np.full(5, 0.5))
    log = ClickLog(np.array([0, 1]), np.array([1, 0]), *places, ("x", "y"))
    found = find_preferences(log, few, 0)
    assert (found.clicked.tolist(), found.passed_over.tolist()) == ([2, 2], [4, 3])
    scores = np.array([0, 0, np.log(3), np.log(3), 0])
    assert mean_preference(found, scores) == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert score_membership(found, scores, np.zeros(5)) == pytest.approx(1 / 8)
    with pytest.raises(ValueError, match="client 1 never preferred"):
        find_preferences(log, few, 1)


def test_rankers_that_learnt_from_the_leaver_alone_are_found() -> None:
    positives = {leaver: [rate(leaver, train_alone(leaver))] for leaver in LEAVERS}
    negatives = {leaver: [rate(leaver, train_others(seed)) for seed in (1, 2, 3)] for leaver in LEAVERS}
    found = measure_membership(positives, negatives)
    assert found.area > 0.95 and found.found > 0.8
    assert (found.n_groups, found.n_positives, found.n_negatives) == (12, 12, 36)


def test_a_ranker_of_one_leaver_prefers_its_clicks_more_than_another_leavers_ranker_does() -> None:
    """It is these clicks that count, not how far a ranker has learnt."""
    own = {leaver: [rate(leaver, train_alone(leaver))] for leaver in LEAVERS}
    others = {leaver: [rate(leaver, train_alone((leaver + k) % len(LEAVERS))) for k in (1, 2, 3)] for leaver in LEAVERS}
    found = measure_membership(own, others)
    assert found.interval is not None and found.interval[0] > 0.6


def test_exchangeable_rankers_are_not_told_apart() -> None:
    positives = {leaver: [rate(leaver, train_others(1 + 2 * leaver))] for leaver in LEAVERS}
    negatives = {leaver: [rate(leaver, train_others(2 + 2 * leaver))] for leaver in LEAVERS}
    found = measure_membership(positives, negatives)
    assert found.interval is not None and found.interval[0] < 0.5 < found.interval[1]


def test_the_result_is_numbers_only() -> None:
    said = describe_membership(measure_membership({0: [0.2], 1: [0.3]}, {0: [0.1], 1: [0.4]}))
    assert said["membership/auc"] == 0.5 and said["membership/leavers"] == 2
    assert said["membership/auc_low"] == 0 and said["membership/auc_high"] == 1
    assert all(isinstance(value, int | float) for value in said.values())
    certain = describe_membership(measure_membership({0: [0.2], 1: [0.3]}, {0: [0.1], 1: [0.1]}))
    assert certain["membership/auc"] == 1 and certain["membership/auc_low"] is None


def test_input_that_does_not_fit_is_refused() -> None:
    log, whole = leavers_log(), queries()
    few = QuerySet(whole.features[:3], whole.grades[:3], np.array([0, 3]), ("a",))
    short = replace(whole, starts=np.arange(whole.n_queries + 1))
    with pytest.raises(ValueError, match="client 12 is not in the log, must be from 0 to 11"):
        find_preferences(log, whole, 12)
    with pytest.raises(ValueError, match="a query beyond the query set"):
        find_preferences(log, few, 0)
    with pytest.raises(ValueError, match="a document beyond its query"):
        find_preferences(log, short, 0)
    pairs = Preferences(np.array([3]), np.array([1]))
    with pytest.raises(ValueError, match=r"scores have shape \(3,\), the clicks reach document 3"):
        mean_preference(pairs, np.zeros(3))
    with pytest.raises(ValueError, match="not finite"):
        mean_preference(pairs, np.array([0, np.nan, 0, 0]))
    with pytest.raises(ValueError, match=r"shapes \(4,\) and \(5,\)"):
        score_membership(pairs, np.zeros(4), np.zeros(5))
    with pytest.raises(ValueError, match=r"leavers \[1, 2\] have only positives or only negatives"):
        measure_membership({0: [1.0], 1: [1.0]}, {0: [1.0], 2: [0.0]})
