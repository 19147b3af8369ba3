"""An encrypted connection before its handshake is over: counted from its first packet, and ended if it takes its time.

Why not the event loop's own TLS server: it tells of a connection only after the handshake, so that strangers who never
finish one would be counted nowhere, and each would have a minute.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hushrank.live.server.connections import ConnectionGuard, Excess, GuardedProtocol

_BUFFER = 32 << 10  # bytes that asyncio reads at once; Why: it takes them, else 256 KB, for each connection
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


class TlsDoor(asyncio.Protocol):
    """Takes a new connection's socket from uvicorn, which has not read of it, and encrypts it for what `make` makes."""

    def __init__(
        self,
        make: Callable[..., GuardedProtocol],
        guard: ConnectionGuard,
        context: ssl.SSLContext,
        connections: set[Any],  # uvicorn's, of all that must end when the server stops
    ) -> None:
        self._make, self._guard, self._context, self._connections = make, guard, context, connections
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None  # the handshake; Why: a task that nobody holds may be collected

    is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        excess = self._guard.admit(self, (transport.get_extra_info("peername") or ("",))[0])
        if excess is None:
            self._take_over(transport)
        transport.abort()
        if excess is not None:  # without a word: saying anything would need the handshake
            self._guard.drop(excess)

    def _take_over(self, transport: asyncio.Transport) -> None:
        """Nothing is made for the handshake before its first byte has come."""
        try:
            mine = self._socket = transport.get_extra_info("socket").dup()
        except OSError:  # no descriptor is left
            self._forget()
            return
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
        """Why not `start_tls` on uvicorn's transport: uvloop reads of it before one can begin."""
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
