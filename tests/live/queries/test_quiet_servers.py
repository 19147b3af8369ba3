"""Engines and relays write nothing while they serve, whatever comes: no log line, no traceback, no word of a query."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from query_people import shared_source, wait_until
from secret_search import search_bytes, text_secret

from hushrank.live.device.deadlines import Watchdog
from hushrank.live.queries import fetch
from hushrank.live.queries.engine import TitleEngine
from hushrank.live.queries.messages import SEARCH, SearchRequest, encode_request
from hushrank.live.queries.relay import QueryRelay
from hushrank.live.queries.requests import serve

PLANTED = ("zygomorphic", "quockerwodger", "xylopolist")
HEAD = f"POST {SEARCH}?{PLANTED[1]} HTTP/1.1\r\nHost: x\r\nCookie: {PLANTED[2]}\r\nConnection: close\r\n".encode()
GOOD = encode_request(SearchRequest(PLANTED[0], 3))


def with_length(body: bytes, *, missing: int = 0) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body) + missing, body)


ANSWERED = {  # {request: status}
    with_length(GOOD): 200,
    with_length(GOOD[:-5]): 400,
    with_length(b'{"query": 1, "n": "zygomorphic"}'): 400,
    with_length(b"zygomorphic" * 1000): 413,
    HEAD.replace(SEARCH.encode(), b"/zygomorphic") + b"\r\n": 404,
    HEAD.replace(b"POST", b"GET") + b"\r\n": 405,
    b"zygomorphic quockerwodger\r\n\r\n": 400,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nzyg\r\nquockerwodger": 400,
    HEAD.replace(b"close", b"Upgrade") + b"Upgrade: websocket\r\n\r\n": 400,
}
BROKEN_OFF = (with_length(GOOD, missing=9), with_length(b"", missing=9), with_length(GOOD[:9], missing=99))


@dataclass
class Written:
    """What was written so far, by anybody in this process."""

    logged: pytest.LogCaptureFixture
    said: pytest.CaptureFixture[str]

    def take(self) -> str:
        captured = self.said.readouterr()
        lines = [f"{record.name} {record.getMessage()} {record.exc_text}" for record in self.logged.records]
        self.logged.clear()
        return "\n".join([*lines, captured.out, captured.err]).strip()


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Written:
    caplog.set_level(logging.DEBUG)
    return Written(caplog, capfd)


@contextmanager
def both() -> Iterator[tuple[TitleEngine, str, QueryRelay, str]]:
    engine = TitleEngine(shared_source().collection)
    with serve(engine.app()) as url:
        relay = QueryRelay(url)
        with serve(relay.app()) as relay_url:
            yield engine, url, relay, relay_url


def ask(url: str, request: bytes) -> bytes:
    """All that comes back until the server closes."""
    where, content = urlsplit(url), b""
    with socket.create_connection((str(where.hostname), int(where.port or 0)), timeout=30) as asking:
        asking.sendall(request)
        while piece := asking.recv(65536):
            content += piece
    return content


def break_off(url: str, request: bytes) -> None:
    where = urlsplit(url)
    with socket.create_connection((str(where.hostname), int(where.port or 0)), timeout=30) as asking:
        asking.sendall(request)


def test_good_bad_and_broken_off_searches_leave_no_line(written: Written) -> None:
    secrets = [text_secret(word) for word in PLANTED]
    with both() as (engine, url, relay, relay_url):
        begun = written.take()
        for address in (url, relay_url):
            for request, status in ANSWERED.items():
                said = ask(address, request)
                assert said.startswith(f"HTTP/1.1 {status} ".encode()), (request, said)
                assert not search_bytes(said, secrets, where="an answer")
            for request in BROKEN_OFF:
                break_off(address, request)
        n_broken = len(BROKEN_OFF) + 2  # a bad chunk and an upgrade are refused before their end
        wait_until(lambda: relay.n_broken_off == n_broken == engine.n_broken_off, "nobody was counted")
        assert relay.n_relayed == 1 and [seen.query for seen in engine.seen] == [PLANTED[0]] * 2
        break_off(relay_url, with_length(GOOD))  # before its answer
        wait_until(lambda: relay.n_relayed + relay.n_broken_off == n_broken + 2, "nobody was counted")
        assert not written.take()
    assert not search_bytes(f"{begun} {written.take()}".encode(), secrets, where="what was written")


def test_a_relay_without_a_thread_for_its_deadline_says_no_more_than_that_it_has_no_list(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a system does that has none left."""

    def refuse() -> None:
        raise RuntimeError("can't start new thread")

    with both() as (_, _, relay, relay_url):
        watchdog = Watchdog()
        monkeypatch.setattr(watchdog, "start", refuse)
        monkeypatch.setattr(fetch, "WATCHDOG", watchdog)
        written.take()
        assert ask(relay_url, with_length(GOOD)).startswith(b"HTTP/1.1 502 ")
        assert not written.take() and relay.n_failed == 1
