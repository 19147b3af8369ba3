"""Ways to forget: which training each of them is, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_settings import UNEQUAL, tiny_setting

from hushrank.aggregation.named import find_rule
from hushrank.aggregation.server_step import ServerStep
from hushrank.attacks.named import find_attack
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population, sample_ids
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.runs.forget_methods import (
    METHODS,
    Forgetting,
    RunMemory,
    find_first_rounds,
    plan_forgetting,
    subtract_sums,
)
from hushrank.types import Array

EVERYBODY = Population(6, (5, 2, 1))
ENGINES = ["plain", "numba", "xla"]


def run_of(*, keep_every: int | None = 2, population: Population = EVERYBODY, **changes: Any) -> Setting:
    setting = tiny_setting(population=population, rounds=7, users=("perfect",), n_folds=1)
    return replace(setting, method=replace(setting.method, keep_every=keep_every, **changes))


def train(setting: Setting, engine: str = "numba") -> list[CellResult]:
    return simulate(setting, Options(engine=engine))[0]


def remember(setting: Setting) -> RunMemory:
    (result,) = train(setting)
    lengths = result.kept["lengths"][None, None, None] if setting.method.keep_every else None
    return RunMemory(result.params[None, None, None], lengths)


def plan(setting: Setting, memory: RunMemory | None = None, **how: Any) -> Setting:
    n_kept = 4 if setting.method.keep_every == 2 else setting.rounds
    lengths = np.ones((1, 1, 1, setting.method.population.n_clients, n_kept), np.float32)
    usual = RunMemory(np.zeros((1, 1, 1, setting.method.n_params), np.float32), lengths)
    return plan_forgetting(setting, Forgetting(**{"clients": (0,), **how}), memory or usual)


def test_the_eraser_repeats_some_rounds_with_fewer_searches_and_the_kept_lengths() -> None:
    planned = plan(run_of())
    method = planned.method
    assert (planned.rounds, method.stride, method.first_round, method.keep_every) == (4, 2, 1, None)  # 1, 3, 5, 7
    assert method.population.interactions == (3, 1, 1)  # three fifths of 5, 2, 1, at least one
    assert method.population.absent == (0,) and method.calibrates
    assert planned.kept is not None and planned.kept.shape == (1, 1, 1, 6, 4)
    assert plan(run_of(), local_steps=4).method.population.interactions == (4, 2, 1)


def test_kept_lengths_serve_every_multiple_of_their_interval() -> None:
    """Kept in the rounds 1 to 7; every third: 1, 4, 7."""
    setting = run_of(keep_every=1)
    kept = np.arange(7, dtype=np.float32) * np.ones((1, 1, 1, 6, 1), np.float32)
    planned = plan(setting, RunMemory(np.zeros(0), kept), every=3)
    assert (planned.rounds, planned.method.stride) == (3, 3)
    assert planned.kept is not None and planned.kept[0, 0, 0, 0].tolist() == [0, 3, 6]


@pytest.mark.parametrize("engine", ENGINES)
def test_all_rounds_and_searches_without_calibration_are_retraining(engine: str) -> None:
    run = run_of(keep_every=1, attack=find_attack("opposite-model"), n_malicious=1)
    erased = plan(run, is_calibrated=False, every=1, local_steps=5)
    one, other = (train(setting, engine)[0] for setting in (erased, plan(run, method="retrain")))
    assert one.params.tobytes() == other.params.tobytes() and one.online.tobytes() == other.online.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_retraining_without_the_liar_is_what_honest_clients_had_done_alone(engine: str) -> None:
    """Whether client 0 would have lied leaves no trace."""
    lying = run_of(attack=find_attack("opposite-model"), n_malicious=1)
    one, other = (train(plan(run, method="retrain"), engine)[0].params for run in (lying, run_of()))
    assert one.tobytes() == other.tobytes()


def test_liars_who_stay_go_on_lying() -> None:
    attack = find_attack("sign-flip")
    assert plan(run_of(attack=attack, n_malicious=2)).method.n_malicious == 2
    assert plan(run_of(attack=attack, n_malicious=2), clients=(1, 0)).method.attack is None


def test_erased_updates_have_the_kept_lengths() -> None:
    """One client stays and the server's rate is 1: each step of the ranker is as long as that client's update was."""
    run = replace(run_of(population=Population(2, (2,))), rounds=3)
    memory = remember(run)
    steps = [replace(plan(run, memory), rounds=rounds) for rounds in (1, 2)]
    first, second = (train(setting)[0].params for setting in steps)
    assert memory.lengths is not None
    wanted = memory.lengths[0, 0, 0, 1]
    assert [np.linalg.norm(first), np.linalg.norm(second - first)] == pytest.approx(wanted.tolist(), rel=1e-4)


def test_continuing_begins_with_the_last_ranker_in_the_round_after_the_last() -> None:
    run = run_of()
    memory = remember(run)
    planned = plan(run, memory, method="continue")
    assert (planned.rounds, planned.method.first_round, planned.method.stride) == (4, 8, 1)
    assert planned.method.population.interactions == (5, 2, 1)
    assert train(planned)[0].first is not None
    np.testing.assert_array_equal(np.asarray(train(planned)[0].first), memory.rankers[0, 0, 0])


def test_rolling_back_goes_to_the_first_ranker_where_everybody_takes_part_in_every_round() -> None:
    planned = plan(run_of(), method="rollback")
    assert planned.warm_up is None and planned.starts is None
    assert (planned.rounds, planned.method.first_round) == (4, 8)


def test_rolling_back_goes_to_the_ranker_before_a_leaver_was_first_drawn() -> None:
    run = run_of(population=replace(UNEQUAL, dropout=0.0, cohort=2))
    key = cell_key(run, Cell(0, 0, 0))
    drawn = [set(sample_ids(run.method.population, key, round).tolist()) for round in range(1, 8)]
    late = next(c for c in range(10) if any(c in ids for ids in drawn) and not any(c in ids for ids in drawn[:2]))
    first = 1 + next(i for i, ids in enumerate(drawn) if late in ids)
    assert find_first_rounds(run, (late,)).tolist() == [[[first]]]
    planned = plan(run, method="rollback", clients=(late,))
    before = train(replace(run, rounds=first - 1))[0].params
    np.testing.assert_array_equal(np.asarray(train(planned)[0].first), before)


def test_a_new_start_takes_longer_steps_and_needs_nothing_kept() -> None:
    run = run_of(keep_every=None, server_step=ServerStep(rate=0.5))
    planned = plan(run, RunMemory(np.zeros(0)), method="fresh", every=3)
    assert (planned.rounds, planned.method.stride, planned.method.server_step.rate) == (3, 3, 1.5)
    assert planned.kept is None and not planned.method.calibrates
    assert plan(run, method="fresh", leap=8.0).method.server_step.rate == 4.0
    assert plan(run, method="fresh").method.stride == 10  # [thesis, Section 6.2]


def test_what_everybody_added_is_the_ranker_and_can_be_taken_away() -> None:
    run = run_of()
    planned = plan(run, method="subtract")
    (result,), (before,) = train(planned), train(run)
    sums = result.kept["sums"]
    assert result.params.tobytes() == before.params.tobytes()
    np.testing.assert_allclose(np.asarray(result.first) + sums.sum(axis=0), result.params, atol=1e-5)
    left = subtract_sums(result.params, sums, (0, 3))
    np.testing.assert_allclose(left, np.asarray(result.first) + sums[[1, 2, 4, 5]].sum(axis=0), atol=1e-5)


def test_looks_come_as_often_as_in_the_run_and_a_fading_rate_fades() -> None:
    run = replace(run_of(server_step=ServerStep(fade=7)), eval_every=4)
    planned = plan(run)
    assert planned.eval_every == 2 and planned.method.server_step.fade == 4  # 4 * 4 // 7


def test_what_is_exact_is_said() -> None:
    exact = {name for name, method in METHODS.items() if not method.residues(Forgetting((0,), name))}
    assert exact == {"retrain", "rollback", "fresh"}
    assert not METHODS["eraser"].residues(Forgetting((0,), is_calibrated=False))


def never_drawn(run: Setting) -> int:
    key = cell_key(run, Cell(0, 0, 0))
    drawn: list[Array] = [sample_ids(run.method.population, key, round) for round in range(1, run.rounds + 1)]
    return next(c for c in range(run.method.population.n_clients) if not any(c in ids for ids in drawn))


def test_who_was_never_drawn_cannot_be_forgotten() -> None:
    run = run_of(population=Population(100, (2,), cohort=3))
    with pytest.raises(ValueError, match="was drawn for no round of this run: there is nothing of it to forget"):
        plan(run, clients=(never_drawn(run),))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"clients": (6,)}, "there is no client 6: this run has the clients 0 to 5"),
        ({"clients": (-1,)}, "there is no client -1"),
        ({"clients": ()}, "name at least one"),
        ({"clients": (1, 1)}, "each once"),
        ({"clients": tuple(range(6))}, "nobody is left to train with"),
        ({"method": "erase"}, "no way to forget is called 'erase'; did you mean 'eraser'"),
        ({"method": "retrain", "local_steps": 2}, "method retrain takes no --local-steps"),
        ({"method": "fresh", "is_calibrated": False}, "method fresh takes no --no-calibration"),
        ({"local_steps": 0}, "local_steps is 0, must be from 1 to 5"),
        ({"local_steps": 6}, "local_steps is 6, must be from 1 to 5"),
        ({"every": 3}, "every is 3, must be a multiple of keep_every, which is 2"),
        ({"every": 0}, "every is 0 and leap None: every must be at least 1"),
        ({"method": "continue", "every": 0}, "every must be at least 1"),
        ({"method": "fresh", "leap": -1.0}, "leap finite and above 0"),
        ({"method": "fresh", "leap": float("inf")}, "leap finite and above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(run_of(), **how)


def test_without_lengths_the_eraser_says_what_to_do() -> None:
    for run, memory in ((run_of(keep_every=None), None), (run_of(), RunMemory(np.zeros(0)))):
        with pytest.raises(ValueError, match=r"have kept no lengths of updates\. Run it with keep_every"):
            plan(run, memory)
    assert plan(run_of(keep_every=None), is_calibrated=False).method.stride == 10


def test_what_was_not_added_up_cannot_be_subtracted() -> None:
    for changes in ({"rule": find_rule("median")}, {"server_step": ServerStep("momentum")}):
        with pytest.raises(ValueError, match="what a client added to the ranker is known only with aggregation=mean"):
            plan(run_of(keep_every=None, **changes), method="subtract")


def test_too_few_for_a_rule_are_refused() -> None:
    rule = find_rule("krum", assumed_malicious=1)
    assert rule is not None
    n = rule.n_needed
    with pytest.raises(ValueError, match=f"{n - 1} clients stay in a round, and its rule or its privacy needs {n}"):
        plan(run_of(keep_every=None, population=Population(n, (2,)), rule=rule), method="retrain")


def test_central_training_has_nobody_to_forget() -> None:
    central = tiny_setting(population=Population(2, (4,)), batch=2)
    with pytest.raises(ValueError, match="only clients that send updates can be forgotten"):
        plan(central, method="retrain")


def test_noise_is_neither_that_of_the_run_nor_of_another_way_to_forget() -> None:
    """Why: whoever has two rankers with the same noise has their difference without any."""
    sound = run_of(population=Population(6, (2,)), exchange=UpdateExchange(SoundGaussian(0.05, 2.0)))
    ways: list[dict[str, Any]] = [
        {"method": "eraser"},
        {"method": "retrain"},
        {"method": "retrain", "clients": (1,)},
        {"method": "continue"},
    ]
    numbers = [plan(sound, **how).method.noise_number for how in ways]
    assert sound.method.noise_number is None and None not in numbers and len(set(numbers)) == len(ways)
    assert plan(sound, method="retrain").method.noise_number == numbers[1]  # the same again when it is resumed
    assert plan(run_of()).method.noise_number is None and plan(sound, method="subtract").method.noise_number is None


def sound_of(population: Population, **changes: Any) -> Setting:
    return run_of(population=population, exchange=UpdateExchange(SoundGaussian(0.05, 2.0)), **changes)


@pytest.mark.parametrize("method", ["eraser", "retrain", "fresh"])
def test_clients_that_were_sampled_in_secret_are_not_asked_again_in_the_same_rounds(method: str) -> None:
    sampled = Population(6, (2,), cohort=5, sampling="poisson")
    with pytest.raises(ValueError, match="with sampling=poisson and noise no round can be repeated"):
        plan(sound_of(sampled), method=method)
    assert plan(run_of(population=sampled), method=method).method.noise_number is None  # nothing was promised


def test_rounds_that_are_drawn_anew_may_follow_sampled_ones() -> None:
    sound = sound_of(Population(6, (2,), cohort=5, sampling="poisson"))
    planned = plan(sound, method="continue")
    assert [planned.method.round_of(step) for step in range(1, planned.rounds + 1)] == [8, 9, 10, 11]  # after 7
    with pytest.raises(ValueError, match="rollback would show in which round a leaver was first drawn"):
        plan(sound, method="rollback")


@pytest.mark.parametrize("how", [{}, {"method": "fresh"}, {"is_calibrated": False}])
def test_where_clients_take_turns_no_round_is_left_out(how: dict[str, Any]) -> None:
    """Why: of 6 clients in turns of 2, rounds 1, 4, 7 are the same two's."""
    with pytest.raises(ValueError, match="with sampling=rotation no round can be left out"):
        plan(run_of(population=Population(6, (2,), cohort=2, sampling="rotation")), every=4, **how)


@pytest.mark.parametrize("method", ["continue", "rollback", "retrain"])
def test_no_client_answers_more_often_than_is_charged_where_clients_take_turns(method: str) -> None:
    population = Population(6, (2,), cohort=2, sampling="rotation")
    planned = plan(sound_of(population), method=method)
    key = cell_key(planned, Cell(0, 0, 0))
    asked = [sample_ids(population, key, planned.method.round_of(step)) for step in range(1, planned.rounds + 1)]
    most = max(np.bincount(np.concatenate(asked)))
    assert most <= -(-planned.rounds // population.separation)


def test_noise_is_another_where_training_begins_with_other_rankers_or_lengths() -> None:
    """Why: clients that leave one after another are as many as at once, but the last ranker is not the same."""
    sound = sound_of(Population(6, (2,)))
    lengths = np.ones((1, 1, 1, 6, 4), np.float32)
    zeros = RunMemory(np.zeros((1, 1, 1, sound.method.n_params), np.float32), lengths)
    others = replace(zeros, rankers=zeros.rankers + 1)
    for how, other, is_same in (
        ({"method": "continue"}, others, False),
        ({"method": "retrain"}, others, True),
        ({"method": "eraser"}, others, True),
        ({"method": "eraser"}, replace(zeros, lengths=2 * lengths), False),
    ):
        one, two = (plan(sound, memory, **how).method.noise_number for memory in (zeros, other))
        assert (one == two) == is_same, how
