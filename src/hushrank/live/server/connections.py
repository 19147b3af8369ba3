"""What a server bears of a connection before it knows who is there: a short head, few requests ahead, answers that are
read. Whoever exceeds a limit costs its own connection; limits that are reached are counted, and said once a minute.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hushrank.live.server.events import Tell
from hushrank.live.server.limits import RateLimit
from hushrank.live.server.tls_strangers import TlsStrangers
from hushrank.live.wire.addresses import is_loopback, networks_of, plain_address
from hushrank.live.wire.refusals import Reason, RefusedError

MOST_HEAD = 16 << 10  # bytes of a request's first line and headers
_MOST_AHEAD = 8  # requests on one connection before the first is answered; Why: no client of ours sends two
_LEAST_RATE = 16 << 10  # bytes per second at which an answer must be read, beyond the time that each has
_SAY_AGAIN_S = 60.0
MOST_PER_CLIENT = 16  # connections; Why: a client of ours has two, and a new one where a network forgot the old
STRANGER_KEEP_ALIVE_S = 5  # without a request, for a connection that has not shown a credential
CONNECTION, CYCLE = "hushrank.connection", "hushrank.cycle"  # in an ASGI scope: the connection, the request on it
_NOBODY = object()
_OF_A_SITE = 8  # times what strangers in one of its networks may have
_AT_ONCE = 2  # seconds' worth of new connections that strangers at one address may make without a pause
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no time
_FULL_S = 5  # after which somebody who was refused may try again


class _Unread(NamedTuple):
    since: float
    n_bytes: int  # then
    drained: int


class Excess(StrEnum):
    """Why a connection was ended."""

    connections = "connections"  # as many as the server has: a stranger's that waits for no answer, or the new one
    handshakes = "handshakes"  # as many encrypted ones of strangers as there may be: one that was silent
    address = "address"  # as many as strangers at one address may have, or may make in a second
    client = "client"  # as many as one client may have
    head = "head"  # longer than MOST_HEAD, or not finished in time; encrypted: the handshake, too
    ahead = "ahead"  # more requests than answers
    unread = "unread"  # an answer that is not read
    malformed = "malformed"  # not HTTP; encrypted: a handshake that failed, too


class Connection(Protocol):
    """What a guard asks of a connection."""

    @property
    def is_in_head(self) -> bool:
        """Whether it has something to send before anything is known of it."""

    @property
    def is_waiting(self) -> bool:
        """Whether a whole request has come, and nothing of its answer is sent."""

    def count_unread(self) -> int:
        """Bytes of answers that wait to be read; at least 1 while a connection that is closed is not gone."""

    def count_drained(self) -> int:
        """How often its full buffer was read nearly empty, or an answer was done."""

    def end(self, excess: Excess) -> None:
        """At once, whatever is still to be written."""


_EXPLAINED = {
    Excess.connections: "the server has as many connections as it can: try again later.",
    Excess.address: "too many new connections from this address: try again later.",
}


@dataclass(slots=True)
class ConnectionGuard:
    """How many connections there are, whose, and what becomes of those that exceed a limit.

    A connection is a stranger's until a request on it has shown a credential. Strangers have a limit for each address;
    where all connections are taken, the oldest stranger that has nothing under way makes room. One that waits for its
    answer never does: it goes as soon as the server has answered. So strangers that ask nothing keep nobody out.
    """

    most: int
    most_per_address: int  # strangers at one address beyond this machine, and new ones per second; 0: any number
    patience_s: float  # for a head, and for an answer to be read
    tell: Tell
    clock: Callable[[], float]
    dropped: Counter[str] = field(default_factory=Counter)  # {excess: how often} since the start
    most_per_client: int = MOST_PER_CLIENT  # 0: any number
    stranger_keep_alive_s: int = STRANGER_KEEP_ALIVE_S
    known: frozenset[str] = frozenset()  # addresses, as `plain_address` writes them, without a limit of their own
    tls_strangers: TlsStrangers = field(default_factory=TlsStrangers)
    _strangers: dict[Connection, tuple[str, ...]] = field(default_factory=dict)  # {connection: networks}, oldest first
    _by_network: Counter[str] = field(default_factory=Counter)  # of strangers
    _clients: dict[Connection, Hashable] = field(default_factory=dict)
    _by_client: dict[Hashable, dict[Connection, None]] = field(default_factory=dict)  # oldest first
    _said: dict[Excess, tuple[float, int]] = field(default_factory=dict)  # {excess: (when, how often until then)}
    _heads: dict[Connection, float] = field(default_factory=dict)  # {connection: since when it sends a head}
    _unread: dict[Connection, _Unread] = field(default_factory=dict)
    _made: RateLimit = field(init=False)  # by strangers

    def __post_init__(self) -> None:
        self._made = RateLimit(per_second=max(self.most_per_address, 1), burst=_AT_ONCE * max(self.most_per_address, 1))

    @property
    def n_open(self) -> int:
        return len(self._strangers) + len(self._clients)

    def admit(self, connection: Connection, address: str) -> Excess | None:
        """Count a new connection; why it must end at once, if it must."""
        networks = () if self.known and plain_address(address) in self.known else networks_of(address)
        if networks and self.most_per_address > 0 and not is_loopback(address) and not self._has_room(networks):
            return Excess.address
        if self.n_open >= self.most:
            oldest = self._find_least_busy()
            if oldest is None:
                return Excess.connections
            oldest.end(Excess.connections)
        self._strangers[connection] = networks
        self._by_network.update(networks)
        return None

    def _has_room(self, networks: tuple[str, ...]) -> bool:
        """Whether strangers there may make one more connection now."""
        limits = (self.most_per_address, _OF_A_SITE * self.most_per_address)
        if any(self._by_network[each] >= limit for each, limit in zip(networks, limits, strict=False)):
            return False
        try:
            self._made.check(networks[0], self.clock())
        except RefusedError:
            return False
        return True

    def _find_least_busy(self) -> Connection | None:
        """The oldest stranger that has nothing under way, else the oldest that is being answered."""
        being_answered = None
        for each in self._strangers:
            if not each.is_waiting:
                if not each.count_unread():
                    return each
                being_answered = being_answered or each
        return being_answered

    def hand_over(self, old: Connection, new: Connection) -> bool:
        """A stranger's connection goes on as another object; False: it was ended while it became that."""
        networks = self._strangers.pop(old, None)
        if networks is None:
            return False
        self._strangers[new] = networks
        self.tls_strangers.hand_over(old, new, lambda: new.end(Excess.handshakes))
        return True

    def recognise(self, connection: Connection, client: Hashable) -> None:
        """A request on it has shown a credential; through a proxy, requests of several clients may come one by one."""
        if connection not in self._strangers and connection not in self._clients:  # ended meanwhile
            return
        self.forget(connection)
        self._clients[connection] = client
        same = self._by_client.setdefault(client, {})
        same[connection] = None
        if 0 < self.most_per_client < len(same):
            next(iter(same)).end(Excess.client)

    def forget(self, connection: Connection) -> None:
        """A connection has ended; one that is not counted may be forgotten, too."""
        self.tls_strangers.leave(connection)
        for network in self._strangers.pop(connection, ()):
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]
        client = self._clients.pop(connection, None)
        if client is not None:
            same = self._by_client[client]
            del same[connection]
            if not same:
                del self._by_client[client]

    def drop(self, excess: Excess) -> None:
        """Count it, and say it at most once a minute."""
        self.dropped[excess] += 1
        when, before = self._said.get(excess, (-_SAY_AGAIN_S, 0))
        if self.clock() - when >= _SAY_AGAIN_S:
            self._said[excess] = (self.clock(), self.dropped[excess])
            self.tell("limit-reached", limit=str(excess), times=self.dropped[excess] - before)

    def end_slow(self, connections: Iterable[Connection]) -> None:
        """End connections that never finish a head or never read an answer. Call it every second or so."""
        now, open_ = self.clock(), tuple(connections)
        self._heads = {c: self._heads.get(c, now) for c in open_ if c.is_in_head}
        self._unread = {c: self._look_at(c, n, now) for c in open_ if (n := c.count_unread()) > 0}
        for connection, since in self._heads.items():
            if now - since > self.patience_s:
                connection.end(Excess.head)
        for connection, waiting in self._unread.items():
            if now - waiting.since > self.patience_s + waiting.n_bytes / _LEAST_RATE:
                connection.end(Excess.unread)

    def _look_at(self, connection: Connection, n_bytes: int, now: float) -> _Unread:
        """Time counts from where the buffer was last read nearly empty: a long answer over a slow line is read, too."""
        before, drained = self._unread.get(connection), connection.count_drained()
        return before if before is not None and before.drained == drained else _Unread(now, n_bytes, drained)


class GuardedProtocol(HttpToolsProtocol):
    """Uvicorn's connection within the limits of a guard."""

    def __init__(
        self,
        *arguments: Any,
        guard: ConnectionGuard,
        door: Connection | None = None,
        encrypted: socket.socket | None = None,
        **named: Any,
    ) -> None:
        """door: what the connection was counted as until now. encrypted: the socket beneath, if it is."""
        super().__init__(*arguments, **named)
        self._door, self._encrypted = door, encrypted
        self._asked: list[RequestResponseCycle] = []  # requests that are not answered yet
        self._guard, self._client, self._n_drained = guard, _NOBODY, 0
        self._known_keep_alive = self.timeout_keep_alive
        self.timeout_keep_alive = min(guard.stranger_keep_alive_s, self.timeout_keep_alive)
        self._is_reading_head, self._head_bytes, self._n_fed = True, 0, 0
        self._is_past_head = False  # whether a head or a body ended in the data that came last
        self._excess = Excess.malformed  # what a parser's error means

    @property
    def is_in_head(self) -> bool:
        """Whether it has something to send, and nothing is known of it yet: new, or past the answer to the last."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self.timeout_keep_alive_task is None and not self.transport.is_closing()

    @property
    def is_waiting(self) -> bool:
        """Of the oldest request that is not answered: those behind it may wait for one that nobody reads."""
        first = next((each for each in self._asked if not each.response_complete), None)
        if first is None or self.transport.is_closing():
            return False
        return not first.more_body and not first.response_started

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._door is not None:
            if not self._guard.hand_over(self._door, self):
                self._cut()
            self._door = None
            return
        excess = self._guard.admit(self, self.client[0] if self.client else "")
        if excess is not None:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, excess)

    def recognise(self, client: Hashable) -> None:
        """The request that is answered now has shown a credential of this client."""
        if client != self._client:
            self._client, self.timeout_keep_alive = client, self._known_keep_alive
            self._guard.recognise(self, client)

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        was_reading_head, self._is_past_head, self._n_fed = self._is_reading_head, False, len(data)
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
        self.scope[CONNECTION] = self  # type: ignore[literal-required]

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_reading_head:  # a trailer, after the body: they could go on for ever
            raise ValueError("trailers")
        HttpToolsProtocol.on_header(self, name, value)  # Why not super(): it would cost more than the rest of this

    def on_headers_complete(self) -> None:
        most = self._head_bytes + self._n_fed  # of this head: all that came since the one before
        self._is_reading_head, self._head_bytes, self._is_past_head = False, 0, True
        if most > MOST_HEAD and self._measure_head() > MOST_HEAD:
            self._excess = Excess.head
            raise ValueError("head")
        if len(self.pipeline) >= _MOST_AHEAD:
            self._excess = Excess.ahead
            raise ValueError("ahead")
        before = [] if self.cycle is None or self.cycle.response_complete else self._asked
        super().on_headers_complete()
        self.scope[CYCLE] = self.cycle  # type: ignore[literal-required]
        self._asked = [each for each in before if not each.response_complete] if before else []
        self._asked.append(self.cycle)

    def _measure_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_reading_head, self._is_past_head = True, True

    def count_unread(self) -> int:
        """Why 1: an encrypted transport does not know what waits beneath it once it has closed."""
        least = 1 if self.transport.is_closing() else 0
        try:
            return max(int(self.transport.get_write_buffer_size()), least)
        except AttributeError:  # Why: asyncio's encrypted transport forgets its buffer when it is closed twice
            return least

    def count_drained(self) -> int:
        return self._n_drained

    def resume_writing(self) -> None:
        self._n_drained += 1
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Answers that are done are progress, too: a busy connection has something to write whenever one looks, while
        one that reads nothing is soon paused, and then no answer is done."""
        self._n_drained += 1
        super().on_response_complete()

    def end(self, excess: Excess) -> None:
        self._guard.forget(self)
        self._cut()
        self._guard.drop(excess)

    def _cut(self) -> None:
        """With what the system still holds for the other side."""
        below = self._encrypted or self.transport.get_extra_info("socket")
        with suppress(OSError):  # it is closed already
            below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            if self._encrypted is not None:  # Why: what is closed twice forgets what to abort, too
                self._encrypted.shutdown(socket.SHUT_RDWR)
        self.transport.abort()

    def _refuse(self, status: HTTPStatus, excess: Excess) -> None:
        for each in self._asked:
            each.disconnected = True  # Why: nothing may follow this answer
        self.transport.write(_write_refusal(status, _EXPLAINED.get(excess)))
        self.transport.close()
        self._guard.drop(excess)


def read_whole(cycle: RequestResponseCycle) -> bytes | None:
    """The body of a request, if all of it has come."""
    return None if cycle.more_body or cycle.disconnected else bytes(cycle.body)


async def send_whole(cycle: RequestResponseCycle, answer: bytes) -> None:
    """An answer, head and body at once, on a connection that goes on. Why: uvicorn's way is two calls of the system."""
    if cycle.flow.write_paused and not cycle.disconnected:
        await cycle.flow.drain()
    if cycle.disconnected:
        return
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(answer)
    cycle.message_event.set()
    if not cycle.keep_alive:  # since a moment ago: the server stops
        cycle.transport.close()
    cycle.on_response()


def _write_refusal(status: HTTPStatus, detail: str | None) -> bytes:
    body, headers = b"", ["connection: close"]
    if detail is not None:
        body = json.dumps({"reason": Reason.rate, "detail": detail}).encode()
        headers += ["content-type: application/json", f"retry-after: {_FULL_S}"]
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *headers, f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body
