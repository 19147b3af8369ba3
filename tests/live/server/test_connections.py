"""Connections of strangers: what they may cost a real server, and what becomes of those that want more."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking_people import Person, enrol_people
from live_processes import Server, create_federation, serving
from raw_connections import connect_narrowly, fill, is_ended, needs_proc, read_answer, said_by

from benchmarks.hostile import (
    HEAD,
    ask_often,
    connect,
    run_together,
    send_endless_head,
    send_garbage,
    send_without_reading,
    watching,
)
from hushrank.live.server.connections import MOST_HEAD, MOST_PER_CLIENT, ConnectionGuard, Excess
from hushrank.live.server.creation import read_keys
from hushrank.live.wire import protocol
from hushrank.live.wire.addresses import network_of
from hushrank.rankers.named import unpack_ranker

MOST_MB = 200.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("strangers") / "f"
    often = {"requests_per_second": 1e6, "burst": 1_000_000, "requests_per_address": 1e6}
    create_federation(directory, "--features", 700, ranker="mlp", hidden=64, body_timeout_s=2, min_clients=2, **often)
    with serving(directory) as server:
        yield server


def metric(server: Server, name: str) -> float:
    token = read_keys(server.directory).operator_token
    with connect(server.url) as asking:
        asking.sendall(f"GET {protocol.METRICS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode())
        text = read_answer(asking)
    assert text.startswith(b"HTTP/1.1 200")
    return float(next((line.rpartition(b" ")[2] for line in text.splitlines() if line.startswith(name.encode())), b"0"))


@needs_proc
def test_heads_without_end_are_refused_and_cost_no_memory(server: Server) -> None:
    with watching(server.process.pid, server.url) as watch:
        said = run_together(lambda: send_endless_head(server.url, n_bytes=20 << 20), 4)
        assert any(isinstance(each, bytes) and each.startswith(b"HTTP/1.1 431 ") for each in said)
        assert watch.most_mb < MOST_MB
    assert metric(server, 'hushrank_connections_dropped_total{limit="head"}') >= 4


@needs_proc
@pytest.mark.parametrize("at_once", [1, 1000])
def test_answers_that_nobody_reads_cost_no_memory(server: Server, at_once: int) -> None:
    with watching(server.process.pid, server.url) as watch:
        assert send_without_reading(server.url, n_connections=50, seconds=5, at_once=at_once) > 0
        assert watch.most_mb < MOST_MB
    assert ask_often(server.url, protocol.HEALTH, n=1).total() == 1


@pytest.mark.parametrize("n_bytes", [100, MOST_HEAD - 100, MOST_HEAD + 100, 200_000])
@pytest.mark.parametrize("place", ["url", "header"])
def test_a_head_may_be_so_long_and_no_longer(server: Server, place: str, n_bytes: int) -> None:
    long = b"x" * n_bytes
    url = b"?a=" + long if place == "url" else b""
    header = b"a: " + long + b"\r\n" if place == "header" else b""
    with connect(server.url) as asking:
        try:
            asking.sendall(b"GET /v1/health" + url + b" HTTP/1.1\r\nhost: x\r\n" + header + b"\r\n")
            status = read_answer(asking).split()[1]
        except ConnectionError:  # it was still sending when the server had enough
            status = b"431"
    assert status == (b"200" if n_bytes < MOST_HEAD else b"431")


@pytest.mark.parametrize("n_params", [3, 5_000, 60_000])
def test_a_long_body_is_no_head(tmp_path: Path, n_params: int) -> None:
    """Sent at once and in pieces; the next request on the same connection is answered, too."""
    create_federation(tmp_path / "f", "--features", n_params, min_clients=1)
    with serving(tmp_path / "f") as server:
        person = enrol_people(server.url, tmp_path / "f", 1)[0]
        person.poll()
        body = np.full(n_params, 1e-4, "<f4").tobytes()
        head = f"PUT {protocol.update_path(1)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {person.credential}\r\n"
        head += f"hushrank-wire: 1\r\nhushrank-agreement: {person.digest}\r\nhushrank-weight: 1\r\n"
        head += f"content-type: {protocol.BODY_TYPE}\r\ncontent-length: {len(body)}\r\n\r\n"
        with connect(server.url) as asking:
            for _ in range(2):
                asking.sendall(head.encode() + body)
                assert read_answer(asking).startswith(b"HTTP/1.1 200")
            asking.sendall(head.encode())
            for at in range(0, len(body), 20_000):
                asking.sendall(body[at : at + 20_000])
            assert read_answer(asking).startswith(b"HTTP/1.1 200")


def test_a_few_requests_may_run_ahead_and_no_more(server: Server) -> None:
    with connect(server.url) as asking:
        asking.sendall(2 * (HEAD + b"\r\n"))
        answers = read_answer(asking)
        while answers.count(b'{"status": "ok"}') < 2:
            answers += asking.recv(4096) or pytest.fail("the second was not answered")
    before = metric(server, 'hushrank_connections_dropped_total{limit="ahead"}')
    with connect(server.url) as asking:
        asking.sendall(1000 * (HEAD + b"\r\n"))
        with closing(asking):
            content = b""
            try:
                while piece := asking.recv(65536):
                    content += piece
            except ConnectionResetError:
                pass
    assert content.count(b"HTTP/1.1 200") < 1000
    assert metric(server, 'hushrank_connections_dropped_total{limit="ahead"}') == before + 1


def test_trailers_are_refused(server: Server) -> None:
    with connect(server.url) as asking:
        asking.sendall(b"POST /v1/leave HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\r\n" * 2)
        said = b""
        while piece := asking.recv(65536):
            said += piece
    assert b"HTTP/1.1 400 " in said


@needs_proc
def test_nothing_follows_a_refusal(server: Server) -> None:
    """Three requests in one packet, the last of which is none, while earlier answers are not read yet."""
    with connect_narrowly(server.url) as asking:
        fill(asking, f"GET {protocol.OPENAPI} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        asking.sendall(2 * (HEAD + b"\r\n") + b"\x00\x01 not HTTP\r\n\r\n")
        said = b""
        while piece := asking.recv(65536):
            said += piece
    assert said.endswith(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")


def test_what_is_not_there_and_other_versions_are_rate_limited(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, requests_per_second=1, burst=20)
    with serving(tmp_path / "f") as server:
        statuses = ask_often(server.url, "/nothing", n=100)
        assert statuses[404] >= 20 and statuses[429] > 0
        assert statuses.total() == 100
    with serving(tmp_path / "f") as server:
        statuses = ask_often(server.url, protocol.ME, n=100, headers={protocol.WIRE_HEADER: "7"})
        assert statuses[426] >= 20 and statuses[429] > 0 and statuses.total() == 100


def test_an_address_has_a_limit_before_anything_is_looked_up(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, requests_per_address=0.5)
    with serving(tmp_path / "f") as server:
        statuses = ask_often(server.url, protocol.HEALTH, n=50)
    assert statuses[429] >= 1 and statuses.total() == 50


def test_garbage_is_counted_and_not_logged_line_by_line(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3)
    with serving(tmp_path / "f") as server:
        said = send_garbage(server.url, n=50)
        assert said == {b"HTTP/1.1 400 Bad Request": 50}
        assert metric(server, 'hushrank_connections_dropped_total{limit="malformed"}') == 50
        assert "Invalid HTTP" not in said_by(server) and said_by(server).count("'malformed'") == 1


def ask_as(asking: socket.socket, person: Person) -> bytes:
    """The answer to a client's own question on a connection of its own."""
    head = f"GET {protocol.ME} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {person.credential}\r\nhushrank-wire: 1\r\n"
    asking.sendall(head.encode() + b"\r\n")
    return read_answer(asking)


def test_clients_can_take_all_connections_and_the_next_is_told(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, connections=5)
    with serving(tmp_path / "f") as server:
        people = enrol_people(server.url, tmp_path / "f", 5)
        held = [connect(server.url) for _ in range(5)]
        for each, person in zip(held, people, strict=True):
            assert ask_as(each, person).startswith(b"HTTP/1.1 200")
        with connect(server.url) as refused:
            said = read_answer(refused)
            assert said.startswith(b"HTTP/1.1 503") and b'"reason": "rate"' in said and b"retry-after" in said
        held.pop().close()
        while True:  # until the server has noticed
            with connect(server.url) as again:
                again.sendall(HEAD + b"\r\n")
                if again.recv(100).startswith(b"HTTP/1.1 200"):
                    break
            time.sleep(0.05)
        for each in held:
            each.close()
        assert said_by(server).count("'connections'") == 1


def test_strangers_make_room_for_clients(tmp_path: Path) -> None:
    """The oldest goes; who has shown a credential stays."""
    create_federation(tmp_path / "f", "--features", 3, connections=5)
    with serving(tmp_path / "f") as server:
        person, *_ = enrol_people(server.url, tmp_path / "f", 1)
        with connect(server.url) as known:
            assert ask_as(known, person).startswith(b"HTTP/1.1 200")
            strangers = [connect(server.url) for _ in range(20)]
            with connect(server.url) as another:
                assert ask_as(another, person).startswith(b"HTTP/1.1 200")
            assert ask_as(known, person).startswith(b"HTTP/1.1 200")
            assert all(is_ended(each) for each in strangers[:15])
            for each in strangers:
                each.close()


def test_one_client_cannot_take_all_connections(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3)
    with serving(tmp_path / "f") as server:
        person, *_ = enrol_people(server.url, tmp_path / "f", 1)
        held = [connect(server.url) for _ in range(MOST_PER_CLIENT + 3)]
        for each in held:
            assert ask_as(each, person).startswith(b"HTTP/1.1 200")
        assert all(is_ended(each) for each in held[:3])
        assert all(ask_as(each, person).startswith(b"HTTP/1.1 200") for each in held[3:])
        for each in held:
            each.close()


def test_who_has_enrolled_is_no_stranger(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, connections=3)
    with serving(tmp_path / "f") as server, connect(server.url) as new:
        token = (tmp_path / "f" / "tokens.txt").read_text(encoding="utf-8").split()[0]
        body = json.dumps({"token": token}).encode()
        head = f"POST {protocol.ENROL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {'c' * 43}\r\nhushrank-wire: 1\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        new.sendall(head.encode() + body)
        assert read_answer(new).startswith(b"HTTP/1.1 200")
        strangers = [connect(server.url) for _ in range(10)]
        assert is_ended(strangers[0])
        new.sendall(HEAD + b"\r\n")
        assert read_answer(new).startswith(b"HTTP/1.1 200")  # it was not it that made room
        for each in strangers:
            each.close()


def test_a_stranger_that_has_nothing_more_to_ask_is_let_go(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3)
    with serving(tmp_path / "f") as server:
        person, *_ = enrol_people(server.url, tmp_path / "f", 1)
        with connect(server.url) as known, connect(server.url) as stranger:
            assert ask_as(known, person).startswith(b"HTTP/1.1 200")
            stranger.sendall(HEAD + b"\r\n")
            assert read_answer(stranger).startswith(b"HTTP/1.1 200")
            stranger.settimeout(60)
            assert is_ended(stranger)  # before the client's, which was idle for longer
            assert ask_as(known, person).startswith(b"HTTP/1.1 200")


def test_a_long_answer_arrives_whole(server: Server) -> None:
    person = enrol_people(server.url, server.directory, 1)[0]
    reply = person.ask("GET", protocol.RANKER)
    _, params, _ = unpack_ranker(reply.content, name="it")
    assert len(params) == 700 * 64 + 2 * 64 and len(reply.content) > 2 << 16


def make_guard(**settings: Any) -> tuple[ConnectionGuard, list[tuple[str, Any]], list[float]]:
    said, now = list[tuple[str, Any]](), [0.0]
    limits = {"most": 3, "most_per_address": 2, "patience_s": 10.0} | settings
    guard = ConnectionGuard(tell=lambda event, **facts: said.append((event, facts)), clock=lambda: now[0], **limits)
    return guard, said, now


@dataclass(eq=False)
class Wire:
    """A connection as a guard sees it."""

    guard: ConnectionGuard
    n_unread: int = 0
    n_drained: int = 0
    is_in_head: bool = False
    is_waiting: bool = False
    ended: list[Excess] = field(default_factory=list)

    def count_unread(self) -> int:
        return self.n_unread

    def count_drained(self) -> int:
        return self.n_drained

    def end(self, excess: Excess) -> None:
        self.ended.append(excess)
        self.guard.forget(self)


def test_strangers_at_one_address_cannot_take_all_connections() -> None:
    guard, _, _ = make_guard()
    wires = [Wire(guard) for _ in range(9)]
    assert [guard.admit(wire, "198.51.100.1") for wire in wires[:3]] == [None, None, Excess.address]
    guard.recognise(wires[0], 7)
    assert guard.admit(wires[3], "198.51.100.1") is None  # a client's no longer counts there
    assert guard.n_open == 3
    assert guard.admit(wires[4], "198.51.100.2") is None and wires[1].ended == [Excess.connections]
    for wire in (wires[3], wires[4]):
        guard.recognise(wire, 8)
    assert guard.admit(wires[5], "198.51.100.3") is Excess.connections  # nobody is left to make room
    guard.forget(wires[0])
    guard.forget(wires[0])
    assert guard.n_open == 2 and guard.admit(wires[5], "198.51.100.1") is None
    local, _, _ = make_guard()
    assert [local.admit(Wire(local), "127.0.0.1") for _ in range(3)] == [None] * 3  # this machine has only the other


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "2001:0DB8:0::1%eth0"])
def test_a_known_address_has_no_limit_but_that_of_all_and_takes_no_place_of_its_network(address: str) -> None:
    guard, _, _ = make_guard(most=40, known=frozenset({"192.0.2.7", "2001:db8::1"}))
    wires = [Wire(guard, is_waiting=True) for _ in range(40)]
    assert [guard.admit(wire, address) for wire in wires] == [None] * 40
    assert guard.admit(Wire(guard), address) is Excess.connections
    for wire in wires[:3]:
        guard.forget(wire)
    others = [guard.admit(Wire(guard), "2001:db8::2") for _ in range(3)]
    assert others == [None, None, Excess.address] and guard.n_open == 39


def test_whoever_has_nothing_under_way_makes_room_first_and_whoever_waits_for_an_answer_never() -> None:
    guard, _, _ = make_guard(most_per_address=0)
    waiting, read, idle = Wire(guard, is_waiting=True), Wire(guard, n_unread=9), Wire(guard)
    wires = [Wire(guard, is_waiting=True) for _ in range(3)]
    assert [guard.admit(each, "198.51.100.1") for each in (waiting, read, idle)] == [None] * 3
    assert guard.admit(wires[0], "198.51.100.1") is None and idle.ended and not read.ended
    assert guard.admit(wires[1], "198.51.100.1") is None and read.ended
    assert guard.admit(wires[2], "198.51.100.1") is Excess.connections  # all that are left wait
    assert not waiting.ended and not any(each.ended for each in wires)
    waiting.is_waiting = False
    assert guard.admit(wires[2], "198.51.100.1") is None and waiting.ended


def test_addresses_that_one_network_may_choose_from_count_as_one() -> None:
    guard, _, _ = make_guard()
    asked = ["2001:db8::1", "2001:db8::2:3:4", "2001:db8::ffff:5", "2001:db8:0:1::1"]
    assert [guard.admit(Wire(guard), each) for each in asked] == [None, None, Excess.address, None]
    many, _, _ = make_guard(most=1000)
    asked = [f"2001:db8:7:{each:x}::1" for each in range(17)]  # two for each network would be 34
    assert [many.admit(Wire(many), each) for each in asked] == [None] * 16 + [Excess.address]
    assert many.admit(Wire(many), "2001:db8:8::1") is None
    assert network_of("::ffff:198.51.100.1") == network_of("198.51.100.1") == "198.51.100.1"
    assert network_of("fe80::1%eth0") == "fe80::/64" and network_of("not:an:address") == "not:an:address"


def test_strangers_at_one_address_make_so_many_connections_in_a_second() -> None:
    """Two at once, so two per second, of which two seconds' worth may come without a pause."""
    guard, _, now = make_guard()

    def come_and_go(address: str) -> Excess | None:
        wire = Wire(guard)
        excess = guard.admit(wire, address)
        guard.forget(wire)
        return excess

    assert [come_and_go("198.51.100.1") for _ in range(5)] == [None] * 4 + [Excess.address]
    assert come_and_go("198.51.100.2") is None
    now[0] = 1.0
    assert [come_and_go("198.51.100.1") for _ in range(3)] == [None, None, Excess.address]
    assert [come_and_go("127.0.0.1") for _ in range(9)] == [None] * 9


def test_what_was_ended_while_it_became_another_is_not_counted_again() -> None:
    guard, _, _ = make_guard()
    old, new = Wire(guard), Wire(guard)
    assert guard.admit(old, "198.51.100.1") is None
    old.end(Excess.head)
    assert not guard.hand_over(old, new) and not new.ended and guard.n_open == 0


def test_a_long_answer_over_a_slow_line_is_not_unread() -> None:
    guard, _, now = make_guard()
    slow, stuck = Wire(guard, n_unread=100_000), Wire(guard, n_unread=100_000)
    for second in range(100):
        now[0] = float(second)
        slow.n_drained = second // 10
        guard.end_slow([wire for wire in (slow, stuck) if not wire.ended])
    assert not slow.ended and stuck.ended == [Excess.unread]


def test_a_limit_is_said_once_a_minute_with_how_often() -> None:
    guard, said, now = make_guard()
    for _ in range(5):
        guard.drop(Excess.head)
    guard.drop(Excess.unread)
    now[0] = 60.0
    guard.drop(Excess.head)
    assert [(facts["limit"], facts["times"]) for _, facts in said] == [("head", 1), ("unread", 1), ("head", 5)]
    assert guard.dropped == {"head": 6, "unread": 1}
