"""kill -9 of the server while a crowd answers: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import http.client
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
import suspicious_rule
from asking_people import Person, dense, enrol_people
from live_processes import HUSHRANK, create_federation, wait_for_url
from seeds import pick_seed
from suspicious_rule import NAME, Suspicious

from hushrank.aggregation.named import RULES
from hushrank.live.server import creation, store
from hushrank.live.server.config import make_config
from hushrank.live.server.new_ranker import first_ranker, next_ranker
from hushrank.live.server.schema import ROUNDS, UPDATES
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.news import Outcome

pytestmark = pytest.mark.randomised

N_PEOPLE = 4


class Crowd:
    """People who answer round after round, whatever happens to the server, and note what was acknowledged."""

    def __init__(self, people: list[Person]) -> None:
        self.people, self.acknowledged, self.odd = people, list[tuple[int, bytes]](), list[str]()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._take_part, args=(i,)) for i in range(len(people))]
        for thread in self.threads:
            thread.start()

    def _take_part(self, i: int) -> None:
        person, chance, after, body = self.people[i], random.Random(i), 0, b""
        while not self.stop.is_set():
            try:
                news = person.poll(after, wait=1)
                if news is None or not news["is_asked"]:
                    continue
                if news["round"] != after + 1 or not body:
                    after, body = news["round"] - 1, dense(*(chance.uniform(-0.1, 0.1) for _ in range(3)))
                reply = person.answer(news["round"], body)
                if reply.status == 200:
                    self.acknowledged.append((news["round"], body))
                    after, body = news["round"], b""
                elif reply.reason not in ("late", "stopping"):
                    self.odd.append(reply.reason)
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.02)  # no answer: the same bytes come again

    def finish(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


def start(directory: Path, port: int, command: Sequence[str] = HUSHRANK) -> subprocess.Popen[bytes]:
    said = directory.parent / "server.log"
    with said.open("wb") as log:
        process = subprocess.Popen([*command, "server", str(directory), "--port", str(port)], stderr=log)
    wait_for_url(process, said)
    return process


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def create(directory: Path) -> None:
    create_federation(directory, "--features", 3, min_clients=N_PEOPLE, keep_updates="true", rounds="none")


def kill_again_and_again(directory: Path, n_kills: int, command: Sequence[str] = HUSHRANK) -> Crowd:
    port, chance = free_port(), random.Random(pick_seed(7))
    process = start(directory, port, command)
    crowd = Crowd(enrol_people(f"http://127.0.0.1:{port}", directory, N_PEOPLE))
    try:
        for _ in range(n_kills):
            time.sleep(chance.uniform(0.05, 1.0))
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = start(directory, port, command)
        n_before = len(crowd.acknowledged)
        while len(crowd.acknowledged) < n_before + 5 * N_PEOPLE:  # after the last kill rounds still advance
            time.sleep(0.05)
    finally:
        crowd.finish()
        process.terminate()
        assert process.wait(timeout=60) == 0
    return crowd


def check_file(directory: Path, crowd: Crowd) -> int:
    """How many rounds closed."""
    with store.open_store(directory / store.FILE).begin() as connection:
        stored = Counter((row.round, row.body) for row in connection.execute(sa.select(UPDATES)))
        agreement = store.read_agreement(connection)
        assert all(stored[answer] == 1 for answer in crowd.acknowledged)
        counted = sum(member.accepted for member in store.read_members(connection))
        assert counted == sum(stored.values())
        closed = sa.select(ROUNDS.c.number).where(ROUNDS.c.state == Outcome.closed).order_by(ROUNDS.c.number)
        numbers = list(connection.execute(closed).scalars())
        params, state = first_ranker(agreement)
        for number in numbers:
            bodies = store.read_bodies(connection, number)
            params, state, _ = next_ranker(agreement, params, state, bodies, round=number)
        stored_params, stored_state = store.read_ranker(connection)
        assert np.array_equal(stored_params, params)
        assert {name: part.tolist() for name, part in stored_state.items()} == {
            name: part.tolist() for name, part in state.items()
        }
    return len(numbers)


def test_a_server_killed_at_random_moments_loses_and_repeats_nothing(tmp_path: Path) -> None:
    create(tmp_path / "f")
    crowd = kill_again_and_again(tmp_path / "f", 4)
    assert check_file(tmp_path / "f", crowd) >= 5 and crowd.odd == []


def test_what_a_rule_remembers_survives_a_kill_with_the_ranker_it_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, NAME, Suspicious)
    agreement = make_agreement("library", n_features=3, aggregation=NAME, patience=10**6, rounds=None)
    config = make_config({"min_clients": N_PEOPLE, "keep_updates": True})
    creation.create_federation(tmp_path / "f", agreement, config, n_tokens=N_PEOPLE)
    crowd = kill_again_and_again(tmp_path / "f", 4, [sys.executable, suspicious_rule.__file__])
    assert check_file(tmp_path / "f", crowd) >= 5 and crowd.odd == []
    with store.open_store(tmp_path / "f" / store.FILE).begin() as connection:
        assert store.read_ranker(connection)[1]["rule/times"].sum() > 5  # random updates often pull against the others


@pytest.mark.slow
def test_a_server_killed_many_times_loses_and_repeats_nothing(tmp_path: Path) -> None:
    create(tmp_path / "f")
    crowd = kill_again_and_again(tmp_path / "f", 40)
    assert check_file(tmp_path / "f", crowd) >= 20 and crowd.odd == []
