"""No answer takes for ever: a server that sends a byte now and then is cut off, by one thread for all calls."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from scripted_server import write_certificate

from hushrank.live.device import transport
from hushrank.live.device.deadlines import Watchdog
from hushrank.live.device.transport import Reply, Stop, Transport, UnreachableError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"
STARTS = [
    b"HTTP/1.1 200 OK\r\nX: ",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 ",
    HEAD + b"\r\n",
    HEAD + b"Connection: close\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3e8\r\n",
]


def whole(reply: Reply) -> Reply:
    return reply


@contextmanager
def trickling(start: bytes, certificate: Path | None = None) -> Iterator[str]:
    """A server that sends this at once, and then a byte five times a second."""
    over = threading.Event()

    def serve(client: socket.socket) -> None:
        with suppress(OSError), client, ExitStack() as opened:
            if certificate is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                client = opened.enter_context(context.wrap_socket(client, server_side=True))
            client.recv(4096)
            client.sendall(start)
            while not over.wait(0.2):
                client.sendall(b"x")

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        yield f"http{'s' if certificate else ''}://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_an_answer_that_trickles_is_cut_at_its_deadline(
    start: bytes, is_encrypted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_TIMEOUT_S", 0.7)
    monkeypatch.setattr(transport, "_LEAST_RATE", 1 << 30, raising=False)
    certificate = write_certificate(tmp_path / "both.pem", "127.0.0.1") if is_encrypted else None
    stop = Stop()
    timer = threading.Timer(15, stop.set)  # Why: a call that is never cut fails the test instead
    timer.start()
    with (
        trickling(start, certificate) as url,
        Transport(url, ca=certificate, stop=stop, patience_s=0.1) as way,
        pytest.raises(UnreachableError, match="no whole answer within 1 s"),
    ):
        way.call("GET", "/", parse=whole)
    timer.cancel()


def test_a_handshake_that_trickles_is_cut_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_TIMEOUT_S", 0.7)
    monkeypatch.setattr(transport, "_LEAST_RATE", 1 << 30, raising=False)
    server_hello = b"\x16\x03\x03\x40\x00"  # the head of a record of 16,384 bytes
    with (
        trickling(server_hello) as url,
        Transport(url.replace("http:", "https:"), patience_s=0.1) as way,
        pytest.raises(UnreachableError, match=r"no whole answer within 1 s|timed out"),
    ):
        way.call("GET", "/", parse=whole)


def count_watching() -> int:
    return [thread.name for thread in threading.enumerate()].count("deadlines")


def test_one_thread_watches_all_calls_and_cuts_only_what_is_overdue() -> None:
    watchdog, cut, over = Watchdog(), list[int](), threading.Event()

    def note(number: int) -> None:
        cut.append(number)
        over.set()

    before = count_watching()
    with ExitStack() as calls:
        later = [calls.enter_context(watchdog.limit(600 - n, lambda n=n: note(n))) for n in range(50)]  # type: ignore[misc]
        with watchdog.limit(0.0, lambda: note(-1)) as first:
            assert over.wait(30)
        assert count_watching() == before + 1
    assert set(cut) == {-1} and first.has_passed and not any(deadline.has_passed for deadline in later)


def test_what_could_not_be_cut_yet_is_cut_again() -> None:
    watchdog, times, often = Watchdog(), list[None](), threading.Event()

    def count() -> None:
        times.append(None)
        if len(times) == 3:
            often.set()

    with watchdog.limit(0.0, count):
        assert often.wait(30)


def test_a_cut_that_fails_leaves_the_other_deadlines_at_work() -> None:
    watchdog, failed, over = Watchdog(), threading.Event(), threading.Event()

    def fail() -> None:
        failed.set()
        raise ValueError("a file that was closed meanwhile")

    with watchdog.limit(0.0, fail):
        assert failed.wait(30)
    with watchdog.limit(0.0, over.set) as late:
        assert over.wait(30) and late.has_passed
