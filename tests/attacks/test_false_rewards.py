"""False rewards and chosen seeds: attacks on evolution strategies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from liars import KEY

from hushrank.attacks.false_rewards import FalseRewards, RewardForm, RewardTarget, misreport_rewards
from hushrank.attacks.tactics import Tactics
from hushrank.engine.simulate import Options, name_engine, simulate
from hushrank.learners.es import es_aggregate, perturbation
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.types import Array, ForgedReward

SMALL = {"data": "tiny", "folds": [1], "rounds": 3, "n_clients": 10, "clicks": "perfect", "n_malicious": 4}
FORM = RewardForm(0.0, 1.0, lambda seeds: perturbation(seeds, 6, sigma=0.1))
MESSAGES = [ForgedReward(7, (0.75, 0.25)), ForgedReward(8, (0.1, 0.9)), ForgedReward(9, (0.5, 0.5))]
IDS = np.arange(3)


def forge(attack: FalseRewards, params: Array | None = None) -> list[ForgedReward]:
    return attack.forge(MESSAGES, IDS, np.ones(6) if params is None else params, FORM, key=KEY)


def test_swapped_rewards_run_the_estimate_backwards() -> None:
    forged = forge(FalseRewards())
    assert [each.rewards for each in forged] == [(0.25, 0.75), (0.9, 0.1), (0.5, 0.5)]
    honest, lied = (es_aggregate(each, n_params=6, sigma=0.1) for each in (MESSAGES, forged))
    np.testing.assert_allclose(lied, -honest)


def test_extreme_rewards_are_the_smallest_and_the_largest() -> None:
    assert [each.rewards for each in forge(FalseRewards(extreme=True))] == [(0.0, 1.0), (1.0, 0.0), (1.0, 0.0)]


def test_of_one_direction_the_opposite_is_reported() -> None:
    attack = FalseRewards()
    assert attack.misreport((0.8,), FORM) == (0.0,) and attack.misreport((0.3,), FORM) == (1.0,)


def test_chosen_seeds_point_against_the_ranker_the_more_the_more_there_are_to_choose_from() -> None:
    params = np.linspace(-1, 1, 6)
    along = []
    for n_seeds in (1, 10, 1000):
        forged = forge(FalseRewards(n_seeds=n_seeds), params)
        assert {each.rewards for each in forged} == {(1.0, 0.0)} and len({each.seed for each in forged}) == 3
        along.append(max(float(FORM.perturb(np.array([each.seed]))[0] @ params) for each in forged))
    assert along[0] > along[1] > along[2] and along[2] < -0.4  # of 1000 normals of deviation .17 the least: below -.4


def test_honest_messages_stay_the_very_objects_they_were() -> None:
    target = RewardTarget(np.ones(6), 1, KEY, FORM)
    received = misreport_rewards(FalseRewards(), MESSAGES, IDS, np.array([True, False, False]), target)
    assert received[0] is not MESSAGES[0] and received[1] is MESSAGES[1] and received[2] is MESSAGES[2]
    asleep = Tactics(FalseRewards(), first=2)
    assert misreport_rewards(asleep, MESSAGES, IDS, np.ones(3, bool), target) == MESSAGES


def params_of(changes: Mapping[str, object], engine: str) -> Array:
    setting = resolve(change_recipe(NAMED["foltr-es"], {**SMALL, **changes}))
    return simulate(setting, Options(engine=engine))[0][0].params


def test_a_run_under_them_falls_back_to_the_plain_engine() -> None:
    attacked = {"attack": "false-rewards"}
    setting = resolve(change_recipe(NAMED["foltr-es"], {**SMALL, **attacked}))
    assert name_engine(setting, Options(), "cpu") == "plain"
    with pytest.raises(ValueError, match="engine=numba does not do attack=false-rewards"):
        name_engine(setting, Options(engine="numba"), "cpu")
    honest, one_way = (params_of({"n_malicious": 0, "antithetic": both}, "plain") for both in (True, False))
    assert not np.array_equal(params_of(attacked, "plain"), honest)
    assert not np.array_equal(params_of({**attacked, "antithetic": False}, "plain"), one_way)


def test_a_ranker_ends_far_below_the_honest_one_under_each_of_them() -> None:
    def train(**changes: object) -> float:
        learning = {"data": "tiny:n_queries=200", "n_clients": 40, "interactions": 2, "rounds": 15, "server_rate": 0.03}
        attacked = {**SMALL, **learning, "attack": "false-rewards", "n_malicious": 16, "eval_every": 15, **changes}
        results, _ = simulate(resolve(change_recipe(NAMED["foltr-es"], attacked)), Options(engine="plain"))
        return float(results[0].test[-1])

    honest = train(n_malicious=0)  # .84, from .62
    assert all(train(**lie) < honest - 0.1 for lie in ({}, {"extreme": True}, {"n_seeds": 50}))  # .66, .68, .54


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_with_nobody_malicious_the_run_is_bit_equal(engine: str) -> None:
    honest, attacked = (params_of({"n_malicious": 0, **lie}, engine) for lie in ({}, {"attack": "false-rewards"}))
    assert honest.tobytes() == attacked.tobytes()


def test_updates_have_no_rewards() -> None:
    with pytest.raises(ValueError, match="attack=false-rewards replaces rewards, which only recipe foltr-es sends"):
        change_recipe(NAMED["fpdgd"], {**SMALL, "attack": "false-rewards"})
