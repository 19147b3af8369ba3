"""Engines and relays that many use at once: idle connections and slow searches of one stop nobody else."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from query_people import a_query, make_person, shared_source
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


def ask_from(source: str, url: str, query: str) -> int:
    """The status of the answer to whoever has this address."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30, source_address=(source, 0))
    connection.request("POST", SEARCH, body=encode_request(SearchRequest(query, 1)))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_slow_searches_of_one_address_do_not_stop_a_relay_for_others() -> None:
    go_on, n_slow = threading.Event(), list[None]()

    async def answer(request: Request) -> Response:
        if (await request.json())["query"] == "slow":
            n_slow.append(None)
            while not go_on.is_set():
                await asyncio.sleep(0.01)
        return Response(encode_answer([FoundDocument("d1", "a title")]))

    app = Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])
    with serve(app) as url, serve(QueryRelay(url, timeout_s=60).app()) as relay_url:
        said = list[int]()
        asking = [
            threading.Thread(target=lambda: said.append(ask_from("127.0.0.1", relay_url, "slow"))) for _ in range(60)
        ]
        for each in asking:
            each.start()
        until = time.monotonic() + 20
        while len(said) < 60 - MOST_PER_ADDRESS or len(n_slow) < MOST_PER_ADDRESS:
            assert time.monotonic() < until, "nobody was refused"
            threading.Event().wait(0.01)
        assert set(said) == {503}
        assert ask_from("127.0.0.2", relay_url, "quick") == 200  # while all of them still wait
        go_on.set()
        for each in asking:
            each.join()
    assert sorted(said) == [200] * MOST_PER_ADDRESS + [503] * (60 - MOST_PER_ADDRESS)


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
