"""Whom a round waits for, and for how long: silent clients cost the others little, and get their chance again."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from hushrank.live.server.gauges import read_gauges
from hushrank.live.server.rounds import RoundRules, Rounds
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.refusals import RefusedError


class Federation:
    """Rounds of clients that are always awake."""

    def __init__(self, n_clients: int, rules: RoundRules = RoundRules()) -> None:  # noqa: B008 # Why: frozen
        self.rounds, self.now = Rounds(rules), 0.0
        for client in range(1, n_clients + 1):
            self.rounds.join(client, self.now)

    def open(self) -> set[int]:
        """Whom the next round asks."""
        for client in self.rounds.members:
            self.rounds.see(client, self.now)
        self.rounds.open(self.rounds.invite(self.now)[: self.rounds.rules.cohort], self.now)
        return self.rounds.asked

    def answer(self, client: int, after_s: float = 0.0) -> None:
        self.rounds.reserve(client, self.rounds.number, self.rounds.opened_at + after_s)
        self.rounds.confirm(client)

    def end(self) -> float:
        """As soon as that is possible; the seconds that the round took."""
        if (outcome := self.rounds.decide(self.now)) is None:
            self.now = self.rounds.closes_at
            outcome = self.rounds.decide(self.now)
        assert outcome is not None
        self.rounds.end(outcome, self.now)
        return self.now - self.rounds.opened_at

    def play(self, answering: Collection[int], n_rounds: int = 1, *, after_s: float = 0.0) -> list[float]:
        """Rounds that these clients answer if they are asked; the seconds that each took."""
        took = []
        for _ in range(n_rounds):
            for client in sorted(self.open() & set(answering)):
                self.answer(client, after_s)
            took.append(self.end())
        return took


def test_a_client_that_never_answers_is_soon_waited_for_only_now_and_then() -> None:
    took = Federation(3).play({1, 2}, 300)
    waited = [number for number, seconds in enumerate(took, start=1) if seconds]
    assert waited == [1, 2, 3, 8, 16, 32, 64, 128, 256] and set(took) == {0.0, 60.0}


def test_who_answers_too_late_is_waited_for_again_in_the_next_patient_round() -> None:
    federation = Federation(3)
    federation.play({1, 2}, 32)
    with pytest.raises(RefusedError):
        federation.rounds.reserve(3, 32, federation.now)
    assert federation.play({1, 2}, 32).index(60.0) == 7  # round 40; without that answer it would be 64
    assert federation.play({1, 2}, 64).count(60.0) == 2  # and then less and less again: 96 and 128


def test_who_is_silent_is_asked_in_every_fourth_round_and_after_one_answer_in_all() -> None:
    federation = Federation(3)
    federation.play({1, 2}, 3)
    asked = []
    for _ in range(4, 12):
        asked.append(3 in federation.open())
        for client in (1, 2):
            federation.answer(client)
        federation.end()
    assert asked == [True, False, False, False] * 2  # rounds 4 and 8
    federation.play({1, 2, 3})  # round 12, in which it answers in time
    assert federation.open() == {1, 2, 3} and not federation.rounds.excused
    assert read_gauges(federation.rounds, now=federation.now)["clients_not_waited_for"] == 0


def test_a_round_closes_early_only_with_its_quorum_and_an_answer() -> None:
    federation = Federation(4, RoundRules(quorum=3))
    federation.play({1, 2, 3}, 3)
    assert federation.open() == {1, 2, 3, 4} and federation.rounds.excused == {4}
    federation.rounds.leave(3)
    federation.answer(1)
    federation.answer(2)
    assert federation.rounds.decide(1.0) is None  # all who usually answer have, but the quorum is 3
    federation.answer(4)
    assert federation.rounds.decide(1.0) is Outcome.closed


def test_noise_alone_never_closes_a_round_early() -> None:
    federation = Federation(2, RoundRules(quorum=0))
    federation.play({1}, 3)
    federation.open()
    assert federation.rounds.excused == {2}
    federation.rounds.leave(1)
    assert federation.rounds.decide(federation.now) is None
    assert federation.rounds.decide(federation.rounds.closes_at) is Outcome.closed


def test_where_all_must_answer_everybody_is_asked_and_waited_for() -> None:
    federation = Federation(3, RoundRules(quorum=3, cohort=3, min_clients=3))
    assert federation.play({1, 2}, 9) == [60.0] * 9 and federation.rounds.n_closed == 0
    assert federation.open() == {1, 2, 3}


def test_a_cohort_is_drawn_among_those_who_usually_answer_if_they_are_enough() -> None:
    federation = Federation(4, RoundRules(cohort=3))
    for client in (1, 2):
        federation.rounds.history.missed[client] = 3
    assert federation.rounds.invite(0.0) == [1, 2, 3, 4]  # a cohort of 3 cannot be drawn among 2
    del federation.rounds.history.missed[2]
    assert federation.rounds.invite(0.0) == [2, 3, 4]


def test_a_few_eager_clients_do_not_run_the_rounds_alone() -> None:
    assert Federation(3).play({1}, 20) == [60.0] * 20
    assert Federation(2).play({1}, 5) == [60.0] * 3 + [0.0] * 2


def test_deadlines_follow_the_answering_times_within_the_operators_limits() -> None:
    federation = Federation(10, RoundRules(least_deadline_s=5, deadline_s=60))
    federation.play(range(1, 11), 1, after_s=4.0)
    federation.open()
    assert federation.rounds.closes_at - federation.now == 60.0  # 10 answers say too little
    for client in range(1, 11):
        federation.answer(client, 4.0)
    federation.end()
    federation.open()
    assert federation.rounds.closes_at - federation.now == 12.0  # 3 x 4 s
    assert read_gauges(federation.rounds, now=federation.now)["round_deadline_seconds"] == 12.0
    federation.end()
    assert [deadline_after(seconds) for seconds in (0.1, 2.0, 15.0, 30.0)] == [5.0, 6.0, 45.0, 60.0]
    assert deadline_after(0.1, deadline_s=3.0) == 3.0  # the most is the most


def deadline_after(seconds: float, **rules: float) -> float:
    """Of a round after two in which ten clients took so long."""
    federation = Federation(10, RoundRules(**rules))  # type: ignore[arg-type] # Why: keywords of several kinds
    federation.play(range(1, 11), 2, after_s=seconds)
    federation.open()
    return federation.rounds.closes_at - federation.now


def test_patient_rounds_have_the_whole_time_and_so_has_one_after_too_few_answers() -> None:
    federation = Federation(10)
    deadlines = []
    for number in range(1, 10):
        federation.open()
        deadlines.append(federation.rounds.closes_at - federation.now)
        for client in range(1, 11):
            if number != 4:  # nobody is in time
                federation.answer(client, 1.0)
        federation.end()
    assert deadlines == [60.0, 60.0, 5.0, 5.0, 60.0, 60.0, 60.0, 60.0, 60.0]


def test_clients_that_become_slow_are_waited_for_longer() -> None:
    federation = Federation(20)
    federation.play(range(1, 21), 3, after_s=1.0)
    federation.open()
    assert federation.rounds.closes_at - federation.now == 5.0
    for client in range(1, 15):
        federation.answer(client, 1.0)
    assert federation.end() == 5.0
    federation.open()
    assert federation.rounds.closes_at - federation.now == 60.0  # six of 80 were missed: more than 5 %


def test_what_is_remembered_does_not_grow() -> None:
    federation = Federation(30)
    federation.play(range(1, 31), 200, after_s=1.0)
    federation.rounds.leave(1)
    assert sum(map(len, federation.rounds.history._past)) < 130 and federation.rounds.history.missed == {}


def test_the_least_deadline_is_above_zero() -> None:
    with pytest.raises(ValueError, match=r"least_deadline_s is 0, must be > 0"):
        RoundRules(least_deadline_s=0)


def test_where_nearly_all_must_answer_the_deadline_is_whole() -> None:
    """97 quick and 3 slow clients, all needed: a quantile would abandon every second round."""
    rounds = Rounds(RoundRules(quorum=100, deadline_s=60.0, least_deadline_s=5.0))
    for client in range(100):
        rounds.join(client, 0.0)
    now, ends = 0.0, []
    for _ in range(6):
        for client in range(100):
            rounds.see(client, now)
        rounds.open(range(100), now)
        for client in range(100):
            at = now + (20.0 if client < 3 else 0.5)
            if at < rounds.closes_at:
                rounds.reserve(client, rounds.number, at)
                rounds.confirm(client)
        now = rounds.closes_at
        outcome = rounds.decide(now)
        assert outcome is not None
        rounds.end(outcome, now)
        ends.append(outcome)
    assert ends == [Outcome.closed] * 6
