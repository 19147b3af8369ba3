"""The way to the server: patient after errors, obedient, quick to stop, and never in the clear."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Request, Response, saying, serving, write_certificate

from hushrank.live.device import transport
from hushrank.live.device.transport import (
    Reply,
    Stop,
    StoppedError,
    Transport,
    UnreachableError,
    draw_pause,
    parse_json,
)
from hushrank.live.wire.refusals import Reason, RefusedError


def in_turn(*responses: Response) -> Callable[[Request], Response]:
    """These answers, one after another, the last one for ever."""
    left = list(responses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def whole(reply: Reply) -> Reply:
    return reply


def test_an_answer_comes_back_and_the_request_says_who_and_which_version() -> None:
    with serving(in_turn(Response(body=b'{"a": 1}'), Response(204))) as (url, requests):
        way = Transport(url + "/below/", credential="secret")
        found: Any = way.call("PUT", "/v1/x", parse=parse_json(lambda v: v), body=b"ab", headers={"Own": "1"})
        assert found == {"a": 1}
        assert way.call("GET", "/v1/y", parse=whole) == Reply(204, b"")
        way.close()
    assert [request.path for request in requests] == ["/below/v1/x", "/below/v1/y"]
    assert requests[0].body == b"ab" and requests[0].headers["Own"] == "1"
    assert requests[0].headers["Authorization"] == "Bearer secret" and requests[0].headers["Hushrank-Wire"] == "1"
    assert set(requests[1].headers) == {"Host", "Accept-Encoding", "Authorization", "Hushrank-Wire"}


def test_a_refusal_is_told_and_not_tried_again() -> None:
    with serving(in_turn(saying({"reason": "late", "detail": "over\x1b[1m"}, 410))) as (url, requests):
        way = Transport(url)
        with pytest.raises(RefusedError, match=r"over \[1m") as caught:
            way.call("PUT", "/", parse=whole)
        way.close()
    assert caught.value.reason is Reason.late and caught.value.status == 410 and len(requests) == 1


def test_a_reason_of_a_newer_server_is_a_refusal_too() -> None:
    with serving(in_turn(saying({"reason": "full-moon", "detail": "not now"}, 409))) as (url, requests):
        way = Transport(url)
        with pytest.raises(RefusedError, match="not now") as caught:
            way.call("PUT", "/", parse=whole)
        way.close()
    assert caught.value.reason is Reason.unknown and caught.value.status == 409 and len(requests) == 1


@pytest.mark.parametrize(
    "bad", [(500, b"oops"), (502, b""), (200, b"<html>"), (404, b"not found"), (403, b'{"reason": "?"}')]
)
def test_after_nonsense_it_tries_again(bad: tuple[int, bytes]) -> None:
    told = list[str]()
    with serving(in_turn(*[Response(*bad)] * 3, Response(body=b"[]"))) as (url, requests):
        way = Transport(url, tell=told.append)
        found: Any = way.call("GET", "/", parse=parse_json(lambda v: v))
        way.close()
    assert found == [] and len(requests) == 4
    assert len(told) == 1 and "trying again" in told[0]


def test_it_waits_as_long_as_the_server_asks() -> None:
    with serving(in_turn(Response(503, headers={"Retry-After": "1"}), Response())) as (url, requests):
        way = Transport(url)
        way.call("GET", "/", parse=whole)
        way.close()
    assert requests[1].time - requests[0].time >= 1


def test_a_connection_that_the_server_closed_is_opened_again_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "draw_pause", lambda _: pytest.fail("it waited"))
    with serving(in_turn(Response()), closes=True) as (url, requests):
        way = Transport(url)
        for _ in range(3):
            way.call("GET", "/", parse=whole)
        way.close()
    assert len(requests) == 3


def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    with serving(in_turn(Response(body=b"x" * 1000), Response(body=b"x" * 10))) as (url, requests):
        way = Transport(url)
        assert way.call("GET", "/", parse=whole, most_bytes=10).body == b"x" * 10
        way.close()
    assert len(requests) == 2


def test_it_gives_up_when_its_patience_ends() -> None:
    with serving(in_turn(Response())) as (url, _):
        pass  # and now nobody listens there
    with pytest.raises(UnreachableError, match=r"does not answer \(ConnectionRefusedError.*Is the server running"):
        Transport(url, patience_s=0.05).call("GET", "/", parse=whole)


@pytest.mark.parametrize("where", ["answer", "pause"])
def test_stopping_ends_every_wait(where: str) -> None:
    with serving(in_turn(Response(503, headers={"Retry-After": "300"}))) as (url, requests), hanging() as deaf:
        stop = Stop()
        way = Transport(deaf if where == "answer" else url, stop=stop)
        threading.Timer(0.2, stop.set).start()
        began = time.monotonic()
        with pytest.raises(StoppedError):
            way.call("GET", "/", parse=whole, wait_s=300)
        assert time.monotonic() - began < 30  # of 300 seconds
        with pytest.raises(StoppedError):
            way.call("GET", "/", parse=whole)
        way.close()
        assert len(requests) == (where == "pause")


@contextmanager
def hanging() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_pauses_double_up_to_a_minute_and_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.5)
    for tries, longest in ((0, 0.5), (1, 1.0), (3, 4.0), (7, 60.0), (10**6, 60.0)):
        pauses = [draw_pause(tries) for _ in range(50)]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest
        assert len(set(pauses)) > 40


@pytest.mark.parametrize("url", ["ftp://a", "http://", "localhost:8765", "http://a?b=c", "https://me:secret@a"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a server"):
        Transport(url)


@pytest.mark.parametrize("url", ["http://example.org:8765", "http://10.0.0.7", "http://0.0.0.0:1"])
def test_beyond_this_machine_only_encrypted(url: str) -> None:
    with pytest.raises(ValueError, match=r"is not encrypted.*Use https://"):
        Transport(url)


def test_on_this_machine_in_the_clear() -> None:
    makes: list[Callable[[], Transport]] = [
        lambda: Transport("http://localhost:1"),
        lambda: Transport("http://[::1]:1"),
        lambda: Transport("http://127.0.0.2"),
    ]
    assert all(make() for make in makes)


@contextmanager
def tunnelling() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that opens tunnels, and what it was asked for."""
    asked = list[bytes]()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve(listening: socket.socket) -> None:
        client, _ = listening.accept()
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            asked.append(head)
            host, port = head.split()[1].decode().rsplit(":", 1)
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=pump, args=(server, client))
                back.start()
                pump(client, server)
                back.join()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        yield f"http://me:pass%20word@127.0.0.1:{listening.getsockname()[1]}", asked
        thread.join()


def test_a_proxy_is_gone_through_and_sees_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = write_certificate(tmp_path / "both.pem", "127.0.0.1")
    with (
        serving(in_turn(Response(body=b"ok")), certificate=certificate) as (url, requests),
        tunnelling() as (proxy, asked),
    ):
        monkeypatch.setenv("https_proxy", proxy)
        monkeypatch.setenv("no_proxy", "")
        with Transport(url, ca=certificate, credential="secret") as way:
            assert way.call("GET", "/", parse=whole).body == b"ok"
    assert len(requests) == 1 and asked[0].startswith(f"CONNECT {url.removeprefix('https://')} HTTP/1.".encode())
    assert b"secret" not in asked[0] and b"Basic bWU6cGFzcyB3b3Jk" in asked[0]  # me:pass word


def test_a_certificate_must_be_vouched_for_and_be_the_servers(tmp_path: Path) -> None:
    right, wrong = (write_certificate(tmp_path / a, a) for a in ("127.0.0.1", "127.0.0.9"))
    with serving(in_turn(Response(body=b"ok")), certificate=right) as (url, requests):
        way = Transport(url, ca=right)
        assert way.call("GET", "/", parse=whole).body == b"ok"
        way.close()
        for ca in (None, wrong):
            with pytest.raises(ValueError, match=r"its certificate is not trusted.*--ca FILE"):
                Transport(url, ca=ca).call("GET", "/", parse=whole)
    with (
        serving(in_turn(Response(body=b"ok")), certificate=wrong) as (url, more),
        pytest.raises(ValueError, match="not trusted"),
    ):
        Transport(url, ca=wrong).call("GET", "/", parse=whole)
    assert len(requests) == 1 and not more
    (tmp_path / "none").write_text("nothing")
    with pytest.raises(ValueError, match="holds no certificates to trust"):
        Transport("https://a", ca=tmp_path / "none")
