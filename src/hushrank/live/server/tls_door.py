"""An encrypted connection before its handshake is over: counted from its first packet, and ended if it takes its time.

Why not the event loop's own TLS server: it tells of a connection only after the handshake, so that strangers who never
finish one would be counted nowhere, and each would have a minute. And it takes all new connections at once, so that in
a flood everybody else waits for all of them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hushrank.live.server.connections import ConnectionGuard, Excess, GuardedProtocol

_BUFFER = 32 << 10  # bytes that asyncio reads at once; Why: it takes them, else 256 KB, for each connection
_BACKLOG = 256  # connections that wait in the system; Why so few: whoever comes waits for all that came before
_AT_A_TURN = 4  # new connections in a turn of the event loop
_FULL_S = 0.1  # after which one looks whether the system has a descriptor again
_GOODBYE_S = 5.0  # in which the other side must have confirmed the end of a connection


def make_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """For a server; refuses files that are no certificate and key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    SSLProtocol.max_size = _BUFFER  # asyncio's, of this process; uvloop has another, which it does not fill
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # a file that is not there, or that OpenSSL does not understand
        raise ValueError(f"{certificate} and {key} are no certificate with its key: {error}.") from error
    return context


class TlsListener:
    """Takes new connections from the system: a few in each turn of the event loop, and none while enough of them wait
    for their handshake. So the others have to wait where they cost nothing, and clients have their turns in between."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[..., GuardedProtocol],  # what a connection becomes after its handshake
        guard: ConnectionGuard,
        context: ssl.SSLContext,
        connections: set[Any],  # uvicorn's, of all that must end when the server stops
    ) -> None:
        self._listener, self._guard, self._loop = listener, guard, asyncio.get_running_loop()
        self._make_door = partial(TlsDoor, make, guard, context, connections)
        self._is_listening, self._timer = False, self._loop.call_soon(self._accept)
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        guard.tls_strangers.on_room = self._go_on

    def close(self) -> None:
        """The socket stays its owner's."""
        self._timer.cancel()
        self._guard.tls_strangers.on_room = None
        self._listen(is_wanted=False)

    def _accept(self) -> None:
        """A few; then in the next turn, when there is room, or when the system has a descriptor again."""
        for _ in range(_AT_A_TURN):
            if self._guard.tls_strangers.is_busy:
                self._listen(is_wanted=False)
                return
            try:
                mine, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                break
            except OSError:  # no descriptor is left
                self._listen(is_wanted=False)
                self._timer = self._loop.call_later(_FULL_S, self._accept)
                return
            mine.setblocking(False)
            self._make_door().open(mine, address[0])
        self._listen(is_wanted=True)

    def _go_on(self) -> None:
        if not self._is_listening:
            self._accept()

    def _listen(self, *, is_wanted: bool) -> None:
        if is_wanted and not self._is_listening:
            self._loop.add_reader(self._listener, self._accept)
        elif self._is_listening and not is_wanted:
            self._loop.remove_reader(self._listener)
        self._is_listening = is_wanted


class TlsDoor:
    """Encrypts a new connection for what `make` makes."""

    def __init__(
        self,
        make: Callable[..., GuardedProtocol],
        guard: ConnectionGuard,
        context: ssl.SSLContext,
        connections: set[Any],
    ) -> None:
        self._make, self._guard, self._context, self._connections = make, guard, context, connections
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None  # the handshake; Why: a task that nobody holds may be collected

    is_in_head, is_waiting = True, False

    def open(self, mine: socket.socket, address: str) -> None:
        """Nothing is made for the handshake before its first byte has come."""
        excess = self._guard.admit(self, address)
        if excess is not None:  # without a word: saying anything would need the handshake
            mine.close()
            self._guard.drop(excess)
            return
        self._socket = mine
        self._connections.add(self)
        asyncio.get_running_loop().add_reader(mine, self._hear, mine)

    def _hear(self, mine: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(mine)
        self._guard.tls_strangers.enter(
            self, mine, begin=lambda: self._begin(mine), end=lambda: self.end(Excess.handshakes)
        )

    def _begin(self, mine: socket.socket) -> None:
        self._task = asyncio.get_running_loop().create_task(self._let_in(mine))

    async def _let_in(self, mine: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._make(door=self, encrypted=mine),
                mine,
                ssl=self._context,
                ssl_handshake_timeout=2 * self._guard.patience_s,  # Why twice: the guard ends it before, and counts it
                ssl_shutdown_timeout=_GOODBYE_S,
            )
        except OSError as error:
            is_malformed = isinstance(error, ssl.SSLError) and self._socket is not None  # else it was ended
            traceback.clear_frames(error.__traceback__)  # Why: they and the error keep each other, and the buffers
            if is_malformed:
                self._guard.drop(Excess.malformed)
        finally:
            self._forget()

    def _forget(self) -> None:
        self._socket = None
        self._connections.discard(self)
        self._guard.forget(self)

    def count_unread(self) -> int:
        return 0

    def count_drained(self) -> int:
        return 0

    def end(self, excess: Excess) -> None:
        self.shutdown()
        self._guard.drop(excess)

    def shutdown(self) -> None:
        """Uvicorn calls it when it stops."""
        mine = self._socket
        self._forget()
        if mine is None:
            return
        if self._task is None:
            asyncio.get_running_loop().remove_reader(mine)
            mine.close()
        else:  # the handshake reads that nothing more comes, and closes what it holds
            with suppress(OSError):
                mine.shutdown(socket.SHUT_RDWR)
