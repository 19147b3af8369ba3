"""A client leaves and is forgotten: real servers and clients, beside a replay of their stores written plainly."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking_people import Person
from live_processes import (
    HUSHRANK,
    Server,
    create_federation,
    find_port,
    finish,
    run,
    serving,
    start_person,
    start_server,
)
from plain_forgetting import assert_same, replay_plainly
from seeds import pick_seed

from hushrank.live.device.account import LEDGER
from hushrank.live.device.impressions import PERSONAL
from hushrank.live.device.service import RECORD
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.server.erasures import read_erasure
from hushrank.live.server.replaying import digest_params
from hushrank.live.server.status import read_clients, read_status
from hushrank.live.wire import protocol
from hushrank.live.wire.agreement import parse_agreement
from hushrank.live.wire.credentials import hash_secret, name_client
from hushrank.privacy.ledger import read_ledger
from hushrank.rankers.named import unpack_ranker
from hushrank.types import Array
from hushrank.unlearning.record import verify_record

ROUNDS, EVERY, SEARCHES = 7, 2, 3  # rounds 1, 3, 5 and 7 are replayed, with 3 of 5 searches
N_STEPS = 45  # Why: more than two for each kill, and pretend people keep 100 rounds, of training and replays together


def train(place: Path, *, n_clients: int = 10, **chosen: Any) -> int:
    """A federation that is finished; the port of its server."""
    words = ("--features", 8, "--simulate", "--seed", 5, "--tokens", n_clients)
    agreed = {"rounds": ROUNDS, "keep_every": EVERY, "interactions": 5, "min_clients": n_clients, **chosen}
    create_federation(place / "f", *words, **agreed)
    port = find_port()
    with serving(place / "f", port=port) as server:
        finish([start_crowd(server, 0, n_clients)])
    return port


def start_crowd(server: Server, first: int, n: int, *words: str) -> subprocess.Popen[bytes]:
    return start_person(server, server.directory.parent / "people", first, "--users", str(n), *words)


def home(place: Path, id: int) -> Path:
    return place / "people" / str(id)


def stayed(place: Path, leavers: set[int], n_clients: int = 10) -> list[Path]:
    """In the order of the server's numbers."""
    return [home(place, id) for id in range(n_clients) if id not in leavers]


def membership(home: Path) -> tuple[str, str]:
    """A client's credential, and its pseudonym."""
    with closing(sqlite3.connect(home / STORE)) as file:
        credential, agreed = file.execute("SELECT credential, agreement FROM membership").fetchone()
    return credential, name_client(hash_secret(credential), parse_agreement(json.loads(agreed)).digest)


def fetch(server: Server, credential_of: Path, path: str = protocol.RANKER) -> Array:
    """[n_params] as a client gets it."""
    reply = Person(server.url, credential=membership(credential_of)[0]).ask("GET", path)
    assert reply.status == 200, reply
    return unpack_ranker(reply.content, name="it")[1]


def wait_until(is_so: Callable[[], bool]) -> None:
    """Without end: whoever waits in vain is stopped by the test's own limit."""
    while not is_so():
        time.sleep(0.05)


def step_of(place: Path) -> int | None:
    found = read_status(place / "f")["forgetting"]
    return None if found is None else found["step"]


def test_the_new_ranker_is_the_replay_of_those_who_stayed_and_the_record_says_so(tmp_path: Path) -> None:
    with serving(tmp_path / "f", port=train(tmp_path)) as server:
        old = server.export()
        run("client", "leave", "--forget", "--home", home(tmp_path, 3))
        others = start_crowd(server, 4, 6), start_crowd(server, 0, 2)  # person 2 sleeps, and is waited for
        wait_until(lambda: read_status(tmp_path / "f")["answers"] == 8)
        assert step_of(tmp_path) == 0
        np.testing.assert_array_equal(fetch(server, home(tmp_path, 0)), old)
        late = start_crowd(server, 2, 1, "--rounds", "2")
        finish([late])
        wait_until(lambda: step_of(tmp_path) == 2)
        candidate = fetch(server, home(tmp_path, 0), f"{protocol.CANDIDATE}?round={ROUNDS + 3}")
        assert np.abs(candidate - old).max() > 0.01
        np.testing.assert_array_equal(fetch(server, home(tmp_path, 0)), old)  # until the last step
        np.testing.assert_array_equal(server.export(), old)
        late = start_crowd(server, 2, 1)
        finish([*others, late])
        run("client", "leave", "--forget", "--wait", "--home", home(tmp_path, 3))
        new = server.export()
        np.testing.assert_array_equal(fetch(server, home(tmp_path, 0)), new)
    assert_same(new, replay_plainly(tmp_path / "f", stayed(tmp_path, {3}), every=EVERY, searches=SEARCHES))
    for each in stayed(tmp_path, {3}):
        with Interactions(each / STORE) as kept:
            ranker = kept.newest_ranker()
            assert ranker is not None
            np.testing.assert_array_equal(ranker.params, new)  # what people search with, though no round learns again
    check_record(tmp_path, home(tmp_path, 3) / RECORD, old, new)


def check_record(place: Path, path: Path, old: Array, new: Array) -> None:
    """It verifies, is about these rankers, and holds nothing that the client has."""
    record = verify_record(path).record
    assert (record["from"], record["to"]) == (digest_params(old), digest_params(new))
    assert record["method"] == "eraser" and not record["is_exact"]
    figures = record["verification"]
    assert (figures["steps"], figures["steps_lost"], figures["answers_per_step"]) == (4, 0, 9.0)
    assert figures["lengths_filled"] == 0
    credential, pseudonym = membership(path.parent)
    assert record["clients"] == [pseudonym]
    assert [each["pseudonym"] for each in read_clients(place / "f") if each["has_left"]] == [pseudonym]
    text, secrets = path.read_bytes(), list[bytes]()
    with closing(sqlite3.connect(path.parent / STORE)) as file:
        for name in PERSONAL:
            secrets += [blob for (blob,) in file.execute(f"SELECT {name} FROM impressions")]
        secrets += [body for (body,) in file.execute("SELECT body FROM outbox")]
    assert len(secrets) > 100
    assert not any(blob in text or blob.hex().encode() in text for blob in (*secrets, credential.encode()))
    path.write_bytes(text.replace(b'"steps": 4', b'"steps": 5'))
    with pytest.raises(ValueError, match="the signature does not fit"):
        verify_record(path)


def test_a_server_and_a_client_that_are_killed_go_on_to_the_same_ranker(tmp_path: Path) -> None:
    port = train(tmp_path)
    server = start_server(tmp_path / "f", port=port)
    run("client", "leave", "--forget", "--home", home(tmp_path, 3))
    crowd, one = start_crowd(server, 5, 5), start_crowd(server, 0, 3)
    finish([start_crowd(server, 4, 1, "--rounds", "2")])
    wait_until(lambda: step_of(tmp_path) == 2 and read_status(tmp_path / "f")["answers"] == 8)
    for process in (one, server.process):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with serving(tmp_path / "f", port=port) as server:
        assert step_of(tmp_path) == 2 and read_status(tmp_path / "f")["answers"] == 8
        finish([crowd, start_crowd(server, 0, 3), start_crowd(server, 4, 1)])
        new = server.export()
    found = read_erasure(tmp_path / "f", membership(home(tmp_path, 3))[1])
    assert found is not None and found.record is not None
    assert found.record["verification"]["answers_per_step"] == 9.0
    assert_same(new, replay_plainly(tmp_path / "f", stayed(tmp_path, {3}), every=EVERY, searches=SEARCHES))


@pytest.mark.slow
def test_two_leave_at_once_and_a_third_one_after_them(tmp_path: Path) -> None:
    port = train(tmp_path)
    pseudonyms = [membership(home(tmp_path, id))[1] for id in (2, 7, 5)]
    for pseudonym in pseudonyms[:2]:
        run("server", "forget", pseudonym, tmp_path / "f")  # before the server runs
    with serving(tmp_path / "f", port=port) as server:
        crowd = [start_crowd(server, 0, 2), start_crowd(server, 8, 2), start_crowd(server, 3, 2)]
        wait_until(lambda: read_status(tmp_path / "f")["answers"] == 6)
        third = start_crowd(server, 5, 1)
        wait_until(lambda: read_status(tmp_path / "f")["answers"] == 7)
        run("server", "forget", pseudonyms[2], tmp_path / "f")  # while the server runs
        assert read_status(tmp_path / "f")["forgetting"]["waiting"] == 1
        assert third.wait(60) == 1 and third.stderr is not None
        assert b"does not know this client any more" in third.stderr.read()
        third.stderr.close()
        finish([*crowd, start_crowd(server, 6, 1)])
        new = server.export()
    records = [read_erasure(tmp_path / "f", pseudonym) for pseudonym in pseudonyms]
    assert records[0] == records[1] and records[0] is not None and records[0].record is not None
    assert records[0].record["clients"] == sorted(pseudonyms[:2])
    assert records[2] is not None and records[2].record is not None
    assert records[2].record["clients"] == pseudonyms[2:] and records[2].record["to"] == digest_params(new)
    assert records[2].record["from"] == records[0].record["to"]
    assert_same(new, replay_plainly(tmp_path / "f", stayed(tmp_path, {2, 5, 7}), every=EVERY, searches=SEARCHES))


def test_missing_lengths_and_lists_are_made_up_for_and_counted(tmp_path: Path) -> None:
    """Person 0 has lost the length of round 5, person 1 the lists of round 3, person 2 everything."""
    port = train(tmp_path, n_clients=5)
    forget_by_hand(home(tmp_path, 0), "DELETE FROM lengths WHERE round = 5")
    forget_by_hand(home(tmp_path, 1), "UPDATE impressions SET scores = x'', used_in = 99 WHERE used_in = 3")
    forget_by_hand(home(tmp_path, 2), "UPDATE impressions SET scores = x'', used_in = 99")
    with serving(tmp_path / "f", port=port) as server:
        run("client", "leave", "--forget", "--home", home(tmp_path, 4))
        finish([start_crowd(server, 0, 4)])
        run("client", "leave", "--forget", "--wait", "--home", home(tmp_path, 4))
        new = server.export()
    figures = json.loads((home(tmp_path, 4) / RECORD).read_text())["verification"]
    assert figures["lengths_filled"] == 1 and figures["answers_per_step"] == (3 + 2 + 3 + 3) / 4
    homes = stayed(tmp_path, {4}, n_clients=5)
    assert_same(new, replay_plainly(tmp_path / "f", homes, every=EVERY, searches=SEARCHES))


def forget_by_hand(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / STORE)) as file:
        assert file.execute(statement).rowcount > 0
        file.commit()


def test_clients_of_a_finished_federation_are_called_back_and_end_by_themselves(tmp_path: Path) -> None:
    """Person 2 never comes; the limit for sleepers lets the forgetting end without it."""
    limits = {"forget_patience_s": 10, "deadline_s": 10, "min_clients": 4}
    port = train(tmp_path, n_clients=4, rounds=3, keep_every=10, **limits)
    pseudonym = membership(home(tmp_path, 3))[1]  # Why not by number: who enrols first has the lowest
    with serving(tmp_path / "f", port=port) as server:
        asked = [*HUSHRANK, "server", "forget", pseudonym, str(tmp_path / "f")]
        said = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert "has left; forgetting it: waiting" in said.stdout
        assert re.search(r"It waits for clients \d, \d, \d\. They ended when the federation was finished", said.stderr)
        assert "start each again on its device with hushrank client" in said.stderr
        (crowd,) = finish([start_crowd(server, 0, 2)])
        assert crowd.count("the federation is finished") >= 1
        status = read_status(tmp_path / "f")
    assert (status["state"], status["forgetting"]["done"], status["call_back"]) == ("finished", 1, None)
    found = read_erasure(tmp_path / "f", pseudonym)
    assert found is not None and found.record is not None
    assert found.record["verification"] == {**found.record["verification"], "steps": 1, "answers_per_step": 2.0}


def test_without_kept_lengths_a_fresh_start_takes_longer_steps(tmp_path: Path) -> None:
    port = train(tmp_path, n_clients=4, keep_every="none", forget_every=3, forget_searches=4)
    with serving(tmp_path / "f", port=port) as server:
        run("client", "leave", "--forget", "--home", home(tmp_path, 0))
        finish([start_crowd(server, 1, 3)])
        run("client", "leave", "--forget", "--wait", "--home", home(tmp_path, 0))
        new = server.export()
    record = json.loads((home(tmp_path, 0) / RECORD).read_text())
    assert record["method"] == "fresh" and record["verification"]["steps"] == 3  # rounds 1, 4 and 7
    homes = stayed(tmp_path, {0}, n_clients=4)
    assert_same(new, replay_plainly(tmp_path / "f", homes, every=3, searches=4, calibrates=False, leap=3.0))


def test_where_clients_pay_for_answers_they_pay_for_those_that_forget(tmp_path: Path) -> None:
    """Six rounds are agreed: four learn, two forget, and every ledger is for six."""
    sound = {"privacy": "sound", "epsilon": 8, "n_clients": 4, "rounds": 6, "keep_every": 2}
    opening = {"quorum": 1, "min_clients": 4, "deadline_s": 600, "least_deadline_s": 600}
    create_federation(tmp_path / "f", "--features", 8, "--tokens", 4, **sound, **opening)
    port = find_port()
    with serving(tmp_path / "f", port=port) as server:
        finish([start_crowd(server, 0, 4, "--rounds", "3")])
        run("client", "leave", "--forget", "--home", home(tmp_path, 3))
        finish([start_crowd(server, 0, 3, "--rounds", "3")])
        run("client", "leave", "--forget", "--wait", "--home", home(tmp_path, 3))
    assert verify_record(home(tmp_path, 3) / RECORD).record["verification"]["steps_lost"] == 0
    status = read_status(tmp_path / "f")
    assert status["rounds_replayed"] == 2
    for id in range(3):
        ledger = read_ledger(home(tmp_path, id) / LEDGER)
        assert [entry.round for entry in ledger.entries] == [1, 2, 3, 4, 5, 6]
        assert ledger.epsilon_spent <= ledger.budget.epsilon <= 8.0 + 1e-6


def test_what_cannot_be_is_one_line_for_the_person(tmp_path: Path) -> None:
    def refused(*words: str | Path) -> str:
        done = subprocess.run([*HUSHRANK, *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        return done.stderr

    port = train(tmp_path, n_clients=2, rounds=1)
    assert "no client of this federation is called 'me'" in refused("server", "forget", "me", tmp_path / "f")
    assert "--wait is for --forget" in refused("client", "leave", "--wait", "--home", home(tmp_path, 0))
    with serving(tmp_path / "f", port=port):
        run("client", "leave", "--home", home(tmp_path, 1))
        said = refused("client", "leave", "--forget", "--home", home(tmp_path, 0))
        assert "0 other clients remain, and forgetting needs 1" in said and "Begin a new federation" in said
        run("client", "leave", "--forget", "--home", home(tmp_path, 1))  # who has left may still ask


@pytest.mark.slow
@pytest.mark.randomised
def test_ten_processes_of_which_twenty_are_killed_end_with_the_replay(tmp_path: Path) -> None:
    """Each is killed with SIGKILL in a step of its own or right after it, the server as often as any client."""
    drawn, port = random.Random(pick_seed(18)), train(tmp_path, rounds=N_STEPS, keep_every=1)
    server = start_server(tmp_path / "f", port=port)
    running: dict[int, subprocess.Popen[bytes]] = {}
    waiting = subprocess.Popen(
        [*HUSHRANK, "client", "leave", "--forget", "--wait", "--home", str(home(tmp_path, 3))],
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: step_of(tmp_path) is not None)
    for id in (1, 2, *range(4, 10)):
        running[id] = start_crowd(server, id, 1)
    for n in range(20):
        assert step_of(tmp_path) is not None, f"all {N_STEPS} steps were over before kill {n + 1}"
        # Why one answer: every step waits for person 0, so that no more steps pass than kills, however slow this is
        running[0] = start_crowd(server, 0, 1, "--rounds", "1")
        time.sleep(drawn.uniform(0, 1.5))  # before, during and after its answer
        victim = drawn.choice([None, *running])
        process = server.process if victim is None else running[victim]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if victim is None:
            server = start_server(tmp_path / "f", port=port)
        else:
            running[victim] = start_crowd(server, victim, 1, *(("--rounds", "1") if victim == 0 else ()))
        finish([running[0]])
    running[0] = start_crowd(server, 0, 1)
    assert all("ended: the federation is finished" in words for words in finish(list(running.values())))
    assert waiting.wait(60) == 0
    new = server.export()
    server.process.terminate()
    assert server.process.wait(60) == 0
    figures = verify_record(home(tmp_path, 3) / RECORD).record["verification"]
    assert figures == {**figures, "steps": N_STEPS, "steps_lost": 0, "answers_per_step": 9.0, "lengths_filled": 0}
    assert_same(new, replay_plainly(tmp_path / "f", stayed(tmp_path, {3}), every=1, searches=SEARCHES))
