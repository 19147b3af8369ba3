"""People who ask a real server by hand: every header can be wrong."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from hushrank.live.wire import protocol
from hushrank.live.wire.credentials import make_secret


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]  # names in small letters
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def reason(self) -> str:
        """Of a refusal."""
        assert self.json["detail"]
        return str(self.json["reason"])


@dataclass(slots=True)
class Person:
    """A client that connects anew for every request."""

    url: str
    digest: str = ""
    credential: str = field(default_factory=make_secret)

    def ask(self, method: str, path: str, body: Any = None, **headers: str | None) -> Reply:
        """headers: added to the usual ones, names with underscores; None takes a usual one away."""
        usual = {"Authorization": f"Bearer {self.credential}", protocol.WIRE_HEADER: "1"}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in (usual | given).items() if value is not None}
        with closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=90)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def enrol(self, token: str) -> Reply:
        self.digest = self.ask("GET", protocol.FEDERATION).json["digest"]
        said = json.dumps({"token": token})
        return self.ask("POST", protocol.ENROL, said, Content_Type="application/json")

    def poll(self, after: int = 0, wait: float = 30) -> Any:
        """The news; None when there are none."""
        reply = self.ask("GET", f"{protocol.ROUND}?after={after}&wait={wait}")
        assert reply.status in (200, 204), reply
        return reply.json if reply.status == 200 else None

    def answer(self, round: int, body: bytes, *, phase: str = protocol.UPDATE_PHASE, **headers: str | None) -> Reply:
        usual: dict[str, str | None] = {
            "Content_Type": protocol.BODY_TYPE,
            "Hushrank_Agreement": self.digest,
            "Hushrank_Weight": "1",
        }
        return self.ask("PUT", protocol.update_path(round, phase), body, **{**usual, **headers})


def dense(*numbers: float) -> bytes:
    """The body of an update."""
    return np.array(numbers, "<f4").tobytes()


def enrol_people(url: str, directory: Path, n: int, *, first: int = 0) -> list[Person]:
    """So many, with the tokens from line `first` on."""
    tokens = (directory / "tokens.txt").read_text().split()[first : first + n]
    people = [Person(url) for _ in tokens]
    assert [person.enrol(token).status for person, token in zip(people, tokens, strict=True)] == [200] * n
    return people
