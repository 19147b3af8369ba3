"""Federated training of personalised search: who is asked, what is added up, what stays, and that nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_users import DIM, N_WORDS, TinyUsers, tiny_personal, tiny_task

from hushrank.aggregation.named import find_rule
from hushrank.attacks.named import find_attack
from hushrank.engine.personal_schedule import (
    MOST_ATTEMPTS,
    RoundSchedule,
    find_answers,
    find_stragglers,
    measured_spans,
    plan_online,
)
from hushrank.engine.personal_store import ROWS, PersonalStore
from hushrank.engine.train import Watch, train_task
from hushrank.federation.exchange import UpdateExchange
from hushrank.personal.models.parameters import WordSharing
from hushrank.personal.training import LocalTraining
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.streams import seed_key
from hushrank.types import NamedArrays


def advance_all(task, state: NamedArrays | None = None, first: int = 1) -> NamedArrays:  # type: ignore[no-untyped-def]
    state = task.start() if state is None else state
    for number in range(first, task.rounds + 1):
        state, _ = task.advance(state, number, 1)
    return state


def assert_equal_states(one: NamedArrays, other: NamedArrays) -> None:
    assert set(one) == set(other)
    for name in one:
        assert np.array_equal(one[name], other[name]), name


def test_everybody_comes_once_in_a_round_and_rounds_differ() -> None:
    schedule = RoundSchedule(11, 4, 3, 1, TinyUsers().periods, "once", seed_key(1))
    assert schedule.steps_per_round == 3 and schedule.steps_each == 9  # 4 + 4 + 3
    rounds = [[schedule.step_at(3 * r + i).ids.tolist() for i in (1, 2, 3)] for r in range(3)]
    assert all(sorted(client for ids in steps for client in ids) == list(range(11)) for steps in rounds)
    assert [len(ids) for ids in rounds[0]] == [4, 4, 3] and rounds[0] != rounds[1]


def test_one_client_alone_joins_the_step_before() -> None:
    schedule = RoundSchedule(9, 4, 1, 1, TinyUsers().periods, "once", seed_key(1))
    assert [len(schedule.step_at(n).ids) for n in (1, 2)] == [4, 5]


def test_a_step_without_half_of_its_clients_is_repeated() -> None:
    ids, late = np.arange(10), np.zeros(10, bool)
    repeated = [find_answers(ids, late, 0.7, seed_key(2), step=step) for step in range(1, 40)]
    assert {attempts for _, attempts in repeated} >= {1, 2, 3}
    assert all(answers.sum() >= 5 for answers, attempts in repeated if attempts < MOST_ATTEMPTS)
    nobody, attempts = find_answers(ids, ~late, 0.0, seed_key(2), step=1)
    assert not nobody.any() and attempts == 1
    two, _ = find_answers(np.arange(2), late, 0.3, seed_key(2), step=1)
    assert two.sum() == 2  # half of two would be one client alone


def test_stragglers_are_always_the_same_share() -> None:
    late = find_stragglers(50, 0.1, seed_key(3))
    assert late.sum() == 5 and np.array_equal(late, find_stragglers(50, 0.1, seed_key(3)))


def test_the_mean_weighs_those_who_answered_by_their_pairs() -> None:
    setting = tiny_personal(stragglers=0.4, cohort=5, rounds=1)
    task = tiny_task(setting)
    state = task.start()
    after, _ = task.advance(state, 1, 1)
    came = np.flatnonzero(~task.is_late)
    assert len(came) == 3
    step = task.schedule.step_at(1)._replace(ids=came, spans=task.schedule.step_at(1).spans[:3])
    messages = list(task.visit_clients(state["params"], PersonalStore(state), step))
    weights = np.array([message.weight for message in messages])
    assert weights.tolist() == [3.0 * 9] * 3  # nine searches of training, one of four clicked: three pairs each
    mean = sum(m.weight * m.delta.astype(np.float64) for m in messages) / weights.sum()
    assert np.allclose(after["params"] - state["params"], mean, atol=1e-7)
    assert (after["personal/starts"][task.is_late] == -1).all()  # who misses the deadline is not visited


def test_federated_twins_are_one_central_user() -> None:
    """Twins have the same gradient, and so has their union: one Adam step of all is the mean of one step of each."""
    twins = TinyUsers(n_users=2, twins=True)
    changes = {"cohort": 2, "rounds": 1, "training": LocalTraining(batch=24, chunk=24, rate=0.01)}
    flat = tiny_task(tiny_personal(twins, **changes))
    central = tiny_task(tiny_personal(twins, topology="central", **changes))
    one, _ = flat.advance(flat.start(), 1, 1)
    other, _ = central.advance(central.start(), 1, 1)
    moved = np.abs(one["params"] - flat.start()["params"]).max()
    assert moved > 0.005 and np.allclose(one["params"], other["params"], atol=1e-4 * moved)
    assert np.allclose(
        one[ROWS][: len(one[ROWS]) // 2], other["personal/own-words"][0][: len(one[ROWS]) // 2], atol=1e-4
    )


@pytest.mark.parametrize("topology", ["flat", "central"])
def test_the_bits_do_not_depend_on_how_steps_are_divided(topology: str) -> None:
    task = tiny_task(tiny_personal(topology=topology))
    whole, _ = task.advance(task.start(), 1, task.rounds)
    assert_equal_states(whole, advance_all(tiny_task(tiny_personal(topology=topology))))


def test_a_training_continues_from_its_checkpoint_to_the_same_bits(tmp_path: Path) -> None:
    import threading

    path = tmp_path / "task.safetensors"
    whole = advance_all(tiny_task(tiny_personal()))

    class KilledError(Exception):
        pass

    def fail(progress: object) -> None:
        if getattr(progress, "round", 0) >= 3:
            raise KilledError

    with pytest.raises(KilledError):
        train_task(tiny_task(tiny_personal()), Watch(threading.Event(), fail, path, 0.0, "me", lambda: None))
    assert path.exists()
    again = train_task(
        tiny_task(tiny_personal()), Watch(threading.Event(), lambda _: None, path, 0.0, "me", lambda: None)
    )
    assert_equal_states(whole, again.state)


def test_case_2_sends_the_whole_frequent_vocabulary() -> None:
    frequent = tuple(range(2, 8))
    setting = tiny_personal(sharing=WordSharing("frequent", frequent))
    frozen, task = tiny_task(tiny_personal()), tiny_task(setting)
    n_more = len(task.start()["params"]) - len(frozen.start()["params"])
    assert n_more == len(frequent) * DIM
    step = task.schedule.step_at(1)
    messages = list(task.visit_clients(task.start()["params"], PersonalStore(task.start()), step))
    assert {len(message.delta) for message in messages} == {len(task.start()["params"])}  # whatever words a client uses


def test_only_visited_clients_have_rows_in_the_store() -> None:
    task = tiny_task(tiny_personal())
    state, _ = task.advance(task.start(), 1, 1)
    visited = np.flatnonzero(state["personal/starts"] >= 0)
    assert visited.tolist() == task.schedule.step_at(1).ids.tolist()
    n_words = sum(len(task.setting.people.record_of(int(user)).own_words) for user in visited)
    assert state[ROWS].shape == (n_words, DIM)


def test_sound_noise_is_on_the_sum_of_clipped_updates() -> None:
    exchange = UpdateExchange(SoundGaussian(0.05, 0.0))
    task = tiny_task(tiny_personal(exchange=exchange, cohort=5, rounds=1))
    step = task.schedule.step_at(1)
    messages = list(task.visit_clients(task.start()["params"], PersonalStore(task.start()), step))
    assert {message.weight for message in messages} == {1.0}
    assert max(np.linalg.norm(message.delta) for message in messages) <= 0.05 * 1.0001
    noisy = tiny_task(tiny_personal(exchange=UpdateExchange(SoundGaussian(0.05, 2.0)), cohort=5, rounds=1))
    with_noise, without = (each.advance(each.start(), 1, 1)[0]["params"] for each in (noisy, task))
    spread = np.std(with_noise - without)  # 0.05 * 2 / 5 clients = 0.02
    assert 0.016 < spread < 0.024


def test_rules_are_those_of_every_recipe() -> None:
    task = tiny_task(tiny_personal(cohort=5, rounds=1, rule=find_rule("median")))
    state = task.start()
    messages = list(task.visit_clients(state["params"], PersonalStore(state), task.schedule.step_at(1)))
    middle = np.median(np.stack([message.delta for message in messages]), axis=0)
    after, _ = task.advance(state, 1, 1)
    assert np.allclose(after["params"] - state["params"], middle, atol=1e-7) and np.abs(middle).max() > 0.001


def test_liars_send_what_the_attack_says() -> None:
    setting = tiny_personal(cohort=5, rounds=1)
    liars = replace(setting, attack=find_attack("sign-flip"), n_malicious=2)
    honest, attacked = tiny_task(setting), tiny_task(liars)
    one, other = (task.advance(task.start(), 1, 1)[0]["params"] for task in (honest, attacked))
    assert not np.allclose(one, other, atol=1e-4)


def test_a_user_with_one_search_takes_part_and_changes_nothing() -> None:
    task = tiny_task(tiny_personal(TinyUsers(newcomer=True), cohort=5, rounds=1))
    state = task.start()
    messages = list(task.visit_clients(state["params"], PersonalStore(state), task.schedule.step_at(1)))
    assert messages[0].weight == 0 and not messages[0].delta.any() and messages[1].weight > 0
    assert np.isnan(task.examine(state)["users/offline/MAP"][0])


def test_retraining_begins_anew_and_continuing_does_not() -> None:
    again, on = (tiny_task(tiny_personal(updating=how, stages=3, rounds=1)) for how in ("retrain", "continue"))
    assert again.rounds == 2 * again.schedule.steps_each and again.eval_every == again.schedule.steps_each
    each = again.schedule.steps_each
    first, _ = on.advance(on.start(), 1, each)
    assert_equal_states(first, again.advance(again.start(), 1, each)[0])  # the first week is the same
    restarted, _ = again.advance(first, each + 1, each)
    fresh, _ = again.advance(again.start(), each + 1, each)
    assert_equal_states(restarted, fresh)
    assert not np.array_equal(on.advance(first, each + 1, each)[0]["params"], fresh["params"])


def test_online_steps_wait_for_k_clients_with_enough_new_searches() -> None:
    setting = tiny_personal(updating="online", stages=4)
    schedule = plan_online(setting.people, cohort=2, trainings=3)
    steps = [step for week in schedule.weeks for step in week]
    assert steps and all(len(step.ids) == 2 == len(set(step.ids.tolist())) for step in steps)
    for step in steps:
        counts = [len(setting.people.searches_in(int(i), span)) for i, span in zip(step.ids, step.spans, strict=True)]
        assert min(counts) >= 4
    seen = sum(
        len(setting.people.searches_in(int(i), s)) for step in steps for i, s in zip(step.ids, step.spans, strict=True)
    )
    assert seen <= 5 * 9  # no search is used twice
    task = tiny_task(setting)
    assert task.rounds == 3 * schedule.steps_each
    advance_all(task)


def test_weeks_are_measured_on_the_next_one() -> None:
    week = 7 * 24 * 3600
    periods = TinyUsers().periods
    assert measured_spans(periods, updating="retrain", training=2)["offline"] == (
        periods.train + 2 * week,
        periods.train + 3 * week,
    )


def test_quality_is_a_mean_over_searches_and_kept_for_each_user() -> None:
    task = tiny_task(replace(tiny_personal(), model=None))
    looks = task.examine(task.start())
    users = looks["users/offline/MAP"]
    assert users.shape == (5,) and np.isclose(users.mean(), looks["offline/MAP"])  # three test searches each
    assert looks["offline/MAP"] == looks["original/MAP"] and "offline/P-Improve" not in looks
    assert N_WORDS == 12
