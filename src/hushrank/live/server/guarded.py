"""Uvicorn's server within the limits of a guard, encrypted or not."""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import partial
from typing import cast

import uvicorn

from hushrank.live.server.connections import Connection, ConnectionGuard, GuardedProtocol
from hushrank.live.server.tls_door import TlsListener


def guarded_protocol(guard: ConnectionGuard) -> type[asyncio.Protocol]:
    """For `http` of uvicorn's settings."""
    return cast("type[asyncio.Protocol]", partial(GuardedProtocol, guard=guard))


class GuardedServer(uvicorn.Server):
    """Lets the guard end slow connections."""

    def __init__(self, config: uvicorn.Config, guard: ConnectionGuard, context: ssl.SSLContext | None) -> None:
        """context: for connections that are encrypted."""
        super().__init__(config)
        self._guard, self._context = guard, context
        self._tls_listeners: list[TlsListener] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Uvicorn listens where nothing is encrypted."""
        await super().startup(sockets if self._context is None else [])
        if self._context is not None:
            state = self.server_state
            named = {"config": self.config, "server_state": state, "app_state": self.lifespan.state}
            make = partial(GuardedProtocol, guard=self._guard, **named)
            for each in sockets or ():
                self._tls_listeners.append(TlsListener(each, make, self._guard, self._context, state.connections))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in self._tls_listeners:
            each.close()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Uvicorn asks every tenth of a second whether to stop."""
        if counter % 10 == 0:
            self._guard.end_slow(cast("set[Connection]", self.server_state.connections))
        return await super().on_tick(counter)
