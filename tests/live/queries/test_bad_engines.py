"""Engines that answer badly: a search fails alike whichever text failed, and errors hold no word of the query."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

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


def test_while_a_cover_is_refused_its_query_is_never_searched_and_no_place_is_lost() -> None:
    """As docs/howto/query-privacy.md says: the cover is the same each time."""
    asked, is_well = list[str](), threading.Event()

    async def answer(request: Request) -> Response:
        asked.append((await request.json())["query"])
        return Response(GOOD) if is_well.is_set() or asked[-1] == a_query() else Response(status_code=500)

    with serve(Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])) as url:
        person = make_person(url)
        for _ in range(100):  # 200 texts, more than there are places
            with pytest.raises(EngineError, match="answered with status 500"):
                person.search(a_query())
        assert len(asked) == 200 and len(set(asked)) == 2 and person.n_failed == 100
        is_well.set()
        assert person.search(a_query()) == (FoundDocument("d1", "a title"),)
    person.close()
    assert person._places.take(64, timeout_s=0)  # all of them


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
    assert not any(word in said for word in OWN.split() for said in list_held(caught.value))


def list_held(error: BaseException) -> list[str]:
    """All that is said by what can be reached from an error, its traceback left out: also what is suppressed there."""
    waiting: list[object] = [error]
    found = dict[int, object]()
    while waiting:
        each = waiting.pop()
        if id(each) in found or each is None or isinstance(each, type):
            continue
        found[id(each)] = each
        if isinstance(each, BaseException):
            names = set(dir(each)) - {"__traceback__", "with_traceback"}
            waiting += [value for name in names if not callable(value := getattr(each, name, None))]
        elif isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list | tuple | set):
            waiting += each
    return [each.decode("latin-1") if isinstance(each, bytes) else f"{each!r}" for each in found.values()]


@pytest.mark.parametrize(
    "answer", [b"<p>zygomorphic</p>", b'"zygomorphic', b"zygomorphic\xff", b'["zygomorphic", NaN]']
)
def test_an_error_about_an_answer_keeps_no_word_of_it(answer: bytes) -> None:
    with pytest.raises(ValueError, match="it is not JSON") as caught:
        parse_answer(answer, n=1)
    assert not any("zygomorphic" in said for said in list_held(caught.value))


CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n100\r\n"  # and the rest never comes


@pytest.mark.parametrize("sent", [f"{OWN}\r\n\r\n", f"HTTP/1.1 {OWN}\r\n\r\n", CHUNKED + OWN])
def test_an_error_about_what_is_no_http_keeps_no_word_of_it(sent: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            with listener.accept()[0] as asking:
                asking.recv(1 << 16)
                asking.sendall(sent.encode())

        answered = pool.submit(answer)
        with pytest.raises(EngineError) as caught:
            fetch_answer(make_connector(f"http://127.0.0.1:{listener.getsockname()[1]}", None), b"{}", timeout_s=5)
        answered.result(5)
    assert not any(word in said for word in OWN.split() for said in list_held(caught.value))


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


@pytest.mark.parametrize("n_given", [0, 2, 5, 6, 100, 101])
def test_a_relay_cuts_the_list_to_what_was_asked_for(n_given: int) -> None:
    """Of more than 100 it hands on nothing."""

    async def answer(request: Request) -> Response:
        await request.body()
        return Response(encode_answer([FoundDocument(f"d{n}", "") for n in range(n_given)]))

    app = Starlette(routes=[Route(SEARCH, answer, methods=["POST"])])
    with serve(app) as url, serve(QueryRelay(url).app()) as relay_url:
        person = make_person(relay_url, covered=False)
        if n_given > 100:
            with pytest.raises(EngineError, match="status 502"):
                person.search("x", n=5)
        else:
            assert [each.name for each in person.search("x", n=5)] == [f"d{n}" for n in range(min(n_given, 5))]


def test_a_relay_hands_on_no_answer_that_a_device_would_refuse() -> None:
    with (
        scripted("twice", for_covers=False) as (url, _),
        serve(QueryRelay(url).app()) as relay_url,
        pytest.raises(EngineError, match="status 502"),
    ):
        make_person(relay_url, covered=False).search(OWN)


@pytest.mark.parametrize(
    ("text", "n"),
    [("a" * 1001, 30), ("a", 0), ("a", 101), ("a", -1), ("a", 3.0), ("a", True), ("a", "3"), ("a", None), (5, 3)],
)
def test_what_an_engine_must_refuse_is_refused_before_anything_is_sent(text: Any, n: Any) -> None:
    engine = TitleEngine(shared_source().collection)
    with serve(engine.app()) as url:
        person = make_person(url)
        with pytest.raises(ValueError, match=r"must be a text|n must be a whole number from 1 to 100"):
            person.search(text, n=n)
    assert not engine.seen and person.n_sent == 0


@pytest.mark.parametrize("account", ["a\r\nX-Evil: 1", "a\nb", "a\x00", "ä", "a\tb", "", " a", "a" * 4097, b"a", 5])
def test_an_account_that_is_no_header_is_refused_before_anything_is_sent(account: Any) -> None:
    with pytest.raises(ValueError, match="the account must be a text of 1 to 4096 ASCII letters") as caught:
        QueryClient("http://127.0.0.1:9", covers=None, account=account)
    assert "Evil" not in str(caught.value)


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
