"""The way of a query over real HTTP on loopback: what the engine's log holds, and what comes back to the person."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from query_people import a_query, cover_maker, make_person, shared_source
from secret_search import search_bytes, text_secret
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hushrank.live.queries.client import QueryClient
from hushrank.live.queries.engine import SeenQuery, TitleEngine
from hushrank.live.queries.fetch import EngineError
from hushrank.live.queries.messages import MOST_LISTED, SEARCH, SearchRequest, encode_request, parse_answer
from hushrank.live.queries.relay import QueryRelay
from hushrank.live.queries.requests import serve
from hushrank.live.queries.search import PersonalSearch
from hushrank.personal.queries.local_log import FoundDocument, LoggedSearch, share_words
from hushrank.personal.queries.rerank import PersonalRanker
from hushrank.privacy.cover_topics import fit_topics
from hushrank.streams import seed_key

PLANTED = ("zygomorphic", "quockerwodger", "xylopolist")


@pytest.fixture
def engine() -> TitleEngine:
    return TitleEngine(shared_source().collection)


@pytest.fixture
def url(engine: TitleEngine) -> Iterator[str]:
    with serve(engine.app()) as address:
        yield address


def log_bytes(engine: TitleEngine) -> bytes:
    """All that the engine saw, as one text."""
    return json.dumps([seen._asdict() for seen in engine.seen]).encode()


def without_length(seen: SeenQuery) -> dict[str, str]:
    """Of the body, which follows from the query's."""
    return {**seen.headers, "content-length": ""}


def test_without_covers_the_log_names_the_user_beside_the_query(engine: TitleEngine, url: str) -> None:
    found = make_person(url, 3, covered=False).search(a_query())
    (seen,) = engine.seen
    assert seen.query == a_query() and seen.headers["cookie"] == "user=person-3" and seen.address == "127.0.0.1"
    assert [each.name for each in found] == [each.name for each in engine.find(SearchRequest(a_query(), 30))]


def test_with_covers_the_log_has_two_queries_that_nothing_but_words_tells_apart(engine: TitleEngine, url: str) -> None:
    person = make_person(url)
    found = person.search(a_query())
    person.close()
    first, second = engine.seen
    assert a_query() in (first.query, second.query) and first.query != second.query
    assert without_length(first) == without_length(second)
    assert len(first.query.split()) == len(second.query.split()) == 2
    assert found == tuple(engine.find(SearchRequest(a_query(), 30)))
    assert (person.n_sent, person.n_failed) == (2, 0)


def test_a_repeated_query_has_the_same_cover_in_the_log(engine: TitleEngine, url: str) -> None:
    person = make_person(url)
    for _ in range(3):
        person.search(a_query())
        person.close()
    assert len(engine.seen) == 6 and len({seen.query for seen in engine.seen}) == 2


def test_a_query_that_is_changed_tells_no_more_than_its_cover(engine: TitleEngine, url: str) -> None:
    """Longer, turned round, a word twice: both texts of a set relate to both of the one before in the same way."""
    collection, person = shared_source().collection, make_person(url)
    for title in collection.titles[:8]:
        first, second, third = (collection.words[word] for word in title[:3])
        sets: list[tuple[str, list[str]]] = []
        for text in (f"{first} {second}", f"{first} {second} {third}", f"{second} {first}", f"{first} {first}"):
            engine.seen.clear()
            person.search(text)
            sets.append((text, [seen.query for seen in engine.seen]))
        (cover,) = (set(seen) - {text} for text, seen in sets[:1])
        a, b = next(iter(cover)).split()
        covers = [next(iter(set(seen) - {text})) for text, seen in sets]
        assert covers == [f"{a} {b}", f"{a} {b} {covers[1].split()[-1]}", f"{b} {a}", f"{a} {a}"]


def test_devices_of_one_account_with_one_secret_send_the_same_covers(engine: TitleEngine, url: str) -> None:
    for _ in range(2):
        make_person(url, 3).search(a_query())
    assert len(engine.seen) == 4 and len({seen.query for seen in engine.seen}) == 2


def test_a_device_refuses_topics_that_it_has_not_used_so_far() -> None:
    made = cover_maker()
    pinned = replace(made, version=made.topics.version)
    assert pinned.made.words.tolist() == made.made.words.tolist()
    collection = shared_source().collection
    refitted = fit_topics(collection.titles[:-5], collection.n_words, key=seed_key(1), n_topics=12)
    with pytest.raises(ValueError, match="not those that this device has used so far"):
        replace(pinned, topics=refitted)
    assert replace(made, topics=refitted, version=None).topics is refitted  # on purpose


def test_a_process_that_ends_after_its_search_has_still_sent_every_cover(engine: TitleEngine, url: str) -> None:
    """Nobody calls close."""
    script = (
        "from query_people import a_query, cover_maker; from dataclasses import replace\n"
        "from hushrank.live.queries.client import QueryClient\n"
        "from hushrank.privacy.covers import CoverSettings\n"
        "covers = replace(cover_maker(n_covers=5), settings=CoverSettings(5, 0.3))\n"
        f"QueryClient({url!r}, covers=covers).search(a_query())"
    )
    places = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": places})
    assert len(engine.seen) == 6 and sum(seen.query == a_query() for seen in engine.seen) == 1


def test_through_a_relay_the_log_has_the_groups_queries_without_anybodys_name(engine: TitleEngine, url: str) -> None:
    relay = QueryRelay(url)
    with serve(relay.app()) as relay_url:
        people = [make_person(relay_url, n, covered=False) for n in range(3)]
        found = [person.search(a_query(n)) for n, person in enumerate(people)]
    assert [seen.query for seen in engine.seen] == [a_query(n) for n in range(3)]  # no covers
    rest = [{**seen._asdict(), "time": 0, "query": "", "headers": without_length(seen)} for seen in engine.seen]
    assert rest[0] == rest[1] == rest[2]
    names = [text_secret(f"person-{n}") for n in range(3)]
    assert not search_bytes(log_bytes(engine), names, where="the engine's log")
    assert {name for seen in engine.seen for name in seen.headers} == {
        *("host", "accept-encoding", "content-length", "content-type", "connection")
    }
    assert found == [tuple(engine.find(SearchRequest(a_query(n), 30))) for n in range(3)] and relay.n_relayed == 3


def test_through_a_relay_all_requests_are_alike_but_for_the_words_of_the_query(engine: TitleEngine, url: str) -> None:
    """Whatever a device asks for and however it says so; straight, the engine sees it."""
    numbers, query = (1, 17, 30, MOST_LISTED), " ".join(map(a_query, range(8)))
    with serve(QueryRelay(url).app()) as relay_url:
        found = [make_person(relay_url, n, covered=False).search(query, n=n) for n in numbers]
        for address in (relay_url, url):
            where = urlsplit(address)
            connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
            body = json.dumps({"n": 7, "query": query}, indent=3)
            connection.request("POST", f"{SEARCH}?user=anna", body=body, headers={"X-User": "anna", "User-Agent": "a"})
            assert len(parse_answer(connection.getresponse().read(), n=7)) == 7
            connection.close()
    *relayed, straight = engine.seen
    assert len({json.dumps(seen._replace(time=0.0)) for seen in relayed}) == 1 and len(relayed) == 5
    assert relayed[0].n == MOST_LISTED and relayed[0].target == SEARCH
    assert (straight.n, straight.target, straight.headers["x-user"]) == (7, f"{SEARCH}?user=anna", "anna")
    assert [len(each) for each in found[:3]] == [1, 17, 30]
    assert found == [tuple(engine.find(SearchRequest(query, n))) for n in numbers]


def ask_plainly(url: str, query: str) -> int:
    """The status of the answer to a program that is not this one."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    connection.request("POST", SEARCH, body=json.dumps({"query": query, "n": 3}))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_a_relay_passes_on_words_and_not_how_they_are_spelt(engine: TitleEngine, url: str) -> None:
    texts = ("foo bar", "  Foo\u00a0BAR\t", "foo,  bar!", "foo\nbar", "fOO\u2003\u200bbar")
    relay = QueryRelay(url)
    with serve(relay.app()) as relay_url:
        assert [ask_plainly(relay_url, text) for text in texts] == [200] * len(texts)
        assert len({json.dumps(seen._replace(time=0.0)) for seen in engine.seen}) == 1 and len(engine.seen) == 5
        assert engine.seen[0].query == "foo bar"
        assert ask_plainly(relay_url, " ".join(f"w{n}" for n in range(30))) == 200
        assert engine.seen[-1].query.split() == [f"w{n}" for n in range(20)]
        assert ask_plainly(relay_url, " ... ") == 400 and len(engine.seen) == 6


def test_an_engines_log_holds_headers_that_come_twice(engine: TitleEngine, url: str) -> None:
    where, body = urlsplit(url), encode_request(SearchRequest(a_query(), 1))
    with socket.create_connection((str(where.hostname), int(where.port or 0))) as asking:
        head = f"POST {SEARCH} HTTP/1.1\r\nhost: x\r\nx-user: anna\r\nx-user: b\r\ncontent-length: {len(body)}\r\n\r\n"
        asking.sendall(head.encode() + body)
        assert asking.recv(100).startswith(b"HTTP/1.1 200")
    assert engine.seen[0].headers["x-user"] == "anna, b"


def personal_search(client: QueryClient, history: list[LoggedSearch] | None = None) -> PersonalSearch:
    return PersonalSearch(client, PersonalRanker(share_words(shared_source())), history or [], clock=lambda: 900.0)


def planted_history() -> list[LoggedSearch]:
    """A profile of words that stand nowhere else, clicked on often."""
    listed = tuple(FoundDocument(f"d{n}", f"{word} of mine") for n, word in enumerate(PLANTED))
    return [LoggedSearch(n, f"{word} please", listed, ("d0", "d1", "d2"), ("d1",)) for n, word in enumerate(PLANTED)]


def record_requests(app: ASGIApp) -> tuple[ASGIApp, list[bytes]]:
    """An application that notes all that whoever asks says, head and body."""
    said = list[bytes]()

    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        lines = [f"{name.decode()}: {value.decode()}".encode() for name, value in scope["headers"]]
        said.append(b"\n".join([scope["raw_path"] + b"?" + scope["query_string"], *lines, b"", b""]))
        place = len(said) - 1

        async def note() -> Message:
            message = await receive()
            said[place] += message.get("body", b"")
            return message

        await app(scope, note, send)

    return recording, said


@pytest.mark.parametrize("way", ["covers", "relay", "both"])
def test_planted_words_of_the_profile_appear_nowhere_in_what_leaves(engine: TitleEngine, url: str, way: str) -> None:
    """Neither in the engine's log nor in what a relay receives."""
    app, received = record_requests(QueryRelay(url).app())
    with serve(app) as relay_url:
        client = make_person(url if way == "covers" else relay_url, covered=way != "relay")
        mine = personal_search(client, planted_history())
        for n in range(5):
            found = mine.search(a_query(n))
            mine.finish(found, clicked=[found.shown[-1].name])
        client.close()
    n_texts = 5 if way == "relay" else 10
    assert len(engine.seen) == n_texts and len(received) == (0 if way == "covers" else n_texts)
    secrets = [text_secret(word) for word in PLANTED]
    assert not search_bytes(log_bytes(engine), secrets, where="the engine's log")
    assert not search_bytes(b"\n".join(received), secrets, where="what the relay receives")
    own = [text_secret(word) for word in a_query().split()]  # the search finds what is there
    assert search_bytes(b"\n".join(received) or log_bytes(engine), own, where="what leaves")
    assert search_bytes(f"{mine.history}".encode(), secrets, where="the device's own log")


def test_covers_through_a_relay_leave_two_texts_that_nothing_but_words_tells_apart(
    engine: TitleEngine, url: str
) -> None:
    app, received = record_requests(QueryRelay(url).app())
    with serve(app) as relay_url:
        person = make_person(relay_url, 3)
        found = person.search(a_query())
        person.close()
    first, second = (seen._replace(time=0.0, query="", headers=without_length(seen)) for seen in engine.seen)
    assert first == second and first.n == MOST_LISTED and "cookie" not in first.headers
    texts = [seen.query for seen in engine.seen]
    assert a_query() in texts and len(set(texts)) == 2 and [len(text.split()) for text in texts] == [2, 2]
    assert not search_bytes(log_bytes(engine), [text_secret("person-3")], where="the engine's log")
    assert found == tuple(engine.find(SearchRequest(a_query(), 30)))
    heads, bodies = zip(*(said.split(b"\n\n", 1) for said in received), strict=True)
    assert len(heads) == 2 and b"person-3" in heads[0]  # the relay sees who asks: the account was given to it
    assert len({re.sub(rb"content-length: \d+", b"", head) for head in heads}) == 1
    asked = [json.loads(body) for body in bodies]
    assert sorted(each["query"] for each in asked) == sorted(texts) and [each["n"] for each in asked] == [30, 30]


def test_covers_reach_neither_the_person_nor_the_local_log(engine: TitleEngine, url: str) -> None:
    client = make_person(url)
    mine = personal_search(client)
    for n in range(5):
        found = mine.search(a_query(n))
        mine.finish(found, clicked=[found.shown[0].name])
        assert {each.name for each in found.shown} == {each.name for each in engine.find(SearchRequest(a_query(n), 30))}
    client.close()
    covers = {seen.query for seen in engine.seen} - {a_query(n) for n in range(5)}
    assert len(covers) == 5 and [entry.query for entry in mine.history] == [a_query(n) for n in range(5)]
    only_theirs = {each.name for cover in covers for each in engine.find(SearchRequest(cover, 30))} - {
        each.name for entry in mine.history for each in entry.general
    }
    assert only_theirs and not {name for entry in mine.history for name in entry.shown} & only_theirs


def test_the_list_is_re_ranked_by_what_the_person_clicked_before(url: str) -> None:
    mine = personal_search(make_person(url, covered=False))
    before = mine.search(a_query())
    wanted = before.general[-1].name
    mine.finish(before, clicked=[wanted])
    after = mine.search(a_query().upper() + "!")  # the same words
    assert after.query == a_query() and after.general == before.general
    places = [[each.name for each in found.shown].index(wanted) for found in (before, after)]
    assert places[1] < places[0] and places[1] == 0
    with pytest.raises(ValueError, match="a click on a document that was not listed"):
        mine.finish(after, clicked=["d-other"])


def test_a_query_without_a_word_and_an_open_network_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no word in the query"):
        make_person(url).search(" ... ")
    with pytest.raises(ValueError, match="would read this device's queries"):
        QueryClient("http://engine.example.org", covers=None)


def test_an_engine_that_is_not_there_is_said_to_be_so_without_the_query() -> None:
    with serve(TitleEngine(shared_source().collection).app()) as gone:
        pass
    with pytest.raises(EngineError, match=r"does not answer \(ConnectionRefusedError\)") as caught:
        make_person(gone).search(PLANTED[0])
    assert PLANTED[0] not in repr(caught.value)


def test_a_relay_without_its_engine_says_so() -> None:
    with ExitStack() as stack:
        with serve(TitleEngine(shared_source().collection).app()) as gone:
            relay = QueryRelay(gone)
            relay_url = stack.enter_context(serve(relay.app()))  # while the engine's port is taken
        with pytest.raises(EngineError, match="answered with status 502"):
            make_person(relay_url, covered=False).search(PLANTED[0])
    assert relay.n_failed == 1
