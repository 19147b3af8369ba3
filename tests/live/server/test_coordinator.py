"""A running federation without a network: counted once, told in time, the same after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from in_process import Live, agree, play

from hushrank.live.server import store
from hushrank.live.server.rounds import RoundState
from hushrank.live.wire.credentials import make_secret
from hushrank.live.wire.news import LastAnswer, Outcome
from hushrank.live.wire.refusals import Reason, RefusedError


async def refusal(asked: Awaitable[Any]) -> Reason:
    with pytest.raises(RefusedError) as refused:
        await asked
    return refused.value.reason


def test_two_clients_make_a_round_and_the_next_opens_at_once(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await live.answer(one, 1, 0, 0)
        assert live.c.rounds.number == 1 and live.c.standing(one).last == LastAnswer(1, Outcome.open)
        await live.answer(two, 0, 1, 0)
        await live.settle()
        assert live.c.rounds.number == 2 and live.c.rounds.is_open
        assert live.params() == [0.5, 0.5, 0.0]
        assert live.c.standing(one).last == LastAnswer(1, Outcome.closed) and live.c.standing(one).accepted_updates == 1
        assert [facts["answers"] for event, facts in live.said if event == "round-closed"] == [2]

    play(tmp_path / "f", story, min_clients=2)


def test_the_same_update_again_is_acknowledged_and_counted_once(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        first, second = await asyncio.gather(live.answer(one, 1, 0, 0), live.answer(one, 1, 0, 0))
        assert not first and second  # the second came while the first was on its way to the disk
        assert await live.answer(one, 1, 0, 0) is True
        assert await refusal(live.answer(one, 2, 0, 0)) is Reason.answered
        await live.answer(two, 0, 0, 0)
        await live.settle()
        assert await live.answer(one, 1, 0, 0, round=1) is True  # the round is over, the acknowledgement was lost
        assert await refusal(live.answer(one, 2, 0, 0, round=1)) is Reason.answered
        assert live.c.standing(one).accepted_updates == 1 and live.params() == [0.5, 0.0, 0.0]

    play(tmp_path / "f", story, min_clients=2)


def test_every_well_formed_body_is_counted_once_whatever_becomes_of_it(tmp_path: Path) -> None:
    """What a client pays for leaves the device, whether it counts or not; the same bytes again cost nothing."""

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        seen = list[int | None]()

        async def send(*numbers: float, round: int) -> None:
            with suppress(RefusedError):
                await live.answer(one, *numbers, round=round)
            seen.append(live.c.standing(one).received_updates)

        for numbers in ((1, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0), (3, 0, 0)):
            await send(*numbers, round=1)  # accepted, again, answered, again, answered
        await live.answer(two, 0, 0, 0)
        await live.settle()
        for numbers in ((1, 0, 0), (2, 0, 0), (4, 0, 0), (4, 0, 0)):
            await send(*numbers, round=1)  # too late: accepted before, refused before, new, again
        await send(5, 0, 0, round=9)  # of a round that was never open
        assert seen == [1, 1, 2, 2, 3, 3, 3, 4, 4, 5] and live.c.standing(one).accepted_updates == 1

    play(tmp_path / "f", story, min_clients=2)
    with store.open_store(tmp_path / "f" / store.FILE).begin() as connection:
        assert [member.refused for member in store.read_members(connection)] == [4, 0]


def test_who_was_not_asked_or_comes_late_is_refused(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        (three,) = await live.enrol()
        assert await refusal(live.answer(three)) is Reason.not_asked
        assert await refusal(live.answer(one, round=7)) is Reason.round
        await live.answer(one)
        await live.move(60.0)
        assert live.c.rounds.number == 2
        assert await refusal(live.answer(two, round=1)) is Reason.late

    play(tmp_path / "f", story, min_clients=2)


def test_a_round_below_its_quorum_is_abandoned_and_clients_are_told(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, _ = await live.enrol(2)
        await live.answer(one)
        await live.move(60.0)
        assert live.c.rounds.number == 2 and live.params() == [0.0, 0.0, 0.0]
        assert live.c.standing(one).last == LastAnswer(1, Outcome.abandoned)

    play(tmp_path / "f", story, min_clients=2, quorum=2)


def test_long_polls_hear_of_a_round_when_it_opens(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        (one,) = await live.enrol()
        poll = asyncio.ensure_future(live.c.wait_for_round(one, after=0, wait_s=30))
        await asyncio.sleep(0.01)
        assert not poll.done()
        await live.enrol()
        news = await asyncio.wait_for(poll, 5)
        assert news is not None
        assert (news.round, news.is_asked, news.closes_in_s, news.last) == (1, True, 60.0, None)
        assert await live.c.wait_for_round(one, after=1, wait_s=0) is None

    play(tmp_path / "f", story, min_clients=2)


def test_a_newer_poll_of_the_same_client_ends_the_older_and_stopping_ends_all(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        (one,) = await live.enrol()
        older, newer = (asyncio.ensure_future(live.c.wait_for_round(one, after=1, wait_s=30)) for _ in range(2))
        assert await refusal(asyncio.wait_for(older, 5)) is Reason.rate and not newer.done()
        live.c.begin_stop()
        assert await refusal(asyncio.wait_for(newer, 5)) is Reason.stopping
        assert await refusal(live.answer(one)) is Reason.stopping
        assert await refusal(live.c.enrol(live.tokens.pop(), make_secret())) is Reason.stopping

    play(tmp_path / "f", story)


def test_the_last_round_finishes_the_federation(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        (one,) = await live.enrol()
        await live.answer(one, 3, 0, 0)
        await live.settle()
        news = await live.c.wait_for_round(one, after=1, wait_s=30)
        assert news is not None and news.round is None and news.last == LastAnswer(1, Outcome.closed)
        assert live.params() == [3.0, 0.0, 0.0] and live.c.published(2).round == 2

    play(tmp_path / "f", story, agreement=agree(rounds=1))

    async def later(live: Live) -> None:
        assert live.c.rounds.state is RoundState.finished and live.params() == [3.0, 0.0, 0.0]

    play(tmp_path / "f", later)


def test_after_a_restart_the_open_round_goes_on(tmp_path: Path) -> None:
    async def before(live: Live) -> None:
        one, _ = await live.enrol(2)
        await live.answer(one, 1, 0, 0)

    play(tmp_path / "f", before, min_clients=2)

    async def after(live: Live) -> None:
        one, two = live.c._clients.values()
        assert live.c.rounds.number == 1 and live.c.rounds.answered == {one.id}
        assert await live.answer(one, 1, 0, 0) is True
        await live.answer(two, 0, 1, 0)
        await live.settle()
        assert live.params() == [0.5, 0.5, 0.0]
        assert live.c.rounds.state is RoundState.idle  # both sleep until they call
        assert live.c.standing(one).accepted_updates == 1

    play(tmp_path / "f", after, min_clients=2)


def test_who_leaves_is_waited_for_no_longer_and_is_unknown_from_then_on(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        credential = make_secret()
        await live.c.enrol(live.tokens.pop(), credential)
        (other,) = await live.enrol()
        one = live.c.identify(credential)
        await live.answer(other, 4, 0, 0)
        for _ in range(2):
            await live.c.leave(live.c.identify(credential, or_left=True))
        await live.settle()
        assert live.params() == [4.0, 0.0, 0.0] and one.has_left
        with pytest.raises(RefusedError, match="no client has this credential"):
            live.c.identify(credential)

    play(tmp_path / "f", story, min_clients=2)


def test_a_cohort_is_drawn_anew_for_each_round_from_those_awake(tmp_path: Path) -> None:
    async def story(live: Live) -> set[frozenset[int]]:
        clients = {client.id: client for client in await live.enrol(6)}
        asked = set()
        for _ in range(12):
            asked.add(frozenset(live.c.rounds.asked))
            assert len(live.c.rounds.asked) == 2
            for client in sorted(live.c.rounds.asked):
                await live.answer(clients[client])
            await live.settle()
        return asked

    assert len(play(tmp_path / "f", story, min_clients=6, cohort=2)) > 3  # 15 pairs, 12 rounds


def test_a_ranker_that_would_not_be_finite_is_never_made(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        for client in (one, two):
            await live.answer(client, 3e29, 0, 0)
        await live.settle()
        for client in (one, two):
            await live.answer(client, 3e29, 0, 0)
        await live.settle()
        assert live.params()[0] == pytest.approx(3e38) and live.c.rounds.number == 3
        assert live.c.standing(one).last == LastAnswer(2, Outcome.abandoned)

    play(tmp_path / "f", story, agreement=agree(server_rate=1e9), min_clients=2, max_norm=1e30)


def test_after_trouble_with_the_disk_the_federation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushrank.live.server.watches._TRY_AGAIN_S", 0.01)

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        full = [True]

        @sa.event.listens_for(live.engine, "begin")
        def make_small(connection: sa.Connection) -> None:
            connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if full[0] else 'OFF'}")

        assert await refusal(live.answer(one, 1, 0, 0)) is Reason.disk
        assert live.c.is_in_trouble and await refusal(live.answer(two)) is Reason.disk
        await asyncio.sleep(0.1)
        assert live.c.is_in_trouble
        full[0] = False
        while live.c.is_in_trouble:
            await asyncio.sleep(0.01)
        assert await live.answer(one, 1, 0, 0) is False
        full[0] = True
        assert await refusal(live.answer(two, 0, 1, 0)) is Reason.disk
        full[0] = False
        while live.c.is_in_trouble:
            await asyncio.sleep(0.01)
        await live.answer(two, 0, 1, 0)
        await live.settle()
        assert live.params() == [0.5, 0.5, 0.0] and live.c.standing(one).accepted_updates == 1

    play(tmp_path / "f", story, min_clients=2)


def test_a_client_that_never_answers_does_not_cost_the_others_every_deadline(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        clients = await live.enrol(3)
        for _ in range(3):
            for client in clients[:2]:
                await live.answer(client)
            await live.move(60.0)
            for client in clients:
                live.c.rounds.see(client.id, live.now)
        assert live.c.rounds.number == 4
        for round in range(4, 8):
            for client in clients[:2]:
                await live.answer(client, round=round)
            await live.settle()
        assert live.c.rounds.number == 8 and live.c.gauges()["clients_not_waited_for"] == 1
        await live.answer(clients[2])
        assert live.c.gauges()["clients_not_waited_for"] == 0

    play(tmp_path / "f", story, min_clients=3)


def test_the_news_say_when_a_round_of_fast_clients_closes(tmp_path: Path) -> None:
    async def story(live: Live) -> list[float | None]:
        clients, said = await live.enrol(10), []
        for round in range(1, 4):
            news = await live.c.wait_for_round(clients[0], after=round - 1, wait_s=0)
            assert news is not None
            said.append(news.closes_in_s)
            live.now += 3.0
            for client in clients:
                await live.answer(client)
            await live.settle()
        return said

    assert play(tmp_path / "f", story, min_clients=10) == [60.0, 60.0, 9.0]
    assert play(tmp_path / "g", story, min_clients=10, least_deadline_s=20) == [60.0, 60.0, 20.0]


def test_a_request_under_way_while_memory_is_made_anew_still_counts_for_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushrank.live.server.watches._TRY_AGAIN_S", 0.01)

    async def story(live: Live) -> None:
        credential = make_secret()
        await live.c.enrol(live.tokens.pop(), credential)
        await live.enrol(1)
        held = live.c.identify(credential)  # by a request whose body is still on its way
        is_full = [True]

        @sa.event.listens_for(live.engine, "begin")
        def make_small(connection: sa.Connection) -> None:
            connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if is_full[0] else 'OFF'}")

        assert await refusal(live.answer(held)) is Reason.disk
        is_full[0] = False
        while live.c.is_in_trouble:
            await asyncio.sleep(0.01)
        await live.answer(held)
        standing = live.c.standing(live.c.identify(credential))
        assert standing.accepted_updates == 1 and standing.last == LastAnswer(1, Outcome.open)
        await live.c.leave(held)
        with pytest.raises(RefusedError):
            live.c.identify(credential)

    play(tmp_path / "f", story, min_clients=2)
