"""Clients that want to be forgotten, in a federation without a network: told, waited for, refused, the same after a
restart."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import Live, agree, play
from live_processes import create_federation, run

from hushrank.live.server import store
from hushrank.live.server.clients import KnownClient
from hushrank.live.server.config import make_config
from hushrank.live.server.creation import create_federation as create
from hushrank.live.server.erasures import forget_client, read_erasure
from hushrank.live.server.forgetting import ForgetTerms, LiveForgetting
from hushrank.live.server.rounds import RoundState
from hushrank.live.server.status import read_clients, read_status
from hushrank.live.wire.news import ForgetNews, ForgettingState, Forgotten
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.rankers.named import unpack_ranker
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.runs.forget_methods import Forgetting, RunMemory, plan_forgetting
from hushrank.runs.kept import no_lengths

KEEPING = agree(keep_every=2)  # rounds 1, 3, ... are replayed, with 2 of 4 searches


async def teach(live: Live, clients: list[KnownClient], n_rounds: int) -> None:
    """So many rounds, in which client i moves parameter i."""
    for _ in range(n_rounds):
        for i, client in enumerate(clients):
            await live.answer(client, *(float(i == j) for j in range(3)))
        await live.settle()


async def news_of(live: Live, client: KnownClient) -> ForgetNews | None:
    news = await live.c.wait_for_round(client, after=0, wait_s=0)
    assert news is not None
    return news.forget


def forgotten(live: Live, pseudonym: str) -> Forgotten:
    found = read_erasure(live.directory, pseudonym)
    assert found is not None
    return found


def candidate(live: Live) -> list[float]:
    return [float(x) for x in unpack_ranker(live.c.candidate(live.c.rounds.number).content, name="it")[1]]


async def refused_with(live: Live, client: KnownClient) -> str:
    before = live.c.rounds.members.copy()
    with pytest.raises(RefusedError) as refused:
        await live.c.forget(client)
    assert refused.value.reason is Reason.forget and live.c.rounds.members == before and not client.has_left
    return str(refused.value)


def test_rounds_replay_one_by_one_while_the_old_ranker_is_served(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two, three = await live.enrol(3)
        await teach(live, [one, two, three], 2)
        pseudonym = await live.c.forget(three)
        assert await live.c.forget(three) == pseudonym and await news_of(live, one) is None
        await teach(live, [one, two], 1)  # round 3 was open
        old = live.params()
        assert live.c.rounds.number == 4 and await news_of(live, one) == ForgetNews(1, 2, 1, 2)
        assert live.params() == old and candidate(live) == [0.0, 0.0, 0.0]
        with pytest.raises(RefusedError, match="there is no ranker of this round"):
            live.c.published(4)  # so that a client which does not know of forgetting leaves the round out
        await live.answer(one, 0.5, 0, 0)
        await live.answer(two, 0.5, 1, 0)
        await live.settle()
        assert await news_of(live, two) == ForgetNews(2, 2, 3, 2)
        assert live.params() == old and candidate(live) == [0.5, 0.5, 0.0]
        assert forgotten(live, pseudonym) == Forgotten(ForgettingState.running, 1, 2)
        assert live.c.gauges()["forgetting_step"] == 1
        await live.answer(one, 1, 0, 0)
        await live.answer(two, 1, 0, 0)
        await live.settle()
        assert live.params() == [1.5, 0.5, 0.0] and forgotten(live, pseudonym).state is ForgettingState.done
        assert live.c.rounds.state is RoundState.idle and live.c.rounds.n_closed == 3  # a round needs 3 clients
        await live.enrol(1)
        assert await news_of(live, one) is None and live.c.rounds.number == 6
        with pytest.raises(RefusedError, match="no round of this number forgets now"):
            live.c.candidate(6)

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=3)


def test_who_has_nothing_says_so_and_a_step_without_answers_is_lost(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two, three = await live.enrol(3)
        await teach(live, [one, two, three], 2)
        pseudonym = await live.c.forget(three)
        await teach(live, [one, two], 1)
        live.c.decline(one, 4)
        live.c.decline(one, 4)
        live.c.decline(two, 4)
        await live.settle()
        assert live.c.rounds.number == 5 and candidate(live) == [0.0, 0.0, 0.0]
        with pytest.raises(RefusedError, match="no round of this number forgets now"):
            live.c.decline(one, 4)
        live.c.decline(two, 5)
        await live.answer(one, 0, 0, 1)
        await live.settle()
        assert live.params() == [0.0, 0.0, 1.0]
        record: Any = forgotten(live, pseudonym).record
        assert record["verification"]["steps_lost"] == 1 and record["verification"]["answers_per_step"] == 1.0
        await live.enrol(1)
        with pytest.raises(RefusedError, match="no round of this number forgets now"):
            live.c.decline(one, 6)

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=3)


def test_if_nobody_answers_any_step_the_old_ranker_stays_and_the_wish_may_be_repeated(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await teach(live, [one, two], 1)
        pseudonym = await live.c.forget(two)
        await teach(live, [one], 1)
        old = live.params()
        live.c.decline(one, 3)
        await live.settle()
        failed = forgotten(live, pseudonym)
        assert failed.state is ForgettingState.failed and "none of its steps had enough answers" in str(failed.detail)
        assert live.params() == old and live.c.rounds.state is RoundState.idle
        assert await live.c.forget(two) == pseudonym
        assert forgotten(live, pseudonym).state is ForgettingState.waiting

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=2)


def test_a_sleeping_client_is_waited_for_until_patience_ends_and_not_at_every_step(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two, three = await live.enrol(3)
        await teach(live, [one, two, three], 2)
        await live.c.forget(three)
        await teach(live, [one, two], 1)
        await live.answer(one, 1, 0, 0)
        await live.move(299)  # two sleeps since long ago, and its round's 60 seconds are over
        assert live.c.rounds.number == 4 and await news_of(live, two) == ForgetNews(1, 2, 1, 2)
        await live.move(1)
        live.c.rounds.see(one.id, live.now)
        await live.move(0)
        assert live.c.rounds.number == 5 and candidate(live) == [1.0, 0.0, 0.0]
        await live.answer(one, 0, 1, 0)
        await live.move(59)
        assert live.c.rounds.number == 5
        await live.move(1)
        assert live.params() == [1.0, 1.0, 0.0]

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=3, forget_patience_s=300.0)


def test_a_restart_goes_on_with_the_open_step_and_its_answers(tmp_path: Path) -> None:
    wishes = list[str]()

    async def begin(live: Live) -> None:
        one, two, three = await live.enrol(3)
        await teach(live, [one, two, three], 2)
        wishes.append(await live.c.forget(three))
        await teach(live, [one, two], 1)
        for client in (one, two):
            await live.answer(client, 1, 0, 0)
        await live.settle()
        await live.answer(one, 0, 1, 0)  # of step 2

    async def go_on(live: Live) -> None:
        assert live.c.rounds.number == 5 and live.c.rounds.answered == {1} and live.c.rounds.is_replaying
        assert candidate(live) == [1.0, 0.0, 0.0]
        (two,) = [each for each in live.c._clients.values() if each.id == 2]
        await live.answer(two, 0, 1, 0)
        await live.settle()
        assert live.params() == [1.0, 1.0, 0.0] and forgotten(live, wishes[0]).state is ForgettingState.done

    play(tmp_path / "f", begin, agreement=KEEPING, min_clients=3)
    play(tmp_path / "f", go_on, min_clients=3)


def test_who_comes_later_is_forgotten_in_a_forgetting_of_its_own(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two, three = await live.enrol(3)
        await teach(live, [one, two, three], 1)
        first = await live.c.forget(three)
        await teach(live, [one, two], 1)
        assert live.c.rounds.is_replaying
        second = await live.c.forget(two)
        assert forgotten(live, second).state is ForgettingState.waiting
        await live.answer(one, 1, 0, 0)
        await live.settle()
        assert forgotten(live, first).state is ForgettingState.done and live.params() == [1.0, 0.0, 0.0]
        assert live.c.rounds.is_replaying and forgotten(live, second) == Forgotten(ForgettingState.running, 0, 1)
        await live.answer(one, 0, 0, 1)
        await live.settle()
        assert live.params() == [0.0, 0.0, 1.0] and forgotten(live, second).state is ForgettingState.done

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=3)


def test_what_cannot_be_forgotten_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        (one,) = await live.enrol(1)
        assert "never took part: there is nothing to forget" in await refused_with(live, one)
        live.now += 1
        await live.answer(one, 1, 0, 0)
        assert "0 other clients remain, and forgetting needs 1" in await refused_with(live, one)
        (two,) = await live.enrol(1)
        await live.settle()
        assert "never took part" in await refused_with(live, two)
        await live.c.forget(one)

    play(tmp_path / "f", story, agreement=KEEPING)
    with pytest.raises(ValueError, match="no client of this federation is called '9': hushrank server clients lists"):
        forget_client(tmp_path / "f", "9")
    (left, stayed) = read_clients(tmp_path / "f")
    assert forget_client(tmp_path / "f", "1") == forget_client(tmp_path / "f", left["pseudonym"]) == left["pseudonym"]
    with pytest.raises(ValueError, match="never took part"):
        forget_client(tmp_path / "f", stayed["pseudonym"])


def test_rounds_that_no_budget_is_for_are_refused(tmp_path: Path) -> None:
    sound = agree(privacy="sound", noise_multiplier=1.0, clip_norm=1.0, n_clients=2, rounds=5, keep_every=1)

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        for _ in range(3):
            await live.answer(one, 0, 0, 0)
            await live.answer(two, 0, 0, 0)
            await live.settle()
        said = await refused_with(live, two)
        assert "forgetting takes 3 rounds, but only 2 are left of the 5 that the clients' privacy budgets" in said

    play(tmp_path / "f", story, agreement=sound, min_clients=2, quorum=1)


def test_rounds_that_forget_are_of_the_agreed_number_where_clients_pay_for_them(tmp_path: Path) -> None:
    sound = agree(privacy="sound", noise_multiplier=1.0, clip_norm=1.0, n_clients=2, rounds=4, keep_every=2)

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await live.answer(one, 0, 0, 0)
        await live.answer(two, 0, 0, 0)
        await live.settle()
        await live.c.forget(two)
        for number in (2, 3):  # learns, forgets
            assert live.c.rounds.number == number and live.c.rounds.is_replaying == (number == 3)
            await live.answer(one, 0, 0, 0)
            await live.settle()
        (three,) = await live.enrol(1)
        for client in (one, three):
            await live.answer(client, 0, 0, 0)
        await live.settle()
        assert live.c.rounds.state is RoundState.finished

    play(tmp_path / "f", story, agreement=sound, min_clients=2, quorum=1)
    status = read_status(tmp_path / "f")
    assert (status["state"], status["rounds_closed"], status["rounds_replayed"]) == ("finished", 3, 1)
    with store.open_store(tmp_path / "f" / store.FILE).begin() as connection:
        assert len(store.read_spends(connection)) == 4


def test_noise_alone_is_no_ranker_without_the_leaver(tmp_path: Path) -> None:
    sound = agree(privacy="sound", noise_multiplier=1.0, clip_norm=1.0, n_clients=2, rounds=9, keep_every=2)

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        for client in (one, two):
            await live.answer(client, 0, 0, 0)
        await live.settle()
        pseudonym = await live.c.forget(two)
        await live.answer(one, 0, 0, 0)
        await live.settle()
        old = live.params()
        await live.move(300)  # nobody answers: with a quorum of 0 the round closes all the same
        assert forgotten(live, pseudonym).state is ForgettingState.failed and live.params() == old

    play(tmp_path / "f", story, agreement=sound, min_clients=2, quorum=0, forget_patience_s=0.0)


def test_only_updates_can_be_replayed(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        (one,) = await live.enrol(1)
        assert "this federation cannot forget a client" in await refused_with(live, one)

    play(tmp_path / "f", story, agreement=agree(method="foltr-es", ranker="linear"))


def test_a_running_server_hears_of_the_operators_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushrank.live.server.watches._LOOK_AGAIN_S", 0.01)

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await teach(live, [one, two], 1)
        await asyncio.to_thread(forget_client, live.directory, "2")
        while not two.has_left:
            await asyncio.sleep(0.01)
        assert ("forget", {"clients": 1}) in live.said
        await live.answer(one, 1, 0, 0)
        await live.settle()
        assert live.c.rounds.is_replaying and live.c.rounds.asked == {one.id}

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=2)


def test_traces_of_who_was_forgotten_are_wiped_even_where_updates_are_kept(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await teach(live, [one, two], 1)
        await live.c.forget(two)
        await teach(live, [one], 1)
        await live.answer(one, 1, 0, 0)
        await live.settle()

    play(tmp_path / "f", story, agreement=KEEPING, min_clients=2, keep_updates=True)
    with closing(sqlite3.connect(tmp_path / "f" / store.FILE)) as file:
        assert file.execute("SELECT DISTINCT client FROM updates").fetchall() == [(1,)]
        assert file.execute("SELECT round FROM rankers").fetchall() == [(0,), (3,)]
        assert file.execute("SELECT params, memory FROM forgettings").fetchall() == [(None, None)]


def test_a_federation_of_the_schema_before_forgets(tmp_path: Path) -> None:
    create(tmp_path / "f", KEEPING, make_config({"min_clients": 2}), n_tokens=20)
    with closing(sqlite3.connect(tmp_path / "f" / store.FILE)) as file:
        for statement in (
            "DROP TABLE wishes",
            "DROP TABLE forgettings",
            "ALTER TABLE rounds DROP COLUMN stands_for",
            "ALTER TABLE updates DROP COLUMN is_filled",
            "UPDATE schema_version SET version = 5",
        ):
            file.execute(statement)
        file.commit()
    test_traces_of_who_was_forgotten_are_wiped_even_where_updates_are_kept(tmp_path)


def test_commands_say_how_far_it_is(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await teach(live, [one, two], 1)

    create_federation(tmp_path / "f", "--features", 3, "--min-clients", 2, keep_every=2)
    play(tmp_path / "f", story, min_clients=2)
    said = run("server", "forget", "2", tmp_path / "f")
    assert said.startswith("client 2 (") and said.endswith("has left; forgetting it: waiting\n")
    assert json.loads(run("server", "forget", "2", tmp_path / "f", "--json"))["state"] == "waiting"
    assert "forgetting  1 clients wait" in run("server", "status", tmp_path / "f")


def test_a_finished_federation_says_whom_it_needs_again(tmp_path: Path) -> None:
    async def learn(live: Live) -> None:
        await teach(live, await live.enrol(3), 1)

    async def come_back(live: Live) -> None:
        (one,) = (each for each in live.c._clients.values() if each.id == 1)
        assert read_status(live.directory)["call_back"]["clients"] == [1, 2]
        live.c.rounds.see(one.id, live.now)
        await live.move(0)
        await live.answer(one, 0, 0, 1)
        status = read_status(live.directory)
        assert status["call_back"]["clients"] == status["forgetting"]["awaited"] == [2]
        await live.move(100)  # the limit for who sleeps
        assert live.params() == [0.0, 0.0, 1.0]
        status = read_status(live.directory)
        assert (status["state"], status["call_back"], status["forgetting"]["awaited"]) == ("finished", None, [])

    create(tmp_path / "f", agree(keep_every=2, rounds=1), make_config({"forget_patience_s": 100.0}), n_tokens=3)
    play(tmp_path / "f", learn, min_clients=3)
    done = json.loads(run("server", "forget", "3", tmp_path / "f", "--json"))
    assert done["call_back"] == {"clients": [1, 2], "at_least": 1, "patience_s": 100.0}
    said = run("server", "status", tmp_path / "f")
    assert "round       1, idle" in said and "start each again on its device with hushrank client" in said
    assert "waits for   clients 1, 2." in said and "the server waits 100 s" in said
    play(tmp_path / "f", come_back, min_clients=3, forget_patience_s=100.0)


def test_nobody_hears_of_the_end_while_somebody_is_to_be_forgotten(tmp_path: Path) -> None:
    """Clients that are started again may call before the server has looked for the operator's command."""

    async def story(live: Live) -> None:
        one, two = await live.enrol(2)
        await teach(live, [one, two], 1)
        assert live.c.rounds.state is RoundState.finished
        await asyncio.to_thread(forget_client, live.directory, "2")
        news = await live.c.wait_for_round(one, after=1, wait_s=10)
        assert news is not None and news.forget == ForgetNews(1, 1, 1, 2)
        assert ("forget", {"clients": 1, "ended": 1}) in live.said

    play(tmp_path / "f", story, agreement=agree(keep_every=2, rounds=1), min_clients=2)


def test_a_fading_rate_falls_in_the_steps_as_in_the_rounds_and_then_goes_on(tmp_path: Path) -> None:
    """Six rounds are agreed, so three are replayed: rates 1, 2/3, 1/3. After three rounds the next has 1 - 3/6."""

    async def story(live: Live) -> None:
        one, two, three = await live.enrol(3)
        await teach(live, [one, two, three], 2)
        await live.c.forget(three)
        await teach(live, [one, two], 1)
        for taught in ((1, 0, 0), (0, 1, 0)):
            for client in (one, two):
                await live.answer(client, *taught)
            await live.settle()
        assert live.params() == pytest.approx([1, 2 / 3, 0])
        (four,) = await live.enrol(1)
        for client in (one, two, four):
            await live.answer(client, 0, 0, 1)
        await live.settle()
        assert live.params() == pytest.approx([1, 2 / 3, 1 / 2])

    play(tmp_path / "f", story, agreement=agree(keep_every=2, server_fade=True, rounds=6), min_clients=3)


@pytest.mark.parametrize(("rounds", "every"), [(7, 2), (10, 10), (12, 1), (40, 9)])
@pytest.mark.parametrize("method", ["eraser", "fresh"])
def test_the_servers_step_in_a_forgetting_is_the_simulators(method: str, rounds: int, every: int) -> None:
    keys = {"server_fade": True, "rounds": rounds, "server_rate": 3.0, "keep_every": every}
    setting = resolve(change_recipe(NAMED["fpdgd"], {"data": "tiny", "folds": [1], "n_clients": 3, **keys}))
    memory = RunMemory(np.zeros((1, 1, 1, setting.method.n_params)), no_lengths(setting))
    lab = plan_forgetting(setting, Forgetting((0,), method), memory)
    agreement, replayed = agree(**keys), tuple(range(1, rounds + 1, every))
    live = LiveForgetting(1, ForgetTerms(method, every, 1), replayed, 0, np.zeros(3), {})
    assert live.server_step(agreement) == lab.method.server_step
