"""Rounds to relearn a leaver: counted by hand, followed to the bit, and fewer where a ranker remembers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.aggregation.server_step import ServerStep
from hushrank.engine.plan import Cell
from hushrank.engine.simulate import simulate
from hushrank.federation.cohort import Population
from hushrank.leaks.membership import find_preferences, record_training, score_membership
from hushrank.leaks.relearning import (
    Relearning,
    count_rounds,
    describe_relearning,
    first_rankers,
    follow_training,
    measure_relearning,
    record_client,
)

SETTING = tiny_setting(users=("informational",), population=Population(4, (5,)), rounds=6)


def test_rounds_are_counted_until_the_score_is_no_longer_below_zero() -> None:
    assert count_rounds([-0.2, -0.1, 0.0, -0.1]) == 2
    assert count_rounds([0.1, -0.1]) == 0
    assert count_rounds([-0.3, -0.2, -0.1]) == 2  # never: all rounds


def test_leavers_are_compared_with_themselves_in_other_rankers() -> None:
    """Rounds 0, 1, 2 beside 2, 3, 3 of at most 3: differences -2, -2, -1, whose standard error is 1/3."""
    ours = measure_relearning([[0.0, 0, 0, 0], [-1, 0, 0, 0], [-1, -1, 0, 0]])
    theirs = measure_relearning([[-1.0, -1, 0, 0], [-1, -1, -1, 0], [-1, -1, -1, -1]])
    assert ours == Relearning((0, 1, 2), 0) and theirs == Relearning((2, 3, 3), 1)
    half = 4.302653 / 3  # t of two degrees of freedom, 97.5 %
    assert describe_relearning(ours, {"twin": theirs}) == {
        "relearning/rounds": 1.0,
        "relearning/rounds_std": 1.0,
        "relearning/leavers": 3,
        "relearning/known": 1,
        "relearning/open": 0,
        "relearning/minus_twin": pytest.approx(-5 / 3),
        "relearning/minus_twin_p": pytest.approx(0.0377, abs=1e-4),  # of t = -5
        "relearning/minus_twin_low": pytest.approx(-5 / 3 - half),
        "relearning/minus_twin_high": pytest.approx(-5 / 3 + half),
    }


def test_rounds_that_are_followed_one_by_one_are_those_of_the_training() -> None:
    rankers = follow_training(SETTING, first_rankers(SETTING), range(1, SETTING.rounds + 1))
    whole, _ = simulate(SETTING)
    assert rankers.shape[:4] == (7, 1, 2, 1)
    for fold, result in enumerate(whole):
        assert rankers[-1, 0, fold, 0].tobytes() == result.params.tobytes()
    plain, log = record_training(SETTING, Cell(0, 1, 0))
    np.testing.assert_allclose(rankers[-1, 0, 1, 0], plain, rtol=1e-4)
    own, mine = record_client(SETTING, Cell(0, 1, 0), rankers[:, 0, 1, 0], 2), np.flatnonzero(log.clients == 2)
    assert set(own.clients.tolist()) == {2} and own.n_impressions == len(mine) == 5 * SETTING.rounds
    assert own.queries.tolist() == log.queries[mine].tolist()
    clicks = np.concatenate([log.is_clicked[log.places(each)] for each in mine.tolist()])
    assert own.is_clicked.tolist() == clicks.tolist()


def test_the_ranker_that_was_not_forgotten_needs_no_round() -> None:
    rankers, queries = follow_training(SETTING, first_rankers(SETTING), range(1, 7)), SETTING.dataset.folds[0].train
    scores = [SETTING.method.ranker.score(each, queries.features) for each in rankers[:, 0, 0, 0]]
    leaver = find_preferences(record_client(SETTING, Cell(0, 0, 0), rankers[:, 0, 0, 0], 2), queries, 2)
    assert count_rounds([score_membership(leaver, scores[-1], scores[-1])]) == 0
    assert count_rounds([score_membership(leaver, each, scores[-1]) for each in scores]) > 0


@pytest.mark.parametrize("step", [ServerStep("momentum"), ServerStep(fade=6)])
def test_a_server_that_remembers_is_refused(step: ServerStep) -> None:
    setting = replace(SETTING, method=replace(SETTING.method, server_step=step))
    with pytest.raises(ValueError, match="remembers something from round to round"):
        follow_training(setting, first_rankers(setting), [1])
