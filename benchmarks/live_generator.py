"""Many clients on few connections: HTTP/1.1 by hand, because the generator shares two cores with what it measures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hushrank.live.wire import protocol
from hushrank.live.wire.credentials import make_secret


class Connection(asyncio.Protocol):
    """A keep-alive connection: one request at a time, answers with a Content-Length."""

    def __init__(self, port: int) -> None:
        self._port, self._buffer = port, b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        _, has_length, after = head.lower().partition(b"content-length: ")
        length = int(after.partition(b"\r\n")[0]) if has_length else 0
        if len(rest) >= length and self._answer is not None:
            answer, self._answer, self._buffer = self._answer, None, rest[length:]
            answer.set_result((int(head[9:12]), rest[:length]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the server hung up ({exc})"))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The answer's status and body."""
        if self._transport.is_closing():  # after a refusal for asking too often
            await self.open()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    async def open(self) -> None:
        self._buffer = b""
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)

    def close(self) -> None:
        self._transport.close()


async def connect(port: int) -> Connection:
    connection = Connection(port)
    await connection.open()
    return connection


@dataclass(slots=True)
class Person:
    """One enrolled client: its requests, written out once."""

    credential: str
    head: bytes  # the headers that all its requests have
    after: int = 0  # the last round it knows of


@dataclass(slots=True)
class Seen:
    """What the crowd did."""

    acknowledged: list[tuple[int, bytes]] = field(default_factory=list)  # (round, body)
    update_s: list[float] = field(default_factory=list)  # seconds until an update was acknowledged
    n_requests: int = 0
    refused: dict[str, int] = field(default_factory=dict)


def make_person() -> Person:
    credential = make_secret()
    lines = (f"Authorization: Bearer {credential}", f"{protocol.WIRE_HEADER}: {protocol.WIRE_VERSION}", "Host: load")
    return Person(credential, "\r\n".join(lines).encode() + b"\r\n")


async def enrol(connection: Connection, person: Person, token: str) -> None:
    body = json.dumps({"token": token}).encode()
    head = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    request = b"POST %s HTTP/1.1\r\n" % protocol.ENROL.encode() + person.head + head + body
    while (reply := await connection.ask(request))[0] == 429:  # so many from one address: the server slows us down
        await asyncio.sleep(1)
    if reply[0] != 200:
        raise RuntimeError(f"a client was not enrolled: {reply[1].decode()}")


async def take_part(
    connection: Connection,
    people: Sequence[Person],
    seen: Seen,
    *,
    digest: str,
    n_params: int,
    until: float,
    seed: int,
    interval_s: float = 0.0,
) -> None:
    """Each of these people polls, fetches the ranker and answers, round after round; interval_s: between two answers on
    this connection, at least."""
    random = np.random.default_rng(seed)
    due = time.perf_counter() + interval_s * random.random()
    put = (
        f"{protocol.AGREEMENT_HEADER}: {digest}",
        f"{protocol.WEIGHT_HEADER}: 4",
        f"Content-Type: {protocol.BODY_TYPE}",
    )
    head = "\r\n".join(put).encode() + b"\r\nContent-Length: %d\r\n\r\n" % (4 * n_params)
    while time.perf_counter() < until:
        for person in people:
            poll = b"GET %s?after=%d&wait=1 HTTP/1.1\r\n" % (protocol.ROUND.encode(), person.after)
            status, answer = await connection.ask(poll + person.head + b"\r\n")
            seen.n_requests += 1
            if status != 200:
                continue
            news = json.loads(answer)
            if "round" not in news:
                return
            person.after = round = news["round"]
            if not news["is_asked"]:
                continue
            fetch = b"GET %s?round=%d HTTP/1.1\r\n" % (protocol.RANKER.encode(), round)
            await connection.ask(fetch + person.head + b"\r\n")
            body = (random.standard_normal(n_params, np.float32) * np.float32(0.01)).tobytes()
            path = protocol.update_path(round).encode()
            if interval_s:
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                due = max(due, time.perf_counter()) + interval_s
            began = time.perf_counter()
            status, answer = await connection.ask(b"PUT %s HTTP/1.1\r\n" % path + person.head + head + body)
            seen.n_requests += 2
            if status == 200:
                seen.update_s.append(time.perf_counter() - began)
                seen.acknowledged.append((round, body))
            else:
                reason = json.loads(answer)["reason"]
                seen.refused[reason] = seen.refused.get(reason, 0) + 1
