"""A real server process over loopback: every route, every refusal, nothing about anybody else."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from asking_people import Person, dense, enrol_people
from live_processes import Server, create_federation, serving

from hushrank.live.server.creation import read_keys
from hushrank.live.wire import protocol
from hushrank.live.wire.credentials import make_secret
from hushrank.rankers.named import unpack_ranker

GOOD = dense(0.1, 0.2, 0.3)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A federation of three features whose rounds last, because nobody waits for a third client."""
    directory = tmp_path_factory.mktemp("server") / "f"
    create_federation(directory, "--features", 3, deadline_s=600, body_timeout_s=1, max_norm=1, min_clients=3)
    with serving(directory) as server:
        yield server


@pytest.fixture(scope="module")
def people(server: Server) -> list[Person]:
    """Three who are asked in round 1."""
    return enrol_people(server.url, server.directory, 3)


def test_everybody_may_read_the_agreement_and_the_description(server: Server) -> None:
    stranger = Person(server.url)
    agreed = stranger.ask("GET", protocol.FEDERATION, Authorization=None, Hushrank_Wire=None).json
    assert agreed["wire"] == 1 and agreed["agreement"]["n_features"] == 3 and len(agreed["digest"]) == 64
    assert stranger.ask("GET", protocol.HEALTH).json == {"status": "ok"}
    assert stranger.ask("GET", protocol.OPENAPI).json["openapi"] == "3.1.0"


def test_a_round_from_beginning_to_end(server: Server, people: list[Person]) -> None:
    one, two, three = people
    news = one.poll()
    assert news["round"] == 1 and news["is_asked"] and 0 < news["closes_in_s"] <= 600 and news["last"] is None
    reply = one.ask("GET", f"{protocol.RANKER}?round=1")
    ranker, params, origin = unpack_ranker(reply.content, name="answer")
    assert params.tolist() == [0, 0, 0] and origin == {"agreement": one.digest, "round": 1} and ranker.n_features == 3
    assert one.ask("GET", protocol.RANKER, If_None_Match=reply.headers["etag"]).status == 304
    heard: list[Any] = []
    waiting = threading.Thread(target=lambda: heard.append(Person.poll(two, after=1)))
    waiting.start()
    assert one.answer(1, dense(0.3, 0, 0)).json == {"accepted": True}
    assert one.answer(1, dense(0.3, 0, 0)).json == {"accepted": True, "again": True}
    assert one.answer(1, dense(0.4, 0, 0)).reason == "answered"
    said = {"accepted_updates": 1, "last": {"round": 1, "outcome": "open"}, "received_updates": 2}
    assert one.ask("GET", protocol.ME).json == said
    other = Person(server.url, two.digest, two.credential)
    assert other.answer(1, dense(0, 0.3, 0)).status == three.answer(1, dense(0, 0, 0.3)).status == 200
    waiting.join(timeout=30)
    assert heard[0]["round"] == 2 and heard[0]["last"] == {"round": 1, "outcome": "closed"}
    assert one.answer(1, dense(0.3, 0, 0)).json == {"accepted": True, "again": True}
    assert one.ask("GET", f"{protocol.RANKER}?round=1").reason == "round"
    _, params, origin = unpack_ranker(one.ask("GET", protocol.RANKER).content, name="answer")
    assert params.tolist() == pytest.approx([0.1, 0.1, 0.1]) and origin["round"] == 2


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"Hushrank_Wire": "2"}, 426, "version"),
        ({"Hushrank_Wire": None}, 426, "version"),
        ({"Authorization": None}, 401, "credential"),
        ({"Authorization": "Bearer " + "x" * 43}, 401, "credential"),
        ({"Authorization": "Basic " + "x" * 43}, 401, "credential"),
        ({"Content_Type": "text/plain"}, 415, "media"),
        ({"Content_Type": None}, 415, "media"),
        ({"Hushrank_Agreement": "0" * 64}, 409, "agreement"),
        ({"Hushrank_Agreement": None}, 409, "agreement"),
        ({"Hushrank_Weight": "5"}, 422, "weight"),
        ({"Hushrank_Weight": "0"}, 422, "weight"),
        ({"Hushrank_Weight": None}, 422, "weight"),
        ({"body": GOOD + b"x"}, 413, "size"),
        ({"body": GOOD[:-1]}, 422, "shape"),
        ({"body": b""}, 422, "shape"),
        ({"body": dense(1, float("nan"), 0)}, 422, "not-finite"),
        ({"body": dense(1, float("inf"), 0)}, 422, "not-finite"),
        ({"body": dense(1, 1, 1)}, 422, "norm"),
        ({"round": 999}, 404, "round"),
        ({"round": 0}, 404, "round"),
        ({"round": -1}, 400, "request"),
        ({"round": "9" * 30}, 400, "request"),
        ({"round": "x"}, 400, "request"),
        ({"phase": "keys"}, 404, "phase"),
        ({"phase": ""}, 404, "phase"),
        ({"phase": "Update"}, 404, "phase"),
        ({"round": 999, "phase": "keys"}, 404, "phase"),
    ],
)
def test_bad_updates_are_refused_with_the_reason_and_the_round_goes_on(
    server: Server, people: list[Person], change: dict[str, Any], status: int, reason: str
) -> None:
    person = Person(server.url, people[0].digest, people[0].credential)
    number, body = change.get("round", 1), change.get("body", GOOD)
    headers = {key: value for key, value in change.items() if key not in ("round", "phase", "body")}
    reply = person.answer(number, body, phase=change.get("phase", protocol.UPDATE_PHASE), **headers)
    assert (reply.status, reply.reason) == (status, reason)
    assert "0.1" not in reply.content.decode()  # what was sent is not said again
    assert person.ask("GET", protocol.ME).status == 200


def test_tokens_are_refused_alike_whatever_is_wrong_with_them(server: Server, people: list[Person]) -> None:
    used = (server.directory / "tokens.txt").read_text().split()[0]
    replies = [Person(server.url).enrol(token) for token in (used, make_secret(), "x", "")]
    assert {(reply.status, reply.content) for reply in replies} == {(403, replies[0].content)}
    assert replies[0].reason == "token"
    again = Person(server.url, credential=people[0].credential).enrol(used)
    assert again.status == 200 and again.json.keys() == {"accepted_updates"}


@pytest.mark.parametrize(
    ("body", "kind", "status", "reason"),
    [
        (b"{}", "application/json", 400, "request"),
        (b"[1]", "application/json", 400, "request"),
        (b"\xff", "application/json", 400, "request"),
        (b"[" * 1000, "application/json", 400, "request"),
        (b'{"token": 7}', "application/json", 400, "request"),
        (b'{"token": "x", "another": "key"}', "application/json", 400, "request"),
        (b'{"token": "x"}', "text/plain", 415, "media"),
        (b" " * 2000, "application/json", 413, "size"),
    ],
)
def test_bad_enrolments_are_refused(server: Server, body: bytes, kind: str, status: int, reason: str) -> None:
    reply = Person(server.url).ask("POST", protocol.ENROL, body, Content_Type=kind)
    assert (reply.status, reply.reason) == (status, reason)


@pytest.mark.parametrize("query", ["after=x", "after=-1", "wait=61", "wait=nan", "wait=", "after=1e3"])
def test_bad_polls_are_refused(server: Server, people: list[Person], query: str) -> None:
    reply = Person(server.url, credential=people[0].credential).ask("GET", f"{protocol.ROUND}?{query}")
    assert (reply.status, reply.reason) == (400, "request")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/me/", 404),
        ("DELETE", "/v1/me", 405),
        ("PUT", "/v1/rounds/1", 404),
        ("PUT", "/v1/rounds/1/update/", 404),
    ],
)
def test_other_paths_and_methods_are_refused(server: Server, method: str, path: str, status: int) -> None:
    reply = Person(server.url).ask(method, path)
    assert (reply.status, reply.reason) == (status, "path")


def test_metrics_are_for_the_operator(server: Server, people: list[Person]) -> None:
    assert people[0].ask("GET", protocol.METRICS).reason == "credential"
    operator = Person(server.url, credential=read_keys(server.directory).operator_token)
    text = operator.ask("GET", protocol.METRICS).content.decode()
    assert 'hushrank_refused_total{reason="credential"}' in text and "hushrank_clients_enrolled 3" in text
    assert operator.ask("GET", protocol.ME).reason == "credential"


def connect(server: Server) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)


def read_all(connection: socket.socket) -> bytes:
    """Until the server hangs up."""
    said = b""
    while part := connection.recv(4096):
        said += part
    return said


def test_a_trickled_body_is_refused_and_the_connection_ended(server: Server, people: list[Person]) -> None:
    one = people[0]
    lines = (
        f"PUT {protocol.update_path(2)} HTTP/1.1",
        f"Authorization: Bearer {one.credential}",
        f"Hushrank-Wire: 1\r\nHushrank-Agreement: {one.digest}\r\nHushrank-Weight: 1",
        f"Host: x\r\nContent-Type: {protocol.BODY_TYPE}\r\nContent-Length: 12\r\n\r\n",
    )
    with connect(server) as connection:
        connection.sendall("\r\n".join(lines).encode() + GOOD[:5])
        said = read_all(connection)
    assert said.startswith(b"HTTP/1.1 408") and b'"reason": "slow"' in said


@pytest.mark.parametrize("beginning", [b"", b"GET /v1/health HTTP/1.1\r\nHost:"])
def test_a_head_that_never_ends_is_not_waited_for(server: Server, beginning: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(beginning)
        with suppress(ConnectionResetError):  # it is ended at once, whatever is on its way
            assert read_all(connection) == b""


def send_for_ever(connection: socket.socket) -> None:
    while True:
        connection.sendall(bytes(1000))
        time.sleep(0.05)


def test_a_body_that_never_ends_is_refused_at_once_and_not_listened_to_for_long(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"POST /v1/enrol HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 426")
        with pytest.raises(ConnectionError):
            send_for_ever(connection)


def test_a_body_without_a_length_is_refused(server: Server, people: list[Person]) -> None:
    chunks: Any = iter([GOOD])  # Why: of unknown length, so that http.client sends it in chunks
    reply = Person(server.url, people[0].digest, people[0].credential).answer(2, chunks)
    assert (reply.status, reply.reason) == (411, "size")


def test_who_asks_too_often_has_to_wait_and_nobody_else(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, requests_per_second=1, burst=5)
    with serving(tmp_path / "f") as server:
        one, two = (Person(server.url) for _ in range(2))
        for person, token in zip((one, two), (tmp_path / "f" / "tokens.txt").read_text().split(), strict=False):
            said = json.dumps({"token": token})
            assert person.ask("POST", protocol.ENROL, said, Content_Type="application/json").status == 200
        replies = [one.ask("GET", protocol.ME) for _ in range(8)]
        refused = [reply for reply in replies if reply.status == 429]
        assert refused and refused[0].reason == "rate" and int(refused[0].headers["retry-after"]) >= 1
        assert two.ask("GET", protocol.ME).status == 200


def test_messages_of_an_evolution_strategy_are_twelve_bytes(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, "--method", "foltr-es", min_clients=2)
    with serving(tmp_path / "f") as server:
        one, two = enrol_people(server.url, tmp_path / "f", 2)
        one.poll()
        assert one.answer(1, struct.pack("<Iff", 1, 0.5, 2.0)).reason == "reward"
        assert one.answer(1, struct.pack("<If", 1, 0.5)).reason == "shape"
        assert one.answer(1, struct.pack("<Iff", 1, 1.0, 0.0), Hushrank_Weight="2").reason == "weight"
        assert one.answer(1, struct.pack("<Iff", 1, 1.0, 0.0), Hushrank_Weight=None).status == 200
        assert two.answer(1, struct.pack("<Iff", 2, 0.0, 1.0)).status == 200
        assert two.poll(after=1)["round"] == 2


def test_stopping_answers_who_waits_and_ends_well(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, min_clients=2)
    with serving(tmp_path / "f") as server:
        (one,) = enrol_people(server.url, tmp_path / "f", 1)
        heard: list[Any] = []
        ask = threading.Thread(target=lambda: heard.append(one.ask("GET", f"{protocol.ROUND}?wait=60")))
        ask.start()
        time.sleep(0.5)
    ask.join(timeout=30)
    assert heard[0].reason == "stopping" and "retry-after" in heard[0].headers


def test_over_tls_with_the_servers_own_certificate(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, "--tls", "127.0.0.1")
    with serving(tmp_path / "f") as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(tmp_path / "f" / "tls-certificate.pem"))
        with urllib.request.urlopen(server.url + protocol.HEALTH, context=context) as reply:
            assert json.load(reply) == {"status": "ok"}
