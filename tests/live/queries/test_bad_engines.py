"""Engines that answer badly: a search fails alike whichever text failed, and errors hold no word of the query."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from query_people import a_query, cover_maker, make_person, shared_source
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hushrank.live.device.connector import make_connector
from hushrank.live.device.deadlines import Watchdog
from hushrank.live.queries import client, fetch
from hushrank.live.queries.client import QueryClient
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


def search_badly(kind: str, *, for_covers: bool) -> tuple[str, list[str], int]:
    """What the person hears, what the engine was asked, and how many texts failed."""
    with scripted(kind, for_covers=for_covers, own=a_query()) as (url, asked):
        person = make_person(url, timeout_s=1.0)
        with pytest.raises(EngineError) as caught:
            person.search(a_query())
    return str(caught.value).replace(url, "URL"), asked, person.n_failed


@pytest.mark.parametrize("kind", BAD)
def test_a_search_fails_alike_whether_the_engine_fails_the_query_or_the_cover(kind: str) -> None:
    """An engine that fails one text, and sees who comes again, learns nothing: both are sent again, or none."""
    of_cover, of_own = (search_badly(kind, for_covers=for_covers) for for_covers in (True, False))
    assert of_cover[0] == of_own[0] and set(of_cover[1]) == set(of_own[1])
    assert len(of_cover[1]) == len(of_own[1]) == 2 and of_cover[2] == of_own[2] == 1  # nothing is sent again


@pytest.mark.parametrize("for_covers", [True, False])
def test_a_list_is_held_until_every_text_is_answered(for_covers: bool) -> None:
    """The engine answers one of the texts only once it is let, and has answered the other long before."""
    answers, other_answered = threading.Event(), threading.Event()

    async def answer(request: Request) -> Response:
        if ((await request.json())["query"] != a_query()) == for_covers:
            await asyncio.to_thread(answers.wait, 30)
        else:
            other_answered.set()
        return Response(GOOD)

    with serve(Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])) as url, ThreadPoolExecutor(1) as pool:
        person = make_person(url)
        found = pool.submit(person.search, a_query())
        assert other_answered.wait(30)
        while person.n_sent < 1:
            threading.Event().wait(0.01)
        assert not found.done()
        answers.set()
        assert found.result(30) == (FoundDocument("d1", "a title"),)


def test_at_most_64_texts_of_a_device_are_under_way_and_each_set_as_a_whole() -> None:
    """Sets of 21 texts: three have places, the fourth sends nothing at all."""
    go_on, asked = threading.Event(), list[str]()

    async def answer(request: Request) -> Response:
        asked.append((await request.json())["query"])
        await asyncio.to_thread(go_on.wait, 30)
        return Response(GOOD)

    with serve(Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])) as url, ThreadPoolExecutor(4) as pool:
        person = QueryClient(url, covers=cover_maker(n_covers=20))
        found = [pool.submit(person.search, a_query(n)) for n in range(4)]
        while len(asked) < 63:
            threading.Event().wait(0.01)
        assert sum(thread.name == "query" for thread in threading.enumerate()) == 63
        go_on.set()
        assert all(len(each.result(30)) == 1 for each in found) and len(asked) == person.n_sent == 84


def refuse_threads(monkeypatch: pytest.MonkeyPatch, name: str, *, place: int) -> None:
    """As a system does that has none left: at the start of the so-manieth thread of this name, from 1."""
    start, started = threading.Thread.start, list[str]()

    def refuse(thread: threading.Thread) -> None:
        started.append(thread.name)
        if thread.name == name and started.count(name) == place:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.parametrize(("name", "place"), [("query", 1), ("query", 2), ("query", 3), ("deadlines", 1)])
def test_where_a_thread_is_missing_no_text_is_sent_and_the_next_search_finds_all_places(
    name: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set of 3 texts, of which none may go out alone."""
    watchdog = Watchdog()
    monkeypatch.setattr(client, "WATCHDOG", watchdog)
    monkeypatch.setattr(fetch, "WATCHDOG", watchdog)
    engine = TitleEngine(shared_source().collection)
    with serve(engine.app()) as url:
        person = QueryClient(url, covers=cover_maker(n_covers=2))
        refuse_threads(monkeypatch, name, place=place)
        with pytest.raises(EngineError, match="no thread left for the search"):
            person.search(a_query())
        person.close()
        assert not engine.seen and person.n_sent == 0
        assert not [thread for thread in threading.enumerate() if thread.name == "query"]
        for n in range(25):  # 75 texts, more than there are places
            assert person.search(a_query(n))
    assert len(engine.seen) == person.n_sent == 75 and person.n_failed == 0


def test_an_interrupt_before_the_last_thread_runs_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, start = TitleEngine(shared_source().collection), threading.Thread.start

    def interrupt(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "query" and sum(each.name == "query" for each in threading.enumerate()) == 2:
            raise KeyboardInterrupt

    with serve(engine.app()) as url:
        person = make_person(url)
        monkeypatch.setattr(threading.Thread, "start", interrupt)
        with pytest.raises(KeyboardInterrupt):
            person.search(a_query())
        person.close()
        monkeypatch.undo()
        assert not engine.seen and person.search(a_query()) and len(engine.seen) == 2


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


@pytest.mark.parametrize(("text", "n"), [("a" * 1001, 30), ("a", 0), ("a", 101), ("a", -1)])
def test_what_an_engine_must_refuse_is_refused_before_anything_is_sent(text: str, n: int) -> None:
    engine = TitleEngine(shared_source().collection)
    with serve(engine.app()) as url:
        person = make_person(url)
        with pytest.raises(ValueError, match=r"must be a text of 1 to 1000 letters|n must be a whole number"):
            person.search(text, n=n)
    assert not engine.seen and person.n_sent == 0


def test_letters_beyond_the_basic_plane_are_as_good_as_others() -> None:
    """990 of them are 4 bytes each; escaped they were 12 each, which is more than an engine reads."""
    engine, text = TitleEngine(shared_source().collection), "\U00020000" * 990
    with serve(engine.app()) as url:
        make_person(url).search(text)
    assert text in [seen.query for seen in engine.seen]


def test_a_list_that_a_device_takes_straight_comes_through_a_relay() -> None:
    """100 titles of 1,000 letters of 3 bytes each are 300 KB; escaped they were 600 KB, more than a device reads."""
    titles = {"documents": [{"name": f"d{n}", "title": "\u6f22" * 1000} for n in range(100)]}

    async def answer(request: Request) -> Response:
        await request.body()
        return Response(json.dumps(titles, ensure_ascii=False).encode())

    app = Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])
    with serve(app) as url, serve(QueryRelay(url).app()) as relay_url:
        straight, relayed = (make_person(each, covered=False).search("x", n=100) for each in (url, relay_url))
    assert len(straight) == 100 and straight == relayed


def test_half_of_a_surrogate_pair_becomes_a_question_mark_in_a_title_and_is_refused_in_a_name() -> None:
    assert parse_answer(encode_answer([FoundDocument("d1", "a\ud800b")]), n=1) == (FoundDocument("d1", "a?b"),)
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        parse_answer(b'{"documents": [{"name": "d\\ud800", "title": ""}]}', n=1)


def test_a_request_and_an_answer_come_back_as_they_were() -> None:
    found = (FoundDocument("d1", "ä title"), FoundDocument("d2", ""))
    assert parse_answer(encode_answer(found), n=2) == found
    assert parse_request(b'{"query": "a b", "n": 7}') == SearchRequest("a b", 7)
