"""Requests on a connection of this server, within one process: what is written, and when."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from hushrank.live.server.connections import ConnectionGuard, GuardedProtocol
from hushrank.live.server.requests import Request, Response

ASK = b"GET /it HTTP/1.1\r\nhost: x\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written, piece by piece."""

    def __init__(self) -> None:
        super().__init__({"peername": ("198.51.100.1", 5), "sockname": ("198.51.100.2", 80)})
        self.written, self.is_closed = list[bytes](), False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def ask(respond: Callable[[bytes], Response], *pieces: bytes) -> tuple[Wire, GuardedProtocol]:
    """respond: to the body, where there is one. pieces: of what the other side sends, in time."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        has_body = scope["method"] == "PUT"
        body = await Request(scope, receive).body(most=100, within_s=60) if has_body else b""
        await respond(body).send(scope, send)

    guard = ConnectionGuard(9, 0, 60.0, lambda *_, **__: None, lambda: 0.0)
    config = uvicorn.Config(app, ws="none", log_config=None, access_log=False, server_header=False, date_header=False)
    config.load()
    wire, protocol = Wire(), GuardedProtocol(config=config, server_state=ServerState(), app_state={}, guard=guard)
    protocol.connection_made(wire)
    for piece in pieces:
        protocol.data_received(piece)
        for _ in range(9):
            await asyncio.sleep(0)
    return wire, protocol


def test_a_short_answer_is_written_in_one_piece() -> None:
    wire, _ = asyncio.run(ask(lambda _: Response({"a": 1}, etag='"e"'), ASK + b"\r\n"))
    head = b'etag: "e"\r\ncontent-type: application/json\r\ncontent-length: 8\r\ncache-control: no-store\r\n\r\n'
    assert wire.written == [b"HTTP/1.1 200 OK\r\n" + head + b'{"a": 1}'] and not wire.is_closed


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ASK.replace(b"GET", b"HEAD") + b"\r\n", b"content-length: 8\r\ncache-control: no-store\r\n\r\n"),
        (ASK + b"connection: close\r\n\r\n", b'connection: close\r\n\r\n{"a": 1}'),
        (ASK.replace(b"1.1", b"1.0") + b"\r\n", b'connection: close\r\n\r\n{"a": 1}'),
    ],
)
def test_an_answer_without_a_body_or_after_which_the_connection_ends_says_so(asked: bytes, said: bytes) -> None:
    wire, _ = asyncio.run(ask(lambda _: Response({"a": 1}), asked))
    assert b"".join(wire.written).endswith(said) and wire.is_closed == (b"close" in said)


def test_a_refusal_that_ends_the_connection_ends_it() -> None:
    wire, _ = asyncio.run(ask(lambda _: Response({}, status=429, connection="close"), ASK + b"\r\n"))
    assert b"".join(wire.written).startswith(b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\n")
    assert wire.is_closed


def test_a_long_answer_is_written_in_pieces() -> None:
    long = bytes(range(256)) * 600
    wire, _ = asyncio.run(ask(lambda _: Response(long), ASK + b"\r\n"))
    _, _, body = b"".join(wire.written).partition(b"\r\n\r\n")
    assert body == long and max(map(len, wire.written)) <= 1 << 16


@pytest.mark.parametrize("at", [20, 48, 50, 52])
def test_a_body_is_read_in_one_piece_or_in_two(at: int) -> None:
    sent = b"PUT /it HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n" + b"body"
    wire, _ = asyncio.run(ask(lambda body: Response({"heard": body.decode()}), sent[:at], sent[at:]))
    assert wire.written[-1].endswith(b'{"heard": "body"}')


def test_a_request_that_was_answered_leaves_nothing_for_the_collector() -> None:
    """A server that collects what thousands of requests a second leave does little else."""

    async def see() -> None:
        _, protocol = await ask(lambda _: Response({}), ASK + b"\r\n")
        answered = weakref.ref(protocol.cycle)
        protocol.data_received(ASK + b"\r\n")
        assert answered() is None
        await asyncio.sleep(0)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(see())
    finally:
        gc.enable()
