"""Federated training of personalised search: who is asked, what is added up, what stays, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_users import DIM, N_WORDS, PERIODS, TinyUsers, tiny_examination, tiny_people, tiny_personal, tiny_task

from hushrank.aggregation.named import find_rule
from hushrank.attacks.named import FunctionAttack, find_attack
from hushrank.engine.personal_people import MOST_SEARCHES, People, Record, Span, stack_block
from hushrank.engine.personal_schedule import (
    MOST_ATTEMPTS,
    WEEK,
    Lateness,
    RoundSchedule,
    SearchStep,
    end_of_training,
    find_answers,
    find_stragglers,
    measured_spans,
    plan_online,
)
from hushrank.engine.personal_store import ROWS, PersonalStore
from hushrank.engine.train import Watch, train_task
from hushrank.federation.exchange import UpdateExchange
from hushrank.personal.inputs import N_LONG, PersonalInputs, find_own_words, take_queries, trim_history
from hushrank.personal.keys import PersonalSettings
from hushrank.personal.log import N_QUERY_WORDS, Search, SearchLog, make_log, slice_log
from hushrank.personal.models.parameters import WordSharing
from hushrank.personal.training import LocalTraining
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.runs.personal_search import count_messages
from hushrank.streams import seed_key
from hushrank.types import Array, AttackView, NamedArrays


def advance_all(task, state: NamedArrays | None = None, first: int = 1) -> NamedArrays:  # type: ignore[no-untyped-def]
    state = task.start() if state is None else state
    for number in range(first, task.rounds + 1):
        state, _ = task.advance(state, number, 1)
    return state


def list_visited(state: NamedArrays) -> list[int]:
    """Clients with rows of their own in the store, ascending."""
    return sorted(int(name.removeprefix(ROWS)) for name in state if name.startswith(ROWS))


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
    came = np.flatnonzero(~task.lateness.is_late)
    assert len(came) == 3
    step = task.schedule.step_at(1)._replace(ids=came, spans=task.schedule.step_at(1).spans[:3])
    messages = list(task.visit_clients(state["params"], PersonalStore(state), step))
    weights = np.array([message.weight for message in messages])
    assert weights.tolist() == [3.0 * 9] * 3  # nine searches of training, one of four clicked: three pairs each
    mean = sum(m.weight * m.delta.astype(np.float64) for m in messages) / weights.sum()
    assert np.allclose(after["params"] - state["params"], mean, atol=1e-7)
    assert list_visited(after) == came.tolist()  # who misses the deadline is not visited


@dataclass(frozen=True)
class UnequalUsers(TinyUsers):
    """Users with 1, 2, 4, 8 and 9 searches to train on."""

    def log_of(self, user: int) -> SearchLog:
        return slice_log(super().log_of(user), 0, 6 + (1, 2, 4, 8, 9)[user])  # six are before training begins


def test_who_has_more_pairs_weighs_more_in_the_mean() -> None:
    task = tiny_task(tiny_personal(UnequalUsers(), cohort=5, rounds=1))
    state = task.start()
    messages = list(task.visit_clients(state["params"], PersonalStore(state), task.schedule.step_at(1)))
    weights = np.array([message.weight for message in messages])
    assert weights.tolist() == [3, 6, 12, 24, 27]  # one of four clicked: three pairs of each search
    deltas = np.stack([message.delta.astype(np.float64) for message in messages])
    moved = task.advance(state, 1, 1)[0]["params"] - state["params"]
    assert np.allclose(moved, weights @ deltas / 72, atol=1e-7)
    assert np.abs(moved - deltas.mean(axis=0)).max() > 0.2 * np.abs(moved).max()  # not the plain mean


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
    assert np.allclose(one[f"{ROWS}0"], other["personal/own-words"][0][: len(one[f"{ROWS}0"])], atol=1e-4)


@pytest.mark.parametrize("topology", ["flat", "central"])
def test_the_bits_do_not_depend_on_how_steps_are_divided(topology: str) -> None:
    task = tiny_task(tiny_personal(topology=topology))
    whole, _ = task.advance(task.start(), 1, task.rounds)
    assert_equal_states(whole, advance_all(tiny_task(tiny_personal(topology=topology))))


@pytest.mark.parametrize(
    ("changes", "killed_after"),
    [({}, 3), ({"updating": "retrain", "stages": 3, "rounds": 1}, 2)],  # the second: between two trainings
)
def test_a_training_continues_from_its_checkpoint_to_the_same_bits(
    changes: dict[str, Any], killed_after: int, tmp_path: Path
) -> None:
    import threading

    path = tmp_path / "task.safetensors"
    whole = advance_all(tiny_task(tiny_personal(**changes)))

    class KilledError(Exception):
        pass

    def fail(progress: object) -> None:
        if getattr(progress, "round", 0) >= killed_after:
            raise KilledError

    with pytest.raises(KilledError):
        train_task(tiny_task(tiny_personal(**changes)), Watch(threading.Event(), fail, path, 0.0, "me", lambda: None))
    assert path.exists()
    again = train_task(
        tiny_task(tiny_personal(**changes)), Watch(threading.Event(), lambda _: None, path, 0.0, "me", lambda: None)
    )
    assert_equal_states(whole, again.state)


class FewWords(TinyUsers):
    """Users who search for two words each; all lists have the same four documents, with six of the ten words."""

    def log_of(self, user: int) -> SearchLog:
        log, query = super().log_of(user), np.zeros(N_QUERY_WORDS, np.int32)
        query[:2] = self.collection.titles[user % 4][:2]
        queries, documents = np.tile(query, (log.n_searches, 1)), np.tile(np.arange(4), log.n_searches)
        return replace(log, queries=queries, documents=documents)


def find_changed(task, params: Array, change: Array) -> set[int]:  # type: ignore[no-untyped-def]
    """Frequent words whose rows differ."""
    rows = task.arrays.sent(params + change)["words"] != task.arrays.sent(params)["words"]
    return {task.setting.sharing.frequent[row] for row in np.flatnonzero(rows.any(axis=1))}


@pytest.mark.parametrize("privacy", ["none", "sound"])
def test_in_case_2_the_rows_that_changed_name_words_unless_there_is_noise(privacy: str) -> None:
    exchange = UpdateExchange() if privacy == "none" else UpdateExchange(SoundGaussian(0.05, 2.0))
    every = tuple(range(2, N_WORDS))
    task = tiny_task(tiny_personal(FewWords(), sharing=WordSharing("frequent", every), rounds=1, exchange=exchange))
    state, step = task.start(), task.schedule.step_at(1)
    told = set[int]()
    for client, message in zip(step.ids, task.visit_clients(state["params"], PersonalStore(state), step), strict=True):
        log, titles = task.setting.people.record_of(int(client)).log, task.setting.people.population.collection.titles
        asked, listed = set(log.queries[0][:2].tolist()), set(titles[log.documents[:4]].ravel().tolist())
        named = find_changed(task, state["params"], message.delta)  # the server reads this under both
        assert asked <= named <= (asked | listed) - {0} and named < set(every)
        told |= named
    seen = find_changed(task, state["params"], task.advance(state, 1, 1)[0]["params"] - state["params"])
    assert seen == (told if privacy == "none" else set(every)) and told < set(every)  # and this is everybody's


def test_only_visited_clients_have_rows_in_the_store() -> None:
    task = tiny_task(tiny_personal())
    state, _ = task.advance(task.start(), 1, 1)
    assert list_visited(state) == task.schedule.step_at(1).ids.tolist()
    for client in list_visited(state):
        assert state[f"{ROWS}{client}"].shape == (len(task.setting.people.record_of(client).own_words), DIM)


def test_a_step_copies_nothing_of_clients_that_it_does_not_visit() -> None:
    task = tiny_task(tiny_personal())
    first, _ = task.advance(task.start(), 1, 2)
    before = {name: rows.copy() for name, rows in first.items() if name.startswith(ROWS)}
    after, _ = task.advance(first, 3, 1)  # the first step of the second round: two of the five come again
    again = task.schedule.step_at(3).ids.tolist()
    assert (len(before), len(again)) == (5, 2)
    for name, rows in before.items():
        assert np.array_equal(first[name], rows)  # what came in is as it was
        assert (after[name] is not first[name]) == (int(name.removeprefix(ROWS)) in again)
        assert after[name].base is None  # and no larger array is kept alive by it


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


def test_under_sound_noise_a_client_that_does_not_answer_counts_as_nothing() -> None:
    """The sum is divided by the number of those asked, and its noise is that of a step in which everybody answers."""
    quiet, noisy = (UpdateExchange(SoundGaussian(0.05, noise)) for noise in (0.0, 2.0))
    task, loud = (
        tiny_task(tiny_personal(exchange=exchange, cohort=5, rounds=1, dropout=0.4)) for exchange in (quiet, noisy)
    )
    state, step = task.start(), task.schedule.step_at(1)
    answers, _ = task.lateness.find_answers(step.ids, step=1)
    assert answers.sum() in (3, 4)
    came = step._replace(ids=step.ids[answers], spans=step.spans[: answers.sum()])
    total = sum(m.delta.astype(np.float64) for m in task.visit_clients(state["params"], PersonalStore(state), came))
    without, with_noise = (each.advance(state, 1, 1)[0]["params"] - state["params"] for each in (task, loud))
    assert np.allclose(without, total / 5, atol=1e-7) and np.abs(total).max() > 1e-3
    assert 0.016 < np.std(with_noise - without) < 0.024  # 0.05 * 2 / 5


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


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_a_step_in_which_one_client_alone_has_learnt_is_lost(rule: str) -> None:
    task = tiny_task(tiny_personal(TinyUsers(n_users=2, newcomer=True), rounds=1, rule=find_rule(rule)))
    state = task.start()
    messages = list(task.visit_clients(state["params"], PersonalStore(state), task.schedule.step_at(1)))
    assert [message.weight > 0 for message in messages] == [False, True]
    after, shown = task.advance(state, 1, 1)
    assert np.array_equal(after["params"], state["params"]) and shown["evidence/alone"].tolist() == [1]
    both = tiny_task(tiny_personal(TinyUsers(n_users=2), rounds=1, rule=find_rule(rule)))
    moved, told = both.advance(both.start(), 1, 1)
    assert not np.array_equal(moved["params"], state["params"]) and "evidence/alone" not in told


def test_a_rule_that_trusts_one_client_alone_loses_the_step() -> None:
    task = tiny_task(tiny_personal(cohort=5, rounds=1, rule=find_rule("krum")))
    after, shown = task.advance(task.start(), 1, 1)
    assert np.array_equal(after["params"], task.start()["params"]) and shown["evidence/alone"].tolist() == [1]


def send_nan(view: AttackView, *, key: Array) -> Array:
    del key
    return np.full((view.n_malicious, len(view.params)), np.nan)


def test_one_usable_message_among_broken_ones_makes_no_step() -> None:
    setting = tiny_personal(cohort=5, rounds=1)
    broken = replace(setting, attack=FunctionAttack(send_nan), n_malicious=4)
    task = tiny_task(broken)
    after, shown = task.advance(task.start(), 1, 1)
    assert shown["evidence/refused"].tolist() == [4]
    assert np.array_equal(after["params"], task.start()["params"]) and shown["evidence/alone"].tolist() == [1]


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
    schedule = plan_online(setting.people, Lateness(5, 0.0, 0.0, seed_key(1)), cohort=2, trainings=3)
    steps = [step for week in schedule.weeks for step in week]
    assert steps and all(len(step.ids) == 2 == len(set(step.ids.tolist())) for step in steps)
    for step in steps:
        counts = [len(setting.people.searches_in(int(i), span)) for i, span in zip(step.ids, step.spans, strict=True)]
        assert min(counts) >= 4
    seen = list_used(setting.people, steps)
    assert len(seen) == len(set(seen)) > 5 * 4  # no search is used twice
    task = tiny_task(setting)
    assert task.rounds == 3 * schedule.steps_each
    advance_all(task)


@dataclass(frozen=True)
class BusyUsers(TinyUsers):
    """User 0 makes 600 searches in the weeks of training, with twice as many documents and words in each."""

    def log_of(self, user: int) -> SearchLog:
        first, log = self.periods.train, super().log_of(user)
        searches = [Search(first + 60 * n, (2, 3, 4, 5), tuple(range(8)), (n % 8,)) for n in range(600)]
        return make_log(searches) if user == 0 else log


@dataclass(frozen=True)
class LateWord(TinyUsers):
    """User 0 searches for word 2, and from the third week of training on for word 11."""

    def log_of(self, user: int) -> SearchLog:
        late = self.periods.train + 2 * WEEK
        times = [number * WEEK // 3 for number in range(21)]
        searches = [Search(time, (11 if time >= late else 2,), tuple(range(4)), (1,)) for time in times]
        return make_log(searches) if user == 0 else super().log_of(user)


def test_what_a_client_trains_on_does_not_depend_on_how_much_others_search() -> None:
    usual, busy = (tiny_task(tiny_personal(users, cohort=5)) for users in (TinyUsers(), BusyUsers()))
    assert usual.widths == busy.widths
    assert (busy.widths.queries, busy.widths.documents, busy.widths.query_words) == (MOST_SEARCHES, 4, 2)
    step = busy.schedule.step_at(1)
    assert busy.count_searches(step) == (600 + 4 * 9, 600) and usual.count_searches(step) == (5 * 9, 0)
    inputs = busy.setting.people.inputs_of(0, step.spans[0])
    fitted = stack_block(busy.setting.people, [inputs], busy.widths, size=1)
    assert fitted.is_query.sum() == MOST_SEARCHES and fitted.n_before[0, -1] == 599 - (600 - MOST_SEARCHES - N_LONG)


def test_scores_need_no_more_history_than_is_kept_for_them() -> None:
    setting = tiny_personal()
    inputs = setting.people.inputs_of(1, Span(5 * WEEK, 7 * WEEK))
    some = take_queries(inputs, np.arange(1, 3))
    trimmed = trim_history(some)
    assert len(trimmed.history.sessions) == trimmed.n_before.max() < len(inputs.history.sessions)
    rows = [each.history.query_words[: each.n_before[0]].tolist() for each in (some, trimmed)]
    assert rows[0] == rows[1]


def test_a_word_has_no_personal_vector_before_the_training_that_sees_it() -> None:
    setting = tiny_personal(LateWord(), updating="continue", stages=4)
    assert setting.people.record_of(0).own_words.tolist() == [2, 11]
    found: list[int] = []

    def score(users: Sequence[int], inputs: PersonalInputs) -> np.ndarray:
        found.append(int(inputs.query_rows[users.index(0)].max()))
        return np.zeros(inputs.is_clicked.shape)

    last = {"offline": Span(PERIODS.train + 2 * WEEK, PERIODS.train + 3 * WEEK)}  # word 11 comes for the first time
    for training in (1, 2, 3):
        trained = end_of_training(PERIODS, updating="continue", training=training)
        tiny_examination(setting).measure(score, last, trained=trained)
    assert found == [-1, -1, 1]


def test_the_first_words_are_kept_where_there_are_too_many() -> None:
    log = make_log([Search(n, (word,), (0, 1), (0,)) for n, word in enumerate((9, 4, 7, 7, 7))])
    words, since = find_own_words(log, most=2)
    assert words.tolist() == [4, 9] and since.tolist() == [1, 0]  # 7 is the most frequent, which shows later


def list_used(people: People, steps: Sequence[SearchStep]) -> list[tuple[int, int]]:
    """(client, search) of everything that is trained on."""
    visits = [(int(client), span) for step in steps for client, span in zip(step.ids, step.spans, strict=True)]
    return [(client, int(search)) for client, span in visits for search in people.searches_in(client, span)]


def test_who_misses_the_deadline_online_keeps_its_searches_for_the_next_time() -> None:
    """It comes with everything since its last answer, not since it was last asked."""
    people, late = tiny_people(end=8 * WEEK), Lateness(5, 0.0, 0.4, seed_key(5))
    schedule = plan_online(people, late, cohort=3, trainings=5)
    steps, since, n_again = [step for week in schedule.weeks for step in week], dict[int, float](), 0
    for step in steps:
        answers, _ = late.find_answers(step.ids, step=step.number)
        for client, span, came in zip(step.ids.tolist(), step.spans, answers, strict=True):
            assert span.first == since.get(client, PERIODS.train)
            n_again += not came
            since |= {client: span.stop} if came else {}
    assert n_again > 0 and len(steps) > 2
    task = tiny_task(tiny_personal(updating="online", stages=4, dropout=0.4))
    assert task.schedule is task.setting.schedule_of(task.arrays.key)  # planned once


def test_every_attempt_counts_as_messages() -> None:
    setting = tiny_personal(cohort=5, rounds=3, dropout=0.6)
    lateness = setting.lateness_of(setting.key_of(0))
    attempts = [lateness.find_answers(np.arange(5), step=step)[1] for step in (1, 2, 3)]
    assert count_messages(setting) == 5 * sum(attempts) > 5 * 3
    assert count_messages(tiny_personal(cohort=2, rounds=3)) == 5 * 3


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
    np.testing.assert_array_equal(users, looks["users/original/MAP"])


def test_a_part_of_the_users_is_measured_the_same_at_every_look() -> None:
    setting = replace(tiny_personal(measured_users=2), model=None)
    users = setting.measured_users
    assert len(users) == 2 and np.array_equal(users, replace(setting, repeats=3).measured_users)
    assert len(replace(setting, settings=PersonalSettings()).measured_users) == 5
    looks = tiny_task(setting).examine(tiny_task(setting).start())
    assert np.flatnonzero(np.isfinite(looks["users/offline/MAP"])).tolist() == users.tolist()
    whole = tiny_task(replace(setting, settings=PersonalSettings(model="original")))
    everybody = whole.examine(whole.start())
    assert np.array_equal(looks["users/vali/MAP"][users], everybody["users/vali/MAP"][users])


def test_a_plan_needs_no_features() -> None:
    setting = tiny_personal(updating="online", stages=4)
    setting.schedule_of(setting.key_of(0))
    assert not any(isinstance(kept, Record) for kept in setting.people.kept.values())
