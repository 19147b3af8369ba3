"""A federation's file restored from an older copy: recognised at once, and nothing goes on until somebody decides."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from asking_people import Person, dense, enrol_people
from live_processes import create_federation, finish, run, serving, start_person

from hushrank.live.server import store
from hushrank.live.server.past import Past, make_receipt, read_receipt
from hushrank.live.server.rounds import RoundRules, Rounds
from hushrank.live.wire import protocol
from hushrank.live.wire.news import Outcome

KEY = b"k" * 32


def test_a_receipt_is_known_again_and_cannot_be_made_up() -> None:
    receipt = make_receipt(KEY, "00ff", 39)
    assert read_receipt(KEY, receipt) == ("00ff", 39) and len(receipt) < 100
    others = ("", "-", "00ff-39", receipt.replace("39", "40"), receipt.replace("00ff", "00fe"), receipt + "0", "a-b-c")
    assert [read_receipt(KEY, other) for other in others] == [None] * len(others)
    assert read_receipt(b"j" * 32, receipt) is None


@pytest.mark.parametrize(
    ("start", "round", "is_missing"),
    [
        ("first", 5, False),  # when the second start began, round 5 was the newest
        ("first", 6, True),  # the first start told of a sixth, and the file has it from the second
        ("second", 8, False),
        ("second", 9, True),  # nobody can have heard of it yet
        ("third", 1, True),  # a start that the file knows nothing of
    ],
)
def test_a_receipt_says_whether_the_file_lacks_a_round(start: str, round: int, is_missing: bool) -> None:
    past = Past({"first": 0, "second": 5}, 0, None)
    assert past.lacks(start, round, newest=8) is is_missing
    assert not Past(past.starts, 9, None).lacks(start, round, newest=8)  # all were given up
    assert past.compare((start, round), newest=8).missing == (round if is_missing else None)


def test_only_somebody_decides() -> None:
    """Not a disk that failed to note what is missing."""
    behind = Past({"first": 0}, 0, 7)
    assert not Past({"first": 0}, 0, None).decides(behind) and not Past({"first": 0}, 6, None).decides(behind)
    assert Past({"first": 0}, 7, None).decides(behind) and not Past({"first": 0}, 7, 9).decides(behind)


def close_rounds(people: list[Person], numbers: range) -> str:
    """Everybody answers these rounds; the newest receipt."""
    receipt = ""
    for number in numbers:
        news = people[0].poll(after=number - 1)
        assert news["round"] == number
        receipt = news["receipt"]
        for person in people:
            assert person.answer(number, dense(0.01 * number, 0, 0)).status == 200
    return receipt


def ask(person: Person, receipt: str, after: int = 0) -> Any:
    return person.ask("GET", f"{protocol.ROUND}?after={after}&wait=0", Hushrank_Receipt=receipt)


def restore_old_file(home: Path, *, copied: int, newest: int) -> tuple[list[Person], str]:
    """A federation after `newest` rounds whose file is that of `copied`; its two clients, and their receipt."""
    create_federation(home, "--features", 3, min_clients=2)
    with serving(home) as server:
        people = enrol_people(server.url, home, 2)
        close_rounds(people, range(1, copied + 1))
    backup = home.with_name("backup")
    shutil.copytree(home, backup)
    with serving(home) as server:
        people = [Person(server.url, person.digest, person.credential) for person in people]
        receipt = close_rounds(people, range(copied + 1, newest + 1))
        assert ask(people[0], receipt, after=newest).status in (200, 204)  # nothing is wrong yet
    shutil.rmtree(home)
    backup.rename(home)
    return people, receipt


def test_a_restored_file_is_recognised_within_one_poll_and_the_operator_decides(tmp_path: Path) -> None:
    home = tmp_path / "f"
    people, receipt = restore_old_file(home, copied=2, newest=7)
    with serving(home) as server:
        people = [Person(server.url, person.digest, person.credential) for person in people]
        assert ask(people[1], "0-7-0", after=7).status == 204  # who makes a receipt up stops nobody
        stranger = Person(server.url)  # as one who enrolled after the copy was made
        assert stranger.ask("GET", protocol.ME, Hushrank_Receipt="0-7-0").reason == "credential"
        refused = ask(people[0], receipt, after=7)
        assert (refused.status, refused.reason) == (503, "behind") and "round 7" in refused.json["detail"]
        assert stranger.ask("GET", protocol.ME, Hushrank_Receipt=receipt).reason == "behind"
        health = people[0].ask("GET", protocol.HEALTH)
        assert (health.status, health.reason) == (503, "behind")
        assert people[1].answer(3, dense(1, 0, 0)).reason == "behind"  # round 3 is another one now
        assert "clients have seen round 7, which this file, whose newest is 3, lacks" in run("server", "recover", home)
        assert "missing     rounds up to 7" in run("server", "status", home)
    with serving(home) as server:  # a restart decides nothing
        people = [Person(server.url, person.digest, person.credential) for person in people]
        assert people[1].ask("GET", protocol.HEALTH).reason == "behind"
        assert "the next one is 8" in run("server", "recover", home, "--skip")
        while people[0].ask("GET", protocol.HEALTH).status != 200:
            time.sleep(0.1)
            people[1].ask("GET", protocol.ME)  # who asks all the time does not put the decision off
        while (news := people[0].poll(after=7)) is None:
            people[1].poll(after=7, wait=0)
        assert news["round"] == 8 and ask(people[0], receipt, after=8).status == 204
        assert people[1].answer(8, dense(0, 0, 1)).status == people[0].answer(8, dense(0, 0, 1)).status == 200
        assert server.export().tolist() == pytest.approx([0.03, 0, 1.0])
    said = (tmp_path / "server.log").read_text(encoding="utf-8")
    assert "the missing rounds are given up; the next one is 8" in said
    with store.open_store(home / store.FILE).begin() as connection:
        found = store.restore_rounds(connection)
        kept = connection.exec_driver_sql("SELECT COUNT(*) FROM updates WHERE body IS NOT NULL").scalar_one()
    assert {3, 7} <= found.abandoned and found.n_closed == 3 and kept == 0


def test_a_round_that_was_held_on_another_copy_is_missed_in_the_newer_file(tmp_path: Path) -> None:
    """Nobody who met the old copy could show that it was old, and what it acknowledged is not in the newer file."""
    home = tmp_path / "f"
    create_federation(home, "--features", 3, min_clients=2)
    with serving(home) as server:
        people = enrol_people(server.url, home, 2)
    shutil.copytree(home, tmp_path / "old")
    with serving(home) as server:
        people = [Person(server.url, person.digest, person.credential) for person in people]
        close_rounds(people, range(1, 4))
    home.rename(tmp_path / "newer")
    (tmp_path / "old").rename(home)
    with serving(home) as server:
        people = [Person(server.url, person.digest, person.credential) for person in people]
        elsewhere = close_rounds(people, range(1, 2))
    shutil.rmtree(home)
    (tmp_path / "newer").rename(home)
    with serving(home) as server:
        people = [Person(server.url, person.digest, person.credential) for person in people]
        assert ask(people[0], elsewhere, after=1).reason == "behind"
        assert "seen round 1, which this file, whose newest is 4, lacks" in run("server", "recover", home)
        assert "the next one is 5" in run("server", "recover", home, "--skip")


def test_an_answer_to_a_lost_round_is_kept_by_its_client(tmp_path: Path) -> None:
    """A newer copy may count it: the server must not say that there never was such a round."""
    home = tmp_path / "f"
    people, receipt = restore_old_file(home, copied=1, newest=4)
    with serving(home) as server:
        late = Person(server.url, people[0].digest, people[0].credential)
        assert late.answer(4, dense(0.04, 0, 0), Hushrank_Receipt=receipt).reason == "behind"


def test_nothing_to_decide_is_said_so(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3)
    assert "no client has shown a round that this file lacks" in run("server", "recover", tmp_path / "f")
    with pytest.raises(AssertionError, match="there is nothing to decide"):
        run("server", "recover", tmp_path / "f", "--skip")


@pytest.mark.slow
def test_a_client_that_is_ahead_says_so_and_goes_on_after_the_decision(tmp_path: Path) -> None:
    """The client of the command line, which keeps its receipt in its home."""
    home = tmp_path / "f"
    create_federation(home, "--features", 8, rounds=4)
    with serving(home) as server:
        finish([start_person(server, tmp_path / "home", 0, "--rounds", "2")])
    # As if restored: the file from after the client's enrolment, without the rounds
    with store.open_store(home / store.FILE).begin() as connection:
        for table in ("rounds", "updates", "asked", "starts"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        connection.exec_driver_sql("DELETE FROM rankers WHERE round > 0")
    with serving(home) as server:
        client = start_person(server, tmp_path / "home", 0, "--rounds", "1")
        while "No round opens until you decide" not in (tmp_path / "server.log").read_text(encoding="utf-8"):
            assert client.poll() is None, client.communicate()
        run("server", "recover", home, "--skip")
        finish([client])


def test_rounds_that_close_on_noise_alone_come_ever_less_often() -> None:
    """With noise at the server a round closes even where nobody answers, so that nobody's silence shows."""
    rounds = Rounds(RoundRules(quorum=0, deadline_s=10.0))
    rounds.join(1, 0.0)
    now, pauses = 0.0, []
    for _ in range(8):
        rounds.see(1, now)
        assert rounds.may_open(now)
        rounds.open([1], now)
        now += 10.0
        rounds.see(1, now)
        outcome = rounds.decide(now)
        assert outcome is Outcome.closed
        follows = rounds.may_follow(outcome, now)
        rounds.end(outcome, now)
        pauses.append(rounds.opens_at - now)
        assert follows == (pauses[-1] == 0)
        now = rounds.opens_at
    assert pauses == [0, 0, 10, 20, 40, 80, 160, 160]
    rounds.see(1, now)
    rounds.open([1], now)
    rounds.reserve(1, rounds.number, now)
    rounds.confirm(1)
    assert rounds.decide(now) is Outcome.closed and rounds.may_follow(Outcome.closed, now)
    rounds.end(Outcome.closed, now)
    assert rounds.opens_at == now and rounds.n_silent == 0


def test_who_leaves_does_not_wait_for_the_operators_decision(tmp_path: Path) -> None:
    home = tmp_path / "f"
    people, receipt = restore_old_file(home, copied=1, newest=4)
    with serving(home) as server:
        leaving, staying = (Person(server.url, person.digest, person.credential) for person in people)
        assert leaving.ask("POST", protocol.LEAVE, Hushrank_Receipt=receipt).status == 200
        assert staying.ask("GET", protocol.HEALTH).reason == "behind"  # its receipt was read all the same
        assert staying.ask("GET", protocol.ME, Hushrank_Receipt=receipt).reason == "behind"
