"""Encrypted connections of strangers: handshakes that never end, and answers that nobody reads."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from live_processes import Server, create_federation, serving
from raw_connections import connect_narrowly, fill, is_ended, needs_proc, read_answer, said_by

from benchmarks.hostile import HEAD, connect, hold_silent, make_hello, run_together, send_garbage, watching
from hushrank.live.server.connections import ConnectionGuard, Excess
from hushrank.live.server.creation import read_keys
from hushrank.live.server.process import allow_many_files
from hushrank.live.server.tls_door import TlsDoor, TlsListener, make_context
from hushrank.live.server.tls_strangers import TlsStrangers
from hushrank.live.wire import protocol

MOST_MB = 200.0
ASKED = f"GET {protocol.OPENAPI} HTTP/1.1\r\nhost: x\r\n\r\n".encode()


@pytest.fixture(params=["uvloop", "asyncio"])
def _event_loop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of this test run on it; without uvloop, both on asyncio's own."""
    if request.param == "asyncio":
        hiding = tmp_path / "hiding"
        hiding.mkdir()
        (hiding / "uvloop.py").write_text("raise ImportError", encoding="utf-8")
        places = [str(hiding), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))


def trust(directory: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(directory / "tls-certificate.pem"))


@needs_proc
@pytest.mark.usefixtures("_event_loop")
def test_handshakes_that_are_never_finished_cost_little_memory(tmp_path: Path) -> None:
    """At the default settings, under which all of them may be open at once."""
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")
    allow_many_files()
    with (
        serving(tmp_path / "f") as server,
        watching(server.process.pid, server.url, tmp_path / "f" / "tls-certificate.pem") as watch,
    ):
        hello = make_hello()
        made = run_together(lambda: hold_silent(server.url, n_connections=500, seconds=8, first=hello), 8)
        assert sum(made) > 1000  # of which 256 have a place
        assert watch.most_mb < MOST_MB
        assert watch.n_answers > 0
        assert "'handshakes'" in said_by(server)


def test_all_who_come_at_once_are_let_in(tmp_path: Path) -> None:
    """More handshakes than there are places. Whom a busy machine kept silent too long comes again, as clients do."""
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")
    context = trust(tmp_path / "f")

    async def ask(url: str) -> bytes:
        host, port = url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writer.write(HEAD + b"connection: close\r\n\r\n")
        said = await reader.read()
        writer.close()
        return said[:12]

    async def ask_until_answered(url: str) -> bytes:
        while True:
            with suppress(OSError):
                if said := await ask(url):
                    return said

    async def ask_together(url: str) -> list[bytes]:
        return await asyncio.gather(*(ask_until_answered(url) for _ in range(600)))

    with serving(tmp_path / "f") as server:
        assert asyncio.run(ask_together(server.url)) == [b"HTTP/1.1 200"] * 600


@needs_proc
@pytest.mark.usefixtures("_event_loop")
@pytest.mark.parametrize("goodbye", ["half-closed", "close_notify"])
def test_who_says_goodbye_and_does_not_read_is_ended(tmp_path: Path, goodbye: str) -> None:
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1", body_timeout_s=2, burst=10_000)
    with serving(tmp_path / "f") as server, ExitStack() as held:
        for n_more in range(4):
            inner = connect_narrowly(server.url)
            asking = held.enter_context(trust(tmp_path / "f").wrap_socket(inner, server_hostname="127.0.0.1"))
            fill(asking, ASKED)
            for _ in range(n_more):
                asking.sendall(ASKED)
                time.sleep(0.02)
            asking.setblocking(False)
            if goodbye == "half-closed":
                with socket.socket(fileno=os.dup(asking.fileno())) as beneath:
                    beneath.shutdown(socket.SHUT_WR)
            else:
                with suppress(ssl.SSLError):
                    asking.unwrap()
        until = time.monotonic() + 60
        while (n_open := metric_over_tls(tmp_path / "f", server)) > 1:
            assert time.monotonic() < until, f"{n_open} connections are still open"
            time.sleep(0.5)


def listen(directory: Path, guard: ConnectionGuard, doors: set[Any]) -> tuple[TlsListener, socket.socket]:
    """On a running event loop; nobody gets through the door."""
    listener = socket.create_server(("127.0.0.1", 0))
    context = make_context(directory / "tls-certificate.pem", directory / "tls-key.pem")
    return TlsListener(listener, pytest.fail, guard, context, doors), listener


def end_all(doors: set[TlsDoor]) -> None:
    for door in tuple(doors):
        door.shutdown()


async def pass_turns(n: int = 100) -> None:
    """Of the event loop, which looks at its sockets in each."""
    for _ in range(n):
        await asyncio.sleep(0)


def test_a_connection_ends_even_if_that_cannot_be_said(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")

    def tell(event: str, **_: object) -> None:
        raise BrokenPipeError(event)

    async def end() -> bytes:
        guard, doors = ConnectionGuard(10, 10, 10.0, tell, time.monotonic), set[TlsDoor]()
        listening, listener = listen(tmp_path / "f", guard, doors)
        with listener:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            while not doors:
                await asyncio.sleep(0.01)
            with pytest.raises(BrokenPipeError):
                next(iter(doors)).end(Excess.head)
            assert guard.n_open == 0 and not doors
            said = await reader.read()
            writer.close()
            listening.close()
        return said

    assert asyncio.run(end()) == b""


def test_while_enough_wait_for_their_handshake_the_others_wait_in_the_system(tmp_path: Path) -> None:
    """There is no place for a handshake here. Those who wait are let go, and as many more come."""
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")

    async def come() -> list[int]:
        guard, doors = ConnectionGuard(999, 0, 60.0, lambda *_, **__: None, time.monotonic), set[TlsDoor]()
        guard.tls_strangers.most = 0
        listening, listener = listen(tmp_path / "f", guard, doors)
        with listener, ExitStack() as held:
            for _ in range(200):
                held.enter_context(socket.create_connection(listener.getsockname())).sendall(make_hello())
            await pass_turns()
            n_before = guard.n_open
            end_all(doors)
            n_between = guard.n_open
            await pass_turns()
            n_after = guard.n_open
            listening.close()
            end_all(doors)
            return [n_before, n_between, n_after]

    n_before, n_between, n_after = asyncio.run(come())
    assert n_before == n_after and 0 < n_before < 100 and n_between == 0


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of descriptors is a matter of POSIX")
def test_a_server_that_had_no_descriptor_left_listens_again(tmp_path: Path) -> None:
    import resource

    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def come() -> None:
        guard, doors = ConnectionGuard(999, 0, 60.0, lambda *_, **__: None, time.monotonic), set[TlsDoor]()
        listening, listener = listen(tmp_path / "f", guard, doors)
        with listener, socket.socket() as client:
            free = os.dup(client.fileno())
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
            try:
                client.connect(listener.getsockname())
                await pass_turns()
                assert guard.n_open == 0
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            while not guard.n_open:
                await asyncio.sleep(0.01)
            listening.close()
            end_all(doors)

    asyncio.run(come())


def test_one_handshake_begins_in_a_turn_of_the_event_loop_in_the_order_they_came() -> None:
    async def begin() -> list[list[int]]:
        strangers, begun, seen = TlsStrangers(), list[int](), list[list[int]]()
        with socket.socket() as unused:
            for i in range(3):
                strangers.enter(i, unused, begin=partial(begun.append, i), end=pytest.fail)
            for _ in range(4):
                seen.append(list(begun))
                await asyncio.sleep(0)
        return seen

    assert asyncio.run(begin()) == [[], [0], [0, 1], [0, 1, 2]]


def test_handshakes_that_never_come_are_counted_and_ended(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1", connections=8, body_timeout_s=2)
    with serving(tmp_path / "f") as server:
        first = connect(server.url)
        silent = [connect(server.url) for _ in range(30)]  # more than the server has
        assert is_ended(first)  # it made room
        with trust(tmp_path / "f").wrap_socket(connect(server.url), server_hostname="127.0.0.1") as known:
            known.sendall(HEAD + b"\r\n")
            assert read_answer(known).startswith(b"HTTP/1.1 200")
        for each in silent:
            each.settimeout(60)
            assert is_ended(each)  # their time is over
            each.close()
        first.close()
        assert send_garbage(server.url, n=3)
        assert all(f"'{limit}'" in said_by(server) for limit in ("connections", "head", "malformed"))


def test_what_comes_with_the_end_of_a_handshake_is_not_lost(tmp_path: Path) -> None:
    """The first request in one packet with the client's last word of the handshake, many times."""
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")
    with serving(tmp_path / "f") as server:
        context = trust(tmp_path / "f")
        for _ in range(20):
            arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
            inner = context.wrap_bio(arriving, leaving, server_hostname="127.0.0.1")
            with connect(server.url) as asking:
                while True:
                    try:
                        inner.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        asking.sendall(leaving.read())
                        arriving.write(asking.recv(65536))
                inner.write(HEAD + b"\r\n")
                asking.sendall(leaving.read())
                answer = b""
                while not answer:
                    arriving.write(asking.recv(65536) or pytest.fail("no answer"))
                    with suppress(ssl.SSLWantReadError):
                        answer = inner.read(65536)
            assert answer.startswith(b"HTTP/1.1 200")


def test_a_server_stops_while_somebody_shakes_hands(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1", body_timeout_s=600)
    with serving(tmp_path / "f") as server, connect(server.url) as silent:
        silent.sendall(b"\x16\x03\x01")
        assert metric_over_tls(tmp_path / "f", server) >= 2
        server.process.terminate()
        assert server.process.wait(60) == 0


def metric_over_tls(directory: Path, server: Server) -> float:
    token = read_keys(directory).operator_token
    with trust(directory).wrap_socket(connect(server.url), server_hostname="127.0.0.1") as asking:
        asking.sendall(f"GET {protocol.METRICS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode())
        text = read_answer(asking)
    line = next(line for line in text.splitlines() if line.startswith(b"hushrank_connections "))
    return float(line.rpartition(b" ")[2])
