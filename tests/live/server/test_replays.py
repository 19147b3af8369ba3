"""Rounds that forget, in the state machine: whom they ask, how long they wait, and that learning stops meanwhile."""

from __future__ import annotations

import pytest

from hushrank.live.server.rounds import RoundRules, Rounds, RoundState
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.refusals import RefusedError


def enrolled(*clients: int, seen: float = 0.0, **rules: int) -> Rounds:
    rounds = Rounds(RoundRules(**rules))  # type: ignore[arg-type] # Why: keywords of several kinds
    for client in clients:
        rounds.join(client, seen)
    return rounds


def answer(rounds: Rounds, client: int, now: float) -> None:
    rounds.reserve(client, rounds.number, now)
    rounds.confirm(client)


def end(rounds: Rounds, now: float) -> Outcome:
    outcome = rounds.decide(now)
    assert outcome is not None
    rounds.end(outcome, now)
    return outcome


def test_no_round_learns_from_the_wish_until_the_end() -> None:
    rounds = enrolled(1, 2)
    rounds.open([1, 2], 0.0)
    rounds.pause()
    answer(rounds, 1, 1.0)
    answer(rounds, 2, 1.0)
    assert not rounds.may_follow(Outcome.closed, 1.0) and not rounds.may_begin_replays
    end(rounds, 1.0)
    assert not rounds.may_open(2.0) and rounds.may_begin_replays
    rounds.begin_replays(until=10.0)
    assert rounds.may_open(2.0) and not rounds.may_begin_replays
    rounds.open(rounds.invite(2.0), 2.0)
    rounds.decline(1, 2)
    answer(rounds, 2, 2.0)
    assert rounds.may_follow(Outcome.closed, 2.0) and end(rounds, 2.0) is Outcome.closed
    rounds.end_replays()
    assert rounds.n_closed == 1 and rounds.may_open(2.0)
    rounds.open([1, 2], 2.0)
    assert not rounds.is_replaying


def test_a_finished_federation_wakes_up_and_is_finished_again() -> None:
    rounds = Rounds(RoundRules(rounds=3), number=3, n_closed=3)
    rounds.join(1, 0.0)
    rounds.finish_if_enough()
    assert rounds.state is RoundState.finished
    rounds.pause()
    assert str(rounds.state) == "idle" and rounds.may_begin_replays
    rounds.begin_replays(until=0.0)
    rounds.open([1], 0.0)
    answer(rounds, 1, 1.0)
    end(rounds, 1.0)
    assert str(rounds.state) == "idle"
    rounds.end_replays()
    assert rounds.state is RoundState.finished


def test_everybody_is_asked_asleep_or_not_and_waited_for_until_patience_or_the_deadline_ends() -> None:
    rounds = enrolled(1, 2, 3, seen=-1000.0, min_clients=3, cohort=1)
    rounds.see(1, 0.0)
    rounds.begin_replays(until=500.0)
    assert rounds.may_open(0.0) and rounds.invite(0.0) == [1, 2, 3]  # min_clients and cohort are for learning
    rounds.open(rounds.invite(0.0), 0.0)
    answer(rounds, 1, 1.0)
    assert rounds.decide(499.9) is None and rounds.next_check(100.0) == 400.0
    assert end(rounds, 500.0) is Outcome.closed and not rounds.history.missed
    rounds.see(1, 500.0)
    rounds.open(rounds.invite(500.0), 500.0)
    assert rounds.closes_at == 560.0


def test_a_step_that_nobody_answers_is_abandoned_and_makes_no_pause() -> None:
    rounds = enrolled(1, 2, quorum=2)
    rounds.begin_replays(until=0.0)
    rounds.open([1, 2], 0.0)
    for client in (1, 2):
        rounds.decline(client, 1)
    assert end(rounds, 0.0) is Outcome.abandoned and rounds.opens_at == 0.0 and rounds.n_silent == 0
    with pytest.raises(RefusedError, match="no round of this number forgets now"):
        rounds.decline(1, 1)


def test_a_round_found_open_waits_as_it_did() -> None:
    rounds = Rounds(RoundRules(), number=7)
    rounds.join(1, 0.0)
    rounds.join(2, 0.0)
    rounds.begin_replays(until=300.0)
    rounds.resume([1, 2], [1], 0.0)
    assert rounds.is_replaying and rounds.waiting == {2} and rounds.closes_at == 300.0


@pytest.mark.parametrize(("counts", "n_closed"), [(False, 0), (True, 1)])
def test_rounds_that_forget_count_where_budgets_are_for_so_many(counts: bool, n_closed: int) -> None:
    rounds = enrolled(1, counts_replays=counts)
    rounds.begin_replays(until=0.0)
    rounds.open([1], 0.0)
    answer(rounds, 1, 0.0)
    end(rounds, 0.0)
    assert rounds.n_closed == n_closed
