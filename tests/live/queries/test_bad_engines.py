"""Engines that answer badly: covers that fail cost the person nothing, and errors hold no word of the query."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest
from query_people import a_query, make_person, shared_source
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hushrank.live.device.connector import make_connector
from hushrank.live.queries.engine import TitleEngine
from hushrank.live.queries.fetch import EngineError, fetch_answer
from hushrank.live.queries.messages import (
    MOST_ANSWER,
    MOST_REQUEST,
    SEARCH,
    SearchRequest,
    encode_answer,
    parse_answer,
    parse_request,
)
from hushrank.live.queries.relay import QueryRelay
from hushrank.live.queries.requests import serve
from hushrank.personal.queries.local_log import FoundDocument

OWN = "zygomorphic quockerwodger"
GOOD = encode_answer([FoundDocument("d1", "a title")])


async def drip() -> AsyncIterator[bytes]:
    """A byte now and then for ever, so that no pause is long."""
    while True:
        yield b" "
        await asyncio.sleep(0.1)


BAD: dict[str, Callable[[str], Response]] = {
    "error": lambda said: Response(f"cannot answer {said}", status_code=500),
    "no JSON": lambda said: Response(f"<p>{said}</p>"),
    "no list": lambda said: Response(json.dumps({"documents": said})),
    "too long": lambda _: Response(b" " * (MOST_ANSWER + 1)),
    "too many": lambda _: Response(encode_answer([FoundDocument(f"d{n}", "") for n in range(31)])),
    "twice": lambda _: Response(encode_answer([FoundDocument("d1", "")] * 2)),
    "no title": lambda said: Response(json.dumps({"documents": [{"name": said}]})),
    "slow": lambda _: StreamingResponse(drip()),
    "cut": lambda _: Response(GOOD[:9], headers={"content-length": str(len(GOOD))}),
}


@contextmanager
def scripted(kind: str, *, for_covers: bool, own: str = OWN) -> Iterator[tuple[str, list[str]]]:
    """An engine that answers covers, or everything but covers, badly; and what it was asked."""
    asked = list[str]()

    async def answer(request: Request) -> Response:
        query = (await request.json())["query"]
        asked.append(query)
        return BAD[kind](query) if (query != own) == for_covers else Response(GOOD)

    with serve(Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])) as url:
        yield url, asked


@pytest.mark.parametrize("kind", ["error", "slow", "cut", "too long"])
def test_covers_that_fail_are_counted_and_cost_the_person_nothing(kind: str) -> None:
    with scripted(kind, for_covers=True, own=a_query()) as (url, asked):
        person = make_person(url, timeout_s=1.0)
        assert person.search(a_query()) == (FoundDocument("d1", "a title"),)
        person.close()
    assert (person.n_covers_sent, person.n_covers_failed) == (1, 1) and len(asked) == 2  # nothing is sent again


def test_the_person_does_not_wait_for_a_cover_that_is_never_answered() -> None:
    """The engine answers the cover once the test has the person's list, and not before."""
    has_list = threading.Event()

    async def answer(request: Request) -> Response:
        if (await request.json())["query"] != a_query():
            await asyncio.to_thread(has_list.wait, 30)
        return Response(GOOD)

    with serve(Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])) as url:
        person = make_person(url)
        assert person.search(a_query())
        has_list.set()
        person.close()
    assert (person.n_covers_sent, person.n_covers_failed) == (1, 0)  # and it is read to its end all the same


@pytest.mark.parametrize(
    ("kind", "said"),
    {
        "error": "answered with status 500 and no list",
        "no JSON": "cannot be read: it is not JSON",
        "no list": 'cannot be read: it has no list "documents"',
        "too long": f"more than {MOST_ANSWER} bytes",
        "too many": "31 documents where 30 were asked for",
        "twice": "it has a document twice",
        "no title": "no name or no title",
        "slow": "did not answer within 1 s",
        "cut": "IncompleteRead|ended its answer before its end|does not answer",
    }.items(),
)
def test_a_bad_answer_to_the_query_itself_is_an_error_without_its_words(kind: str, said: str) -> None:
    with scripted(kind, for_covers=False) as (url, asked):
        person = make_person(url, timeout_s=1.0)
        with pytest.raises(EngineError, match=said) as caught:
            person.search(OWN)
        person.close()
    assert sorted(query == OWN for query in asked) == [False, True]  # the cover went out, nothing was sent again
    error: BaseException | None = caught.value
    while error is not None:
        assert not any(word in f"{error!r} {vars(error)}" for word in OWN.split())
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b'{"query": "a"}', b'{"query": 1, "n": 2}', b'{"query": "a", "n": true}', b"[" * 5000),
        *(b'{"query": "", "n": 1}', b'{"query": "a", "n": 101}', b'{"query": "a", "n": 1, "user": "anna"}'),
    ],
)
def test_what_is_no_search_is_refused_by_engine_and_relay_and_never_repeated(body: bytes) -> None:
    engine = TitleEngine(shared_source().collection)
    with serve(engine.app()) as url, serve(QueryRelay(url).app()) as relay_url:
        for address in (url, relay_url):
            with pytest.raises(EngineError, match="status 400"):
                fetch_answer(make_connector(address, None), body)
        with pytest.raises(EngineError, match="status 413"):
            fetch_answer(make_connector(url, None), b" " * (MOST_REQUEST + 1))
    assert not engine.seen
    with pytest.raises(ValueError, match=r"search|query|n must|JSON|Expecting"):
        parse_request(body)


def test_a_relay_hands_on_no_answer_that_a_device_would_refuse() -> None:
    with (
        scripted("twice", for_covers=False) as (url, _),
        serve(QueryRelay(url).app()) as relay_url,
        pytest.raises(EngineError, match="status 502"),
    ):
        make_person(relay_url, covered=False).search(OWN)


def test_a_request_and_an_answer_come_back_as_they_were() -> None:
    found = (FoundDocument("d1", "ä title"), FoundDocument("d2", ""))
    assert parse_answer(encode_answer(found), n=2) == found
    assert parse_request(b'{"query": "a b", "n": 7}') == SearchRequest("a b", 7)
