"""The rounds of a live federation: cases by hand, and random interleavings beside a simple model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hushrank.live.server.rounds import RoundRules, Rounds, RoundState
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.refusals import Reason, RefusedError


def start(*clients: int, **rules: float | None) -> Rounds:
    """A federation in which these clients are asked in round 1, opened at time 0."""
    rounds = Rounds(RoundRules(**rules))  # type: ignore[arg-type] # Why: keywords of several kinds
    for client in clients:
        rounds.join(client, 0.0)
    rounds.open(clients, 0.0)
    return rounds


def answer(rounds: Rounds, client: int, now: float = 1.0) -> None:
    rounds.reserve(client, rounds.number, now)
    rounds.confirm(client)


def refusal(rounds: Rounds, client: int, round: int, now: float = 1.0) -> Reason:
    with pytest.raises(RefusedError) as refused:
        rounds.reserve(client, round, now)
    return refused.value.reason


def test_a_round_closes_when_everybody_has_answered() -> None:
    rounds = start(1, 2)
    answer(rounds, 1)
    assert str(rounds.state) == "collecting" and rounds.decide(1.0) is None
    answer(rounds, 2)
    assert rounds.decide(1.0) is Outcome.closed and not rounds.is_open
    rounds.end(Outcome.closed, 1.0)
    assert rounds.state is RoundState.idle and rounds.n_closed == 1 and rounds.may_open(1.0)
    assert rounds.open(rounds.candidates(1.0), 1.0) == 2


@pytest.mark.parametrize(("n_answers", "outcome"), [(2, Outcome.closed), (1, Outcome.abandoned)])
def test_at_its_deadline_a_round_closes_with_a_quorum_and_is_abandoned_without(
    n_answers: int, outcome: Outcome
) -> None:
    rounds = start(1, 2, 3, quorum=2, deadline_s=60)
    for client in range(1, n_answers + 1):
        answer(rounds, client)
    assert rounds.next_check(10.0) == 50.0
    assert rounds.decide(59.9) is None and rounds.decide(60.0) is outcome
    rounds.end(outcome, 60.0)
    assert rounds.n_closed == (outcome is Outcome.closed)
    assert rounds.open([1, 2, 3], 60.0) == 2  # an abandoned round's number is used up


def end_now(rounds: Rounds, now: float) -> None:
    for client in tuple(rounds.waiting):
        answer(rounds, client, now)
    assert rounds.decide(now) is Outcome.closed
    rounds.end(Outcome.closed, now)


def test_clients_rest_between_rounds_that_ask_them() -> None:
    rounds = Rounds(RoundRules(separation=3, cohort=2, min_clients=2))
    for client in range(1, 7):
        rounds.join(client, 0.0)
    asked = []
    for number in range(1, 10):
        assert rounds.may_open(1.0) and rounds.next_number(1.0) == number
        invited = rounds.invite(1.0)
        assert len(invited) == (6 if number == 1 else 4 if number == 2 else 2)
        asked.append(invited[:2])
        assert rounds.open(invited[:2], 1.0, number=number) == number
        end_now(rounds, 1.0)
    for before, after in [(asked[i], asked[i + d]) for d in (1, 2) for i in range(9 - d)]:
        assert not set(before) & set(after)


def test_where_too_few_have_rested_numbers_are_left_out() -> None:
    """Rests are counted in numbers of rounds, so that a small federation goes on at once."""
    rounds = Rounds(RoundRules(separation=4, min_clients=2))
    for client in (1, 2):
        rounds.join(client, 0.0)
    for number in (1, 5, 9):
        assert rounds.next_number(1.0) == number and rounds.invite(1.0) == [1, 2]
        assert rounds.open([1, 2], 1.0, number=number) == number
        end_now(rounds, 1.0)


def test_rests_are_known_after_a_start_and_after_a_round_that_goes_on() -> None:
    rounds = Rounds(RoundRules(separation=3), number=7)
    rounds.join(1, 0.0, answered=6)
    rounds.join(2, 0.0, answered=3)
    rounds.join(3, 0.0)
    assert rounds.next_number(0.0) == 8 and rounds.invite(0.0) == [2, 3]
    rounds.resume([3], [], 0.0)
    end_now(rounds, 0.0)
    assert rounds.invite(0.0) == [2]


def test_an_answer_that_is_being_written_at_the_deadline_is_waited_for() -> None:
    rounds = start(1, 2, deadline_s=60)
    rounds.reserve(1, 1, 59.9)
    assert rounds.decide(61.0) is None and rounds.next_check(61.0) is None
    rounds.confirm(1)
    assert rounds.decide(61.0) is Outcome.closed


def test_an_answer_that_could_not_be_written_may_come_again() -> None:
    rounds = start(1)
    rounds.reserve(1, 1, 1.0)
    assert refusal(rounds, 1, 1) is Reason.answered
    rounds.release(1)
    assert rounds.state is RoundState.open and rounds.decide(1.0) is None
    answer(rounds, 1)
    assert rounds.decide(1.0) is Outcome.closed


def test_refusals_say_why() -> None:
    rounds = start(1, 2, cohort=2)
    rounds.join(3, 0.5)
    assert refusal(rounds, 1, 0) is refusal(rounds, 1, 2) is Reason.round
    assert refusal(rounds, 3, 1) is refusal(rounds, 9, 1) is Reason.not_asked
    answer(rounds, 1)
    assert refusal(rounds, 1, 1) is Reason.answered
    assert refusal(rounds, 2, 1, now=60.0) is Reason.late
    answer(rounds, 2)
    rounds.decide(1.0)
    assert refusal(rounds, 2, 1) is Reason.late
    rounds.end(Outcome.closed, 1.0)
    rounds.open([1, 2, 3], 1.0)
    assert refusal(rounds, 2, 1) is Reason.late


def test_a_round_does_not_wait_for_who_left_and_counts_what_they_answered() -> None:
    rounds = start(1, 2, 3, quorum=2)
    answer(rounds, 1)
    rounds.leave(1)
    answer(rounds, 2)
    rounds.leave(3)
    assert refusal(rounds, 3, 1) is Reason.not_asked
    assert rounds.decide(1.0) is Outcome.closed and rounds.answered == {1, 2}


def test_a_round_that_everybody_left_is_abandoned_at_once() -> None:
    rounds = start(1)
    rounds.leave(1)
    assert rounds.decide(1.0) is Outcome.abandoned


def test_with_a_quorum_of_0_silence_looks_like_any_round() -> None:
    rounds = start(1, quorum=0)
    assert rounds.decide(60.0) is Outcome.closed


@pytest.mark.parametrize(("quorum", "fewest"), [(0, 1), (1, 1), (3, 3)])
def test_a_round_asks_as_many_as_the_quorum_and_somebody(quorum: int, fewest: int) -> None:
    rounds = Rounds(RoundRules(quorum=quorum))
    too_few = range(fewest - 1)
    for asked in (list(too_few), [*too_few, *too_few]):  # who is named twice is one
        with pytest.raises(ValueError, match=f"^{fewest - 1} clients are asked, must be at least one and the quorum"):
            rounds.open(asked, 0.0)
    assert rounds.number == 0 and rounds.open(range(fewest), 0.0) == 1 and len(rounds.asked) == fewest


def test_who_sleeps_is_not_asked_until_it_calls_again() -> None:
    rounds = start(1, 2, asleep_after_s=100, min_clients=2)
    for client in (1, 2):
        answer(rounds, client)
    rounds.decide(1.0)
    rounds.end(Outcome.closed, 1.0)
    rounds.see(1, 150.0)
    assert rounds.candidates(160.0) == [1] and not rounds.may_open(160.0)
    rounds.see(2, 160.0)
    rounds.see(9, 160.0)  # nobody
    assert rounds.candidates(160.0) == [1, 2] and rounds.may_open(160.0)


def test_there_is_a_pause_between_rounds() -> None:
    rounds = start(1, pause_s=5)
    answer(rounds, 1)
    outcome = rounds.decide(1.0)
    assert outcome is Outcome.closed and not rounds.may_follow(outcome, 1.0)
    rounds.end(outcome, 1.0)
    assert not rounds.may_open(5.9) and rounds.next_check(5.0) == 1.0 and rounds.may_open(6.0)


def test_after_its_last_round_a_federation_is_finished() -> None:
    rounds = start(1, rounds=1)
    answer(rounds, 1)
    outcome = rounds.decide(1.0)
    assert outcome is Outcome.closed and not rounds.may_follow(outcome, 1.0)
    rounds.end(outcome, 1.0)
    assert rounds.state is RoundState.finished and not rounds.may_open(99.0) and rounds.next_check(2.0) is None
    assert Rounds(RoundRules(rounds=1), number=1, n_closed=1).state is RoundState.finished


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="quorum is -1, must be at least 0"):
        RoundRules(quorum=-1)
    impossible: list[dict[str, Any]] = [{"min_clients": 0}, {"cohort": 0}, {"rounds": 0}]
    for rules in impossible:
        with pytest.raises(ValueError, match="must be at least 1"):
            RoundRules(**rules)
    with pytest.raises(ValueError, match="cohort is 2, fewer than the quorum of 3: no round could close"):
        RoundRules(quorum=3, cohort=2)
    with pytest.raises(ValueError, match="must be > 0"):
        RoundRules(deadline_s=0)
    rounds = start(1)
    with pytest.raises(ValueError, match="a round cannot open while the newest one is open"):
        rounds.open([1], 0.0)
    with pytest.raises(ValueError, match="a round that is open cannot end"):
        rounds.end(Outcome.closed, 0.0)
    with pytest.raises(ValueError, match="0 clients are asked, must be at least one and the quorum"):
        Rounds(RoundRules()).open([], 0.0)


CLIENTS = st.integers(1, 9)


class Interleavings(RuleBasedStateMachine):
    """Anything in any order. The model is a diary of the newest round, read anew for every question."""

    @initialize(
        quorum=st.integers(0, 4),
        cohort=st.none() | st.integers(4, 6),
        min_clients=st.integers(1, 4),
        rounds=st.none() | st.integers(1, 4),
        pause_s=st.sampled_from([0.0, 3.0]),
    )
    def begin(self, quorum: int, cohort: int | None, min_clients: int, rounds: int | None, pause_s: float) -> None:
        self.agreed = RoundRules(quorum, min_clients, cohort, 20.0, pause_s, 30.0, rounds, least_deadline_s=2.0)
        self.rounds = Rounds(self.agreed)
        self.now = 100.0
        self.seen: dict[int, float] = {}
        self.gone: set[int] = set()
        self.ended: list[Outcome] = []  # of rounds 1, 2, ...
        self.ended_at = 0.0
        self.asked: list[int] | None = None  # None: no round is open
        self.diary: list[tuple[str, int]] = []  # (answered | reserved | failed | left, client) since it opened
        self.opened_at = 0.0
        self.decided: Outcome | None = None
        self.misses: Counter[int] = Counter()  # {client: rounds in a row in which it was asked in vain}
        self.times: list[list[float]] = [[]]  # answering times of each round
        self.n_silent = 0  # rounds that nobody answered, the newest in a row
        self.is_lost = False  # too few answered the newest round that is over
        self.excused: set[int] = set()
        self.closes_at = 0.0
        for client in range(1, 6):
            self.join(client)

    def told(self, what: str) -> set[int]:
        return {client for said, client in self.diary if said == what}

    def on_its_way(self) -> set[int]:
        last = {client: said for said, client in self.diary if said != "left"}
        return {client for client, said in last.items() if said == "reserved"}

    def missing(self) -> set[int]:
        assert self.asked is not None
        return set(self.asked) - self.told("answered") - self.on_its_way() - self.told("left")

    def usual(self, clients: list[int]) -> set[int]:
        """Who answers as a rule, if that is half of them or more."""
        usual = {client for client in clients if self.misses[client] < 3}
        return usual if len(usual) >= len(clients) / 2 else set(clients)

    def patience(self, client: int) -> int:
        """A silent client is waited for in every so many rounds: 8, from 6 misses on 16, from 12 on 32 ..."""
        return 8 * 2 ** sum(self.misses[client] >= 3 * 2**n for n in range(1, 10))

    def deadline(self) -> float:
        recent: list[float] = []
        for times in reversed(self.times[:-1]):
            recent = recent if len(recent) >= 100 else [*recent, *times]
        if len(recent) < 20:
            return 20.0
        return float(np.clip(3 * np.quantile(recent, 0.95, method="inverted_cdf"), 2.0, 20.0))

    def pause(self) -> float:
        """20 s, 40 s ... from the third round on that only noise has moved."""
        is_noise = self.agreed.quorum == 0 and self.n_silent >= 3
        return max(self.agreed.pause_s, 20.0 * 2 ** min(self.n_silent - 3, 4) if is_noise else 0.0)

    def invited(self) -> list[int]:
        number, usual = len(self.ended) + 1, sorted(self.usual(self.awake()))
        needed = max(self.agreed.quorum, self.agreed.min_clients, self.agreed.cohort or 0)
        return self.awake() if number % 4 == 0 or self.is_lost or len(usual) < needed else usual

    def awake(self) -> list[int]:
        return sorted(client for client, when in self.seen.items() if self.now - when <= 30.0)

    @rule(client=CLIENTS)
    def join(self, client: int) -> None:
        if client not in self.seen and client not in self.gone:
            self.rounds.join(client, self.now)
            self.seen[client] = self.now

    @rule(client=CLIENTS)
    def call(self, client: int) -> None:
        self.rounds.see(client, self.now)
        if client in self.seen:
            self.seen[client] = self.now

    @rule(client=CLIENTS)
    def leave(self, client: int) -> None:
        self.rounds.leave(client)
        if self.seen.pop(client, None) is not None:
            self.gone.add(client)  # Why for good: whoever comes back has a new number
            del self.misses[client]
            self.diary.append(("left", client))

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 15.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data())
    def open(self, data: st.DataObject) -> None:
        is_over = self.agreed.rounds is not None and self.ended.count(Outcome.closed) >= self.agreed.rounds
        can = (
            self.asked is None and not is_over and len(self.awake()) >= max(self.agreed.quorum, self.agreed.min_clients)
        )
        rested = not self.ended or self.now >= self.ended_at + self.pause()
        assert self.rounds.may_open(self.now) == (can and rested)
        if can and rested:
            self.open_with(data.draw(st.permutations(self.invited())))

    def open_with(self, invited: list[int]) -> None:
        assert self.rounds.invite(self.now) == sorted(invited)
        number, asked = len(self.ended) + 1, sorted(invited[: self.agreed.cohort])
        is_patient = number % 8 == 0 or self.is_lost
        self.excused = set() if self.is_lost else set(asked) - self.usual(asked)
        if is_patient:
            self.excused = {client for client in self.excused if number % self.patience(client)}
        takes_nearly_all = self.agreed.quorum > 0.95 * len(set(asked) - self.excused)
        self.closes_at = self.now + (20.0 if is_patient or takes_nearly_all else self.deadline())
        assert self.rounds.open(asked, self.now) == number
        self.asked, self.diary, self.opened_at = asked, [], self.now

    @precondition(lambda self: self.asked is None)
    @rule(silent=st.sets(CLIENTS, max_size=3), n_rounds=st.integers(1, 8), seconds=st.sampled_from([0.1, 1.0, 4.0]))
    def play(self, silent: set[int], n_rounds: int, seconds: float) -> None:
        """Whole rounds, so that habits form: all who are asked answer, except the silent ones."""
        for _ in range(n_rounds):
            for client in list(self.seen):
                self.call(client)
            self.now = max(self.now, self.ended_at + self.pause())
            if not self.rounds.may_open(self.now):
                return
            self.open_with(self.invited())
            self.now += seconds
            for client in sorted(set(self.asked or ()) - silent):
                self.upload(client, 0)
                self.write(client, is_written=True)
            self.look()
            if self.decided is None:
                self.now = self.closes_at
                self.look()
            self.end()

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def upload_as_asked(self, data: st.DataObject) -> None:
        assert self.asked is not None
        self.upload(data.draw(st.sampled_from(self.asked)), 0)

    @rule(client=CLIENTS, back=st.integers(-1, 2))
    def upload(self, client: int, back: int) -> None:
        """To the newest round, to an older one, or to one that was never opened."""
        newest = len(self.ended) + (self.asked is not None)
        number = newest - back
        reason = self.expected_refusal(client, number, newest)
        if reason is None:
            self.rounds.reserve(client, number, self.now)
            self.diary.append(("reserved", client))
            self.times[-1].append(self.now - self.opened_at)
        else:
            assert refusal(self.rounds, client, number, self.now) is reason
            if reason is Reason.late and self.misses[client] > 3:
                self.misses[client] = 3  # slow, not gone

    def expected_refusal(self, client: int, number: int, newest: int) -> Reason | None:
        if number < 1 or number > newest:
            return Reason.round
        if self.asked is None or number < newest or self.decided is not None or self.now >= self.closes_at:
            return Reason.late
        if client not in self.asked or client not in self.seen:
            return Reason.not_asked
        return Reason.answered if client in self.told("answered") | self.on_its_way() else None

    @precondition(lambda self: self.asked is not None and self.on_its_way())
    @rule(data=st.data(), is_written=st.booleans())
    def commit(self, data: st.DataObject, is_written: bool) -> None:
        self.write(data.draw(st.sampled_from(sorted(self.on_its_way()))), is_written=is_written)

    def write(self, client: int, *, is_written: bool) -> None:
        if client not in self.on_its_way():  # it came too late
            return
        (self.rounds.confirm if is_written else self.rounds.release)(client)
        self.diary.append(("answered" if is_written else "failed", client))
        if is_written:
            del self.misses[client]

    @precondition(lambda self: self.asked is not None and self.decided is None)
    @rule()
    def look(self) -> None:
        answered = self.told("answered")
        enough = len(answered) >= self.agreed.quorum
        is_early = enough and answered and self.missing() <= self.excused
        is_due = not self.on_its_way() and (not self.missing() or is_early or self.now >= self.closes_at)
        expected = None if not is_due else Outcome.closed if enough else Outcome.abandoned
        assert self.rounds.decide(self.now) is expected
        self.decided = expected

    @precondition(lambda self: self.decided is not None)
    @rule()
    def end(self) -> None:
        assert self.decided is not None
        self.rounds.end(self.decided, self.now)
        self.ended.append(self.decided)
        self.misses.update(self.missing())
        self.times[-1] += [20.0] * len(self.missing() - self.excused)
        self.times.append([])
        self.n_silent = 0 if self.told("answered") else self.n_silent + 1
        self.is_lost = len(self.told("answered")) < max(self.agreed.quorum, 1)
        self.ended_at, self.asked, self.decided, self.diary = self.now, None, None, []

    @invariant()
    def nobody_counts_twice_and_numbers_agree(self) -> None:
        if not hasattr(self, "agreed"):
            return
        rounds = self.rounds
        assert rounds.number == len(self.ended) + (self.asked is not None)
        assert rounds.n_closed == self.ended.count(Outcome.closed)
        assert rounds.candidates(self.now) == self.awake()
        if self.asked is not None:
            assert rounds.excused == self.excused and rounds.closes_at == self.closes_at
            assert rounds.answered == self.told("answered") and rounds.pending == self.on_its_way()
            assert not rounds.answered & rounds.pending and not rounds.waiting & (rounds.answered | rounds.pending)
            assert rounds.answered | rounds.pending | rounds.waiting <= set(self.asked)


Interleavings.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestInterleavings = Interleavings.TestCase


@pytest.mark.parametrize("separation", [2, 3, 4, 8, 12])
def test_who_was_silent_for_a_while_is_asked_again_also_where_clients_rest(separation: int) -> None:
    """Numbers of rounds are left out there, so that whom to ask now and then must not go by them."""
    rounds = Rounds(RoundRules(separation=separation, min_clients=10, quorum=0))
    for client in range(1, 21):
        rounds.join(client, 0.0)
    n_asked = 0
    for turn in range(100):
        rounds.members = dict.fromkeys(rounds.members, 1.0 + turn)
        asked = rounds.invite(1.0 + turn)
        rounds.open(asked, 1.0 + turn, number=rounds.next_number(1.0 + turn))
        n_asked += turn >= 20 and 7 in asked
        for client in tuple(rounds.waiting - ({7} if 5 <= turn < 20 else set())):
            answer(rounds, client, 1.0 + turn)
        outcome = rounds.decide(1.0 + turn) or rounds.decide(rounds.closes_at)
        assert outcome is Outcome.closed
        rounds.end(outcome, 1.0 + turn)
    assert n_asked >= 10


def test_where_clients_rest_numbers_that_are_left_out_count_as_rounds() -> None:
    """One client, separation 3, 9 rounds: it answers in rounds 1, 4 and 7, as many as it pays for, and that is all."""
    rounds = Rounds(RoundRules(separation=3, rounds=9))
    rounds.join(1, 0.0)
    numbers = []
    while rounds.may_open(0.0):
        numbers.append(rounds.open(rounds.invite(0.0), 0.0, number=rounds.next_number(0.0)))
        end_now(rounds, 0.0)
    assert numbers == [1, 4, 7] and rounds.state is RoundState.finished
    again = Rounds(RoundRules(separation=3, rounds=9), number=7, n_closed=3)
    again.join(1, 0.0, answered=7)
    again.finish_if_enough()
    assert again.state is RoundState.finished  # also after a start
