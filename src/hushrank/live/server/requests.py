"""A request and an answer, as small as they can be: the server's speed is mostly what happens here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable
from http import HTTPStatus
from typing import Any

from starlette.types import Receive, Scope, Send

from hushrank.live.server.connections import CONNECTION, CYCLE, read_whole, send_whole
from hushrank.live.wire.addresses import network_of
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.untrusted import parse_untrusted

JSON = "application/json"
_PIECE = 64 << 10  # bytes of an answer that are handed over at once
_STATUS_LINES = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n" for each in HTTPStatus}


def address_of(scope: Scope) -> str | None:
    """Of whoever asks; all that one network may choose from count as one."""
    client = scope.get("client")
    return network_of(client[0]) if client else None


class Request:
    """A request: its headers (the last of each name counts), its query, and its body once it is wanted."""

    __slots__ = ("_headers", "_receive", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope, self._receive = scope, receive
        self._headers: dict[bytes, bytes] = dict(scope["headers"])

    def header(self, name: bytes) -> str | None:
        """By its name in small letters."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str | None:
        """Of whoever asks."""
        return address_of(self.scope)

    def recognise(self, client: Hashable) -> None:
        """It has shown a credential of this client."""
        connection = self.scope.get(CONNECTION)
        if connection is not None:
            connection.recognise(client)

    def query(self) -> dict[str, str]:
        """The part after the question mark. Only numbers are expected there, so that nothing is decoded."""
        parts = (part.partition("=") for part in self.scope["query_string"].decode("latin-1").split("&"))
        return {name: value for name, _, value in parts if name}

    def secret(self) -> str | None:
        """What stands after Authorization: Bearer."""
        scheme, _, secret = (self.header(b"authorization") or "").partition(" ")
        return secret if scheme.lower() == "bearer" else None

    def is_of_type(self, name: str) -> bool:
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower() == name

    async def body(self, *, most: int, within_s: float) -> bytes:
        """The whole body, if it is announced, not too long and not too slow."""
        length = self.header(b"content-length")
        if length is None:
            raise RefusedError(Reason.size, "a body needs a Content-Length.", status=411)
        if not (length.isascii() and length.isdigit()) or len(length) > 18 or int(length) > most:
            raise RefusedError(Reason.size, f"the body must have at most {most} bytes.")
        cycle = self.scope.get(CYCLE)
        if cycle is not None and (body := read_whole(cycle)) is not None:
            return body
        try:
            async with asyncio.timeout(within_s):
                return await self._read()
        except TimeoutError as error:
            raise RefusedError(Reason.slow, "the body did not arrive in time.") from error

    async def _read(self) -> bytes:
        body = b""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(Reason.slow, "the connection ended before the body did.")
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return body

    async def json(self, *, most: int, within_s: float) -> dict[str, Any]:
        """The body as a JSON object."""
        if not self.is_of_type(JSON):
            raise RefusedError(Reason.media, f"the body must be {JSON}.")
        content = await self.body(most=most, within_s=within_s)
        try:
            said = parse_untrusted(content)
        except ValueError as error:
            raise RefusedError(Reason.bad_request, "the body is not JSON.") from error
        if not isinstance(said, dict):
            raise RefusedError(Reason.bad_request, "the body must be a JSON object.")
        return said


class Response:
    """A status, headers and a body."""

    __slots__ = ("_body", "_closes", "_head", "status")

    def __init__(
        self, content: bytes | dict[str, Any], *, status: int = 200, media_type: str = JSON, **headers: str
    ) -> None:
        """headers: names with underscores for hyphens."""
        self.status, self._closes = status, "connection" in headers
        self._body = content if isinstance(content, bytes) else json.dumps(content).encode()
        lines = "".join([f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()])
        if status not in (204, 304):
            lines += f"content-type: {media_type}\r\ncontent-length: {len(self._body)}\r\n"
        if "cache_control" not in headers:
            lines += "cache-control: no-store\r\n"
        self._head = f"{_STATUS_LINES[status]}{lines}\r\n".encode()

    async def send(self, scope: Scope, send: Send) -> None:
        """At once, if it is short and the connection goes on."""
        cycle = scope.pop(CYCLE, None)  # Why pop: they hold each other, and would stay until the next collection
        is_short = len(self._body) <= _PIECE and scope["method"] != "HEAD"
        if cycle is not None and cycle.keep_alive and is_short and not self._closes:
            await send_whole(cycle, self._head + self._body)
        else:
            await self._send_in_pieces(send)

    async def _send_in_pieces(self, send: Send) -> None:
        headers = [tuple(line.split(b": ", 1)) for line in self._head.split(b"\r\n")[1:-2]]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for at in range(_PIECE, len(self._body), _PIECE):  # Why pieces: one who does not read keeps no more in memory
            await send({"type": "http.response.body", "body": self._body[at - _PIECE : at], "more_body": True})
        last = max(len(self._body) - 1, 0) // _PIECE * _PIECE
        await send({"type": "http.response.body", "body": self._body[last:]})
