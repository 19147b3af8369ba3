"""What a server bears of a connection before it knows who is there: a short head, few requests ahead, answers that are
read. Whoever exceeds a limit costs its own connection; limits that are reached are counted, and said once a minute.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hushrank.live.server.events import Tell
from hushrank.live.wire.addresses import is_loopback

MOST_HEAD = 16 << 10  # bytes of a request's first line and headers
_MOST_AHEAD = 8  # requests on one connection before the first is answered; Why: no client of ours sends two
_LEAST_RATE = 16 << 10  # bytes per second at which an answer must be read, beyond the time that each has
_SAY_AGAIN_S = 60.0


class Excess(StrEnum):
    """Why a connection was ended."""

    connections = "connections"  # as many as the server has
    address = "address"  # as many as one address may have
    head = "head"  # longer than MOST_HEAD, or not finished in time
    ahead = "ahead"  # more requests than answers
    unread = "unread"  # an answer that is not read
    malformed = "malformed"  # not HTTP


@dataclass(slots=True)
class ConnectionGuard:
    """How many connections there are, from where, and what becomes of those that exceed a limit."""

    most: int
    most_per_address: int  # of one address beyond this machine; 0: any number
    patience_s: float  # for a head, and for an answer to be read
    tell: Tell
    clock: Callable[[], float]
    dropped: Counter[str] = field(default_factory=Counter)  # {excess: how often} since the start
    n_open: int = 0
    _by_address: Counter[str] = field(default_factory=Counter)
    _said: dict[Excess, tuple[float, int]] = field(default_factory=dict)  # {excess: (when, how often until then)}
    _heads: dict[Any, float] = field(default_factory=dict)  # {connection: since when it sends a head}
    _unread: dict[Any, tuple[float, int]] = field(default_factory=dict)  # {connection: (since when, bytes then)}

    def admit(self, address: str) -> Excess | None:
        """Count a new connection; why it must end at once, if it must."""
        is_limited = self.most_per_address > 0 and not is_loopback(address)
        if self.n_open >= self.most:
            return Excess.connections
        if is_limited and self._by_address[address] >= self.most_per_address:
            return Excess.address
        self.n_open += 1
        self._by_address[address] += 1
        return None

    def forget(self, address: str) -> None:
        """A counted connection has ended."""
        self.n_open -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def drop(self, excess: Excess) -> None:
        """Count it, and say it at most once a minute."""
        self.dropped[excess] += 1
        when, before = self._said.get(excess, (-_SAY_AGAIN_S, 0))
        if self.clock() - when >= _SAY_AGAIN_S:
            self._said[excess] = (self.clock(), self.dropped[excess])
            self.tell("limit-reached", limit=str(excess), times=self.dropped[excess] - before)

    def end_slow(self, connections: Iterable[Any]) -> None:
        """End connections that never finish a head or never read an answer. Call it every second or so."""
        now, open_ = self.clock(), tuple(connections)
        self._heads = {c: self._heads.get(c, now) for c in open_ if c.is_in_head and not c.transport.is_closing()}
        unread = {c: c.count_unread() for c in open_}
        self._unread = {c: self._unread.get(c, (now, n)) for c, n in unread.items() if n > 0}
        for connection, since in self._heads.items():
            if now - since > self.patience_s:
                connection.end(Excess.head)
        for connection, (since, n_bytes) in self._unread.items():
            if now - since > self.patience_s + n_bytes / _LEAST_RATE:
                connection.end(Excess.unread)


class GuardedProtocol(HttpToolsProtocol):
    """Uvicorn's connection within the limits of a guard."""

    def __init__(self, *arguments: Any, guard: ConnectionGuard, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._guard = guard
        self._counted: str | None = None  # the address under which it is counted
        self._is_reading_head, self._head_bytes = True, 0
        self._is_past_head = False  # whether a head or a body ended in the data that came last
        self._excess = Excess.malformed  # what a parser's error means

    @property
    def is_in_head(self) -> bool:
        """Whether it has something to send, and nothing is known of it yet: new, or past the answer to the last."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self.timeout_keep_alive_task is None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        excess = self._guard.admit(address)
        if excess is None:
            self._counted = address
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, excess)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is not None:
            self._guard.forget(self._counted)
            self._counted = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        was_reading_head, self._is_past_head = self._is_reading_head, False
        try:
            self.parser.feed_data(data)
            if was_reading_head and not self._is_past_head:  # else the data were a body, or a head of known length
                self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, Excess.head)
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.BAD_REQUEST, Excess.malformed)
        except httptools.HttpParserError:  # what the callbacks below raise comes as one, too
            if self._excess is Excess.ahead:
                self.end(Excess.ahead)
            elif self._excess is Excess.head:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, Excess.head)
            else:
                self._refuse(HTTPStatus.BAD_REQUEST, Excess.malformed)

    def on_message_begin(self) -> None:
        self._is_reading_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_reading_head:  # a trailer, after the body: they could go on for ever
            raise ValueError("trailers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_reading_head, self._head_bytes, self._is_past_head = False, 0, True
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MOST_HEAD:
            self._excess = Excess.head
            raise ValueError("head")
        if len(self.pipeline) >= _MOST_AHEAD:
            self._excess = Excess.ahead
            raise ValueError("ahead")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_reading_head, self._is_past_head = True, True

    def count_unread(self) -> int:
        """Bytes of answers that wait to be read."""
        try:
            return int(self.transport.get_write_buffer_size())
        except AttributeError:  # Why: asyncio's encrypted transport forgets its buffer when it is closed twice
            return 0

    def end(self, excess: Excess) -> None:
        """At once, whatever is still to be written."""
        self._guard.drop(excess)
        self.transport.abort()

    def _refuse(self, status: HTTPStatus, excess: Excess) -> None:
        self._guard.drop(excess)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # Why: nothing may follow this answer
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode())
        self.transport.close()
