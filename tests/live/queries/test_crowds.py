"""Engines and relays that many use at once: idle connections, slow searches and made-up addresses stop nobody else."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from query_people import a_query, make_person, shared_source, wait_until
from scripted_server import write_certificate
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hushrank.live.queries.client import QueryClient
from hushrank.live.queries.engine import TitleEngine
from hushrank.live.queries.messages import SEARCH, SearchRequest, encode_answer, encode_request
from hushrank.live.queries.relay import MOST_PER_ADDRESS, QueryRelay
from hushrank.live.queries.requests import serve
from hushrank.personal.queries.local_log import FoundDocument


def test_idle_connections_close_neither_a_relay_nor_an_engine_for_others() -> None:
    engine = TitleEngine(shared_source().collection)
    with serve(engine.app()) as url, serve(QueryRelay(url).app()) as relay_url, ExitStack() as idle:
        for address in (url, relay_url):
            where = urlsplit(address)
            for _ in range(300):
                idle.enter_context(socket.create_connection((str(where.hostname), int(where.port or 0))))
            assert make_person(address, covered=False).search(a_query())


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_idle_connections_cut_no_search_that_waits_for_its_answer(tmp_path: Path, is_encrypted: bool) -> None:
    """They come after it, to the relay and to the engine: each has room for 200."""
    certificate = write_certificate(tmp_path / "both.pem", "127.0.0.1") if is_encrypted else None
    tls = None if certificate is None else (certificate, certificate)
    engine = SlowEngine()
    with (
        serve(engine.app(), tls=tls) as url,
        serve(QueryRelay(url, ca=certificate, timeout_s=60).app(), tls=tls) as relay_url,
        ThreadPoolExecutor(2) as pool,
        ExitStack() as idle,
    ):
        people = [QueryClient(each, covers=None, ca=certificate, timeout_s=60) for each in (url, relay_url)]
        found = [pool.submit(person.search, "slow") for person in people]
        wait_until(lambda: engine.n_slow == 2, "a search did not reach the engine")
        for address in (url, relay_url):
            where = urlsplit(address)
            for _ in range(250):
                idle.enter_context(socket.create_connection((str(where.hostname), int(where.port or 0))))
        assert [len(person.search("quick")) for person in people] == [1, 1]  # all idle ones have come
        engine.go_on.set()
        assert [len(each.result(60)) for each in found] == [1, 1]


def test_an_address_that_a_header_makes_up_counts_for_nothing() -> None:
    """Neither for the limit of each address, nor in the engine's log."""
    engine, slow = TitleEngine(shared_source().collection), SlowEngine()
    with (
        serve(slow.app()) as url,
        serve(QueryRelay(url, timeout_s=60).app()) as relay_url,
        ThreadPoolExecutor(MOST_PER_ADDRESS) as pool,
    ):
        held = [
            pool.submit(ask_from, "127.0.0.1", relay_url, "slow", {"X-Forwarded-For": f"198.51.100.{n}"})
            for n in range(MOST_PER_ADDRESS)
        ]
        wait_until(lambda: slow.n_slow == MOST_PER_ADDRESS, "a search did not reach the engine")
        assert ask_from("127.0.0.1", relay_url, "quick", {"X-Forwarded-For": "198.51.100.99"}) == 503
        slow.go_on.set()
        assert {each.result(30) for each in held} == {200}
    with serve(engine.app()) as url:
        assert ask_from("127.0.0.3", url, a_query(), {"X-Forwarded-For": "198.51.100.7"}) == 200
    assert [seen.address for seen in engine.seen] == ["127.0.0.3"]


class SlowEngine:
    """Answers "slow" once it may, and everything else at once."""

    def __init__(self) -> None:
        self.go_on, self.n_slow = threading.Event(), 0

    def app(self) -> Starlette:
        return Starlette(routes=[Route(SEARCH, self._answer, methods=["POST"])])

    async def _answer(self, request: Request) -> Response:
        if (await request.json())["query"] == "slow":
            self.n_slow += 1
            while not self.go_on.is_set():
                await asyncio.sleep(0.01)
        return Response(encode_answer([FoundDocument("d1", "a title")]))


def ask_from(source: str, url: str, query: str, headers: Mapping[str, str] | None = None) -> int:
    """The status of the answer to whoever has this address."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30, source_address=(source, 0))
    connection.request("POST", SEARCH, body=encode_request(SearchRequest(query, 1)), headers=dict(headers or {}))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_slow_searches_of_one_address_do_not_stop_a_relay_for_others() -> None:
    engine, said = SlowEngine(), list[int]()
    with serve(engine.app()) as url, serve(QueryRelay(url, timeout_s=60).app()) as relay_url:
        asking = [
            threading.Thread(target=lambda: said.append(ask_from("127.0.0.1", relay_url, "slow"))) for _ in range(60)
        ]
        for each in asking:
            each.start()
        wait_until(lambda: len(said) == 60 - MOST_PER_ADDRESS, "nobody was refused")
        wait_until(lambda: engine.n_slow == MOST_PER_ADDRESS, "a search did not reach the engine")
        assert set(said) == {503}
        assert ask_from("127.0.0.2", relay_url, "quick") == 200  # while all of them still wait
        engine.go_on.set()
        for each in asking:
            each.join()
    assert sorted(said) == [200] * MOST_PER_ADDRESS + [503] * (60 - MOST_PER_ADDRESS)


@pytest.mark.parametrize(("relays", "n_answered"), [([], 50), (["127.0.0.1"], 90)])
def test_an_engine_that_knows_its_relay_answers_all_who_search_through_it(
    relays: list[str], n_answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """90 people at once, as if nobody were on this machine."""
    monkeypatch.setattr("hushrank.live.server.connections.is_loopback", lambda _: False)
    engine = SlowEngine()
    with serve(engine.app(), relays=relays) as url, ThreadPoolExecutor(90) as pool:
        relay = QueryRelay(url, timeout_s=60)
        with serve(relay.app()) as relay_url:
            found = [pool.submit(ask_from, f"127.0.1.{n + 1}", relay_url, "slow") for n in range(90)]
            wait_until(lambda: engine.n_slow + relay.n_failed == 90, "a search did not reach the engine")
            engine.go_on.set()
            statuses = [each.result(30) for each in found]
    assert statuses.count(200) == n_answered and statuses.count(502) == 90 - n_answered


def test_a_relay_that_has_no_address_is_refused() -> None:
    engine = TitleEngine(shared_source().collection)
    for relays in (["relay.example.org"], ["192.0.2.0/24"], "192.0.2.7"):
        with pytest.raises(ValueError, match="which is no address"), serve(engine.app(), relays=relays):
            pytest.fail("it was served")


def test_others_are_served_over_tls_alone(tmp_path: Path) -> None:
    engine = TitleEngine(shared_source().collection)
    with (
        pytest.raises(ValueError, match="which others can reach, but there is no TLS"),
        serve(engine.app(), host="0.0.0.0"),
    ):
        pytest.fail("it was served")
    certificate = write_certificate(tmp_path / "both.pem", "127.0.0.1")
    with serve(engine.app(), tls=(certificate, certificate)) as url:
        assert url.startswith("https://127.0.0.1:")
        assert QueryClient(url, covers=None, ca=certificate).search(a_query())
