"""Personalised search with proxies: the flat result to rounding, nobody lost, and the same bits from any checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from tiny_users import TinyUsers, tiny_personal, tiny_task

from hushrank.engine import personal_people
from hushrank.engine.personal_combine import ALONE, HELD_BACK, combine_step
from hushrank.engine.personal_people import People, Span, fit_inputs, training_widths
from hushrank.engine.personal_proxies import ProxyLateness, ProxySchedule, ProxySetting
from hushrank.engine.personal_schedule import plan_online
from hushrank.engine.personal_store import PersonalStore
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.hierarchy import Hierarchy
from hushrank.federation.proxy_sum import ProxyFormat, WholeMessage
from hushrank.personal.log import SearchLog
from hushrank.personal.loss import count_pairs
from hushrank.personal.training import LocalTraining, bound_move
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.runs.personal_search import count_messages
from hushrank.streams import seed_key
from hushrank.types import Array, NamedArrays

SECURE = ProxyFormat(bound_move(LocalTraining(batch=4, chunk=4, rate=0.01), 512), 512 * 4, 7)


def with_proxies(population: TinyUsers | None = None, **changes: Any) -> Any:
    """Six users, three below each proxy."""
    population = population or TinyUsers(n_users=6)
    below = {name: changes.pop(name) for name in ("is_offloading", "dropout", "format") if name in changes}
    missing = changes.pop("missing", 0.0)  # of clients in a step
    hierarchy = Hierarchy(population.n_users, changes.pop("users_per_proxy", 3), changes.pop("proxies_per_group", 1))
    setting = tiny_personal(population, topology="proxy", dropout=missing, **changes)
    return replace(setting, proxies=ProxySetting(hierarchy, 3, **below))


def plan(n: int, *, cohort: int, stragglers: float = 0.0, missing: float = 0.0, **below: Any) -> ProxySchedule:
    hierarchy = Hierarchy(n, below.pop("users_per_proxy", 10), below.pop("proxies_per_group", 3))
    setting = ProxySetting(hierarchy, below.pop("clients_each", 5), **below)
    lateness = ProxyLateness(n, stragglers, missing, seed_key(3), setting)
    return ProxySchedule(n, cohort, 2, 1, TinyUsers().periods, "once", seed_key(3), lateness, None)


def list_steps(schedule: ProxySchedule, round: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(asked, counted) in each step of a round."""
    numbers = range((round - 1) * schedule.steps_per_round + 1, round * schedule.steps_per_round + 1)
    steps = [schedule.step_at(number) for number in numbers]
    return [
        (s.ids, s.ids[schedule.lateness.find_answers(s.ids, step=s.number)[0]] if len(s.ids) else s.ids) for s in steps
    ]


@pytest.mark.parametrize("format", [None, SECURE])
def test_flat_and_proxy_aggregation_are_equal_to_rounding(format: ProxyFormat | None) -> None:
    flat = tiny_task(tiny_personal(TinyUsers(n_users=6), cohort=6, rounds=1))
    below = tiny_task(with_proxies(cohort=6, rounds=1, format=format))
    assert np.array_equal(flat.schedule.step_at(1).ids, below.schedule.step_at(1).ids)  # everybody: the same cohort
    first = flat.start()
    one, other = (task.advance(first, 1, 1)[0]["params"] for task in (flat, below))
    moved = np.abs(one - first["params"]).max()
    assert moved > 0.005 and np.abs(one - other).max() <= 2e-7 < 1e-4 * moved


def test_noise_of_the_server_is_the_same_with_proxies() -> None:
    noise = UpdateExchange(SoundGaussian(clip_norm=0.1, noise_multiplier=1.0))
    flat = tiny_task(tiny_personal(TinyUsers(n_users=6), cohort=6, rounds=1, exchange=noise))
    below = tiny_task(with_proxies(cohort=6, rounds=1, exchange=noise))
    one, other = (task.advance(flat.start(), 1, 1)[0]["params"] for task in (flat, below))
    assert np.array_equal(one, other)  # sums of numbers on a grid are exact


def test_everybody_is_counted_once_in_a_round() -> None:
    schedule = plan(53, cohort=10)
    for round in (1, 2):
        steps = list_steps(schedule, round)
        assert sorted(i for _, counted in steps for i in counted.tolist()) == list(range(53))
        assert [len(asked) for asked, _ in steps[:3]] == [10, 10, 10] and len(steps) == 6
    assert not np.array_equal(list_steps(schedule, 1)[0][0], list_steps(schedule, 2)[0][0])


def test_a_step_asks_k_over_ten_proxies() -> None:
    schedule = plan(400, cohort=20, users_per_proxy=40, clients_each=10)
    for asked, _ in list_steps(schedule, 1)[:5]:
        proxies, counts = np.unique(schedule.lateness.proxies.hierarchy.proxies_of(asked), return_counts=True)
        assert len(proxies) == 2 and counts.tolist() == [10, 10]


def test_stragglers_answer_in_time_when_their_proxies_train_for_them() -> None:
    handed, alone = (plan(60, cohort=10, stragglers=0.2, is_offloading=way) for way in (True, False))
    counted = [sorted(i for _, c in list_steps(s, 1) for i in c.tolist()) for s in (handed, alone)]
    assert counted[0] == list(range(60))
    assert counted[1] == np.flatnonzero(~alone.lateness.is_late).tolist()  # without it they miss every deadline
    assert handed.lateness.is_offloaded.sum() == 12


def test_who_is_late_or_below_a_vanished_proxy_comes_again_and_none_twice() -> None:
    for schedule in (plan(60, cohort=10, missing=0.3), plan(60, cohort=20, dropout=0.3)):
        steps = list_steps(schedule, 1)
        counted = [i for _, c in steps for i in c.tolist()]
        asked = [i for a, _ in steps for i in a.tolist()]
        assert len(counted) == len(set(counted))
        missed = {i for a, c in steps[:-1] for i in np.setdiff1d(a, c).tolist()}
        assert len(missed & set(counted)) > len(missed) / 2  # counted in a later step of the round
        assert set(asked) == set(range(60)) and len(asked) > 60  # and nobody was left out for it
    again = sorted({i for _, c in list_steps(schedule, 2) for i in c.tolist()})
    assert len(again) > 40  # the next round begins with everybody


def test_a_proxy_that_vanishes_takes_all_its_clients_with_it() -> None:
    schedule = plan(60, cohort=20, dropout=0.4)
    of, n_gone = schedule.lateness.proxies.hierarchy.proxies_of, 0
    for asked, counted in list_steps(schedule, 1):
        for proxy in np.unique(of(asked)):
            here, came = asked[of(asked) == proxy], counted[of(counted) == proxy]
            assert len(came) in (0, len(here))
            n_gone += len(came) == 0
    assert n_gone > 1


def test_one_applicant_below_a_proxy_waits_and_who_has_nothing_to_learn_does_not_apply() -> None:
    def find_learners(spans: tuple[Span, ...]) -> Array:
        return np.array([[False, False, True, True, False, True]] * len(spans))

    hierarchy = Hierarchy(6, 3)
    lateness = ProxyLateness(6, 0.0, 0.0, seed_key(1), ProxySetting(hierarchy, 3))
    schedule = ProxySchedule(6, 6, 1, 1, TinyUsers().periods, "once", seed_key(1), lateness, find_learners)
    assert schedule.step_at(1).ids.tolist() == [3, 5]  # 2 is alone below the first proxy
    newcomer = TinyUsers(n_users=6, newcomer=True)
    assert tiny_task(with_proxies(newcomer, cohort=6)).schedule.step_at(1).ids.tolist() == [1, 2, 3, 4, 5]


def count_pairs_of(people: People, client: int, span: Span) -> int:
    """Of what the client trains on."""
    cut = fit_inputs(people.inputs_of(client, span), training_widths(people), title_words=people.title_words)
    return int(count_pairs(cut.is_clicked, cut.is_document)[cut.is_query].sum())


@pytest.mark.parametrize("updating", ["once", "online"])
@pytest.mark.parametrize("format", [None, SECURE])
def test_who_has_no_pairs_does_not_apply_so_that_all_who_are_counted_are_in_a_sum(
    format: ProxyFormat | None, updating: str
) -> None:
    """Clients 1 and 2 click on all they see. With them, client 0 would be alone in a sum, and lost if that is held."""
    weeks = {"updating": updating, "stages": 4} if updating == "online" else {}
    population = TinyUsers(n_users=9, eager=(1, 2, 4))
    late: dict[str, Any] = {"missing": 0.1, "dropout": 0.1, "stragglers": 0.2}
    task = tiny_task(with_proxies(population, cohort=3, rounds=2, format=format, **weeks, **late))
    people, n_counted = task.setting.people, 0
    for number in range(1, task.rounds + 1):
        step = task.schedule.step_at(number)
        if not len(step.ids):
            continue
        pairs = np.array([count_pairs_of(people, int(i), span) for i, span in zip(step.ids, step.spans, strict=True)])
        assert not {0, 1, 2, 4} & set(step.ids.tolist()) and pairs.all()
        answers, _ = task.lateness.find_answers(step.ids, step=number)
        messages = [WholeMessage(np.zeros(2), float(n)) for n in pairs[answers]]
        joined, n_held = task.sum_below(messages, step.ids[answers], number)
        assert n_held == 0 and (0 if joined is None else joined.n_clients) == np.count_nonzero(answers)
        n_counted += int(np.count_nonzero(answers))
    assert n_counted >= 4


@dataclass(frozen=True)
class CountedUsers(TinyUsers):
    """Notes whose log is read."""

    read: list[int] = field(default_factory=list)

    def log_of(self, user: int) -> SearchLog:
        self.read.append(user)
        return TinyUsers.log_of(self, user)


@pytest.mark.parametrize("updating", ["once", "retrain", "continue"])
def test_all_rounds_of_all_trainings_are_planned_with_one_look_into_each_log(
    updating: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though there is room for two logs. Who applies is who has pairs in the span of the training."""
    monkeypatch.setattr(personal_people, "MOST_KEPT", 2 / 3)
    weeks = {} if updating == "once" else {"updating": updating, "stages": 4}
    population = CountedUsers(n_users=9, newcomer=True, eager=(4,))
    setting = with_proxies(population, cohort=3, rounds=3, **weeks)
    for _ in range(2):  # for the training, and for what the result says of it
        schedule = setting.schedule_of(setting.key_of(0))
        for number in range(1, setting.settings.n_trainings * schedule.steps_each + 1):
            schedule.step_at(number)
    assert population.read == list(range(9)) and len(setting.people.kept) == 2
    for training in range(1, setting.settings.n_trainings + 1):
        span = schedule.span_of(training)
        assert schedule.list_applicants(training).tolist() == [i for i in range(9) if setting.people.has_pairs(i, span)]


def test_under_noise_nobody_s_place_depends_on_a_log() -> None:
    """Who has nothing to learn applies all the same: otherwise the steps themselves would tell."""
    noise = UpdateExchange(SoundGaussian(clip_norm=0.1, noise_multiplier=1.0))
    setting = with_proxies(TinyUsers(n_users=6, newcomer=True), cohort=6, exchange=noise)
    assert tiny_task(setting).schedule.step_at(1).ids.tolist() == [0, 1, 2, 3, 4, 5]


def test_online_a_step_waits_until_nobody_would_be_alone_below_a_proxy() -> None:
    setting = with_proxies(updating="online", stages=4, cohort=3)
    people = setting.people
    steps = [
        step
        for week in plan_online(people, setting.lateness_of(seed_key(1)), cohort=3, trainings=3).weeks
        for step in week
    ]
    assert len(steps) > 2
    for step in steps:
        counts = np.bincount(setting.proxies.hierarchy.proxies_of(step.ids))
        assert 3 <= len(step.ids) <= 4 and all(n != 1 for n in counts)


def advance_all(task: Any, *, at_once: int) -> NamedArrays:
    state, number = task.start(), 1
    while number <= task.rounds:
        n = min(at_once, task.rounds - number + 1)
        state, _ = task.advance(state, number, n)
        number += n
    return state


def test_the_bits_do_not_depend_on_where_a_training_is_taken_up_again() -> None:
    changes: dict[str, Any] = {"cohort": 3, "rounds": 2, "missing": 0.3, "dropout": 0.2, "stragglers": 0.2}
    whole = advance_all(tiny_task(with_proxies(**changes)), at_once=9)
    task = tiny_task(with_proxies(**changes))
    state, _ = task.advance(task.start(), 1, 3)
    rest = tiny_task(with_proxies(**changes))  # knows nothing of the first steps
    state, _ = rest.advance(state, 4, task.rounds - 3)
    assert set(whole) == set(state) and all(np.array_equal(whole[name], state[name]) for name in whole)


def test_a_sum_of_one_update_that_counts_is_held_back() -> None:
    """Two of a proxy's three updates cannot be used: the third client waits for the next round."""
    task = tiny_task(with_proxies(cohort=6, rounds=1))
    state, ids = task.start(), np.arange(6)
    messages = list(task.visit_clients(state["params"], PersonalStore(state), task.schedule.step_at(1)))
    known: dict[str, Any] = {"key": seed_key(1), "n_asked": 6, "number": 1, "round": 1, "sum_below": task.sum_below}
    quiet = [replace(m, weight=0.0) if i in (1, 2) else m for i, m in enumerate(messages)]
    combined, evidence = combine_step(task.setting, quiet, ids, state["params"], {}, **known)
    rest = sum(m.weight * m.delta.astype(np.float64) for m in messages[3:]) / sum(m.weight for m in messages[3:])
    assert evidence == {HELD_BACK: 1} and combined is not None and np.allclose(combined.update, rest, atol=1e-9)
    nobody = [replace(m, weight=0.0) if i else m for i, m in enumerate(messages)]
    assert combine_step(task.setting, nobody, ids, state["params"], {}, **known) == (None, {HELD_BACK: 2, ALONE: 1})
    known["sum_below"] = tiny_task(with_proxies(cohort=6, rounds=1, format=SECURE)).sum_below  # which sees no weights
    silent = [replace(m, weight=0.0) for m in messages]
    assert combine_step(task.setting, silent, ids, state["params"], {}, **known) == (None, {ALONE: 1})


def test_messages_are_counted_with_every_attempt() -> None:
    assert count_messages(with_proxies(cohort=3, rounds=2)) == 6 * 2
    assert count_messages(with_proxies(cohort=3, rounds=2, dropout=0.5)) > 6 * 2
