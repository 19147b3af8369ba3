"""Two processes of one client: the older is told, the newer goes on, and neither wakes the other for ever."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking_people import Person, Reply, enrol_people
from live_processes import HUSHRANK, Server, create_federation, serving

from hushrank.live.server.creation import read_keys
from hushrank.live.server.instances import Instances
from hushrank.live.wire import protocol
from hushrank.live.wire.refusals import Reason, RefusedError

A, B, C = "a" * 16, "b" * 16, "c" * 16


def refusal(instances: Instances, client: int, instance: str) -> Reason:
    with pytest.raises(RefusedError) as refused:
        instances.meet(client, instance)
    return refused.value.reason


def test_who_was_followed_by_another_is_refused_when_it_returns() -> None:
    instances = Instances()
    for instance in (A, A, None, B, B):
        instances.meet(1, instance)
    assert refusal(instances, 1, A) is Reason.clone
    instances.meet(2, A)  # of another client
    instances.meet(1, B)
    instances.meet(1, C)  # started again
    assert [refusal(instances, 1, former) for former in (A, B)] == [Reason.clone] * 2


def test_an_instance_is_sixteen_digits_and_few_are_remembered() -> None:
    instances = Instances()
    for bad in ("", "a" * 15, "A" * 16, "a" * 17, "a" * 15 + "\n"):
        assert refusal(instances, 1, bad) is Reason.bad_request
    for number in range(1000):
        instances.meet(1, f"{number:016x}")
    assert sum(len(known) for known in instances._known.values()) < 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A federation that waits for more clients than there will be."""
    directory = tmp_path_factory.mktemp("server") / "f"
    create_federation(directory, "--features", 3, min_clients=50)
    with serving(directory) as server:
        yield server


def poll(person: Person, instance: str | None = None, wait: int = 30) -> Reply:
    headers: dict[str, Any] = {} if instance is None else {"Hushrank_Instance": instance}
    return person.ask("GET", f"{protocol.ROUND}?after=0&wait={wait}", **headers)


@pytest.mark.parametrize("instance", [None, A])
def test_a_poll_whose_place_was_taken_is_asked_to_wait(server: Server, instance: str | None) -> None:
    (person,) = enrol_people(server.url, server.directory, 1, first=0 if instance is None else 1)
    replies = list[Reply]()
    older = threading.Thread(target=lambda: replies.append(poll(person, instance)))
    older.start()
    while older.is_alive():  # until the older one waits there, and the newer one takes its place
        assert poll(person, instance, wait=1).status in (204, 429)
    (reply,) = replies
    assert (reply.status, reply.reason, reply.headers["retry-after"]) == (429, "rate", "5")


def count_polls(server: Server, person: Person) -> int:
    """That wait there now."""
    token = read_keys(server.directory).operator_token
    said = person.ask("GET", protocol.METRICS, Authorization=f"Bearer {token}").content.decode()
    return int(said.partition("\nhushrank_polls ")[2].split()[0])


def test_a_poll_whose_place_another_process_took_hears_of_it_when_it_comes_again_at_once(server: Server) -> None:
    """Its process may be dead, so that nobody counts it as a clone before it comes again."""
    (person,) = enrol_people(server.url, server.directory, 1, first=4)
    replies, before = list[Reply](), count_polls(server, person)
    older = threading.Thread(target=lambda: replies.append(poll(person, A)))
    older.start()
    while count_polls(server, person) == before:
        pass
    assert poll(person, B, wait=1).status == 204
    older.join()
    (reply,) = replies
    assert (reply.status, reply.reason, reply.headers["retry-after"]) == (429, "rate", "0")
    assert poll(person, A).reason == "clone" and poll(person, B, wait=0).status == 204


def start_client(server: Server, home: Path, *words: str) -> subprocess.Popen[str]:
    """Until it has joined."""
    command = [*HUSHRANK, "client", server.url, "--home", str(home), *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "joined" in process.stderr.readline()
    return process


def test_a_home_that_was_copied_ends_the_older_client_which_says_what_to_do(server: Server, tmp_path: Path) -> None:
    token = (server.directory / "tokens.txt").read_text().split()[5]
    first = start_client(server, tmp_path / "home", "--token", token)
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    second = start_client(server, tmp_path / "copy")
    _, said = first.communicate(timeout=60)
    assert first.returncode == 1 and "One of the two must go" in said and "stop one and delete its home" in said
    assert second.poll() is None
    third = start_client(server, tmp_path / "home")  # its owner starts it again: now the copy is the older one
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1 and "another copy of" in said and third.poll() is None
    third.terminate()
    third.communicate(timeout=60)
    assert third.returncode == 0


def test_a_client_that_was_killed_works_at_once_when_it_is_started_again(server: Server, tmp_path: Path) -> None:
    token = (server.directory / "tokens.txt").read_text().split()[6]
    for words in (["--token", token], [], []):
        process = start_client(server, tmp_path / "home", *words)
        process.kill()
        process.communicate(timeout=60)
    again = subprocess.run(
        [*HUSHRANK, "client", "--home", str(tmp_path / "home"), "--once"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 0 and "there was nothing to answer" in again.stderr
