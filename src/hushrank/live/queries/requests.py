"""What the engine and the relay share as servers: a bounded body, errors in words, and a place to run in."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hushrank.live.queries.messages import MOST_REQUEST, SEARCH, SearchRequest, parse_request
from hushrank.live.server.connections import ConnectionGuard
from hushrank.live.server.guarded import GuardedServer, guarded_protocol
from hushrank.live.server.tls_door import make_context
from hushrank.live.wire.addresses import is_address, is_loopback, plain_address

_BODY_S = 10.0  # for a whole body
_START_S = 10.0
_AT_ONCE = 200  # connections; whoever comes then takes the place of the oldest that waits for no answer
_AT_ONE_ADDRESS = 50  # of them beyond this machine, and new ones per second

Answer = Callable[[Request, SearchRequest], Awaitable[Response]]


class BadBodyError(ValueError):
    """A body that is no search, with the status to answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def make_search_app(answer: Answer, count_broken_off: Callable[[], None]) -> Starlette:
    """An application with one route, which reads a search and hands it on.

    count_broken_off: called for a search that ends before all of it has come.
    """

    async def search(request: Request) -> Response:
        try:
            wanted = parse_request(await read_body(request))
        except ClientDisconnect:  # Why: uvicorn would write a traceback of it
            count_broken_off()
            return refuse(408, "the search broke off.")
        except BadBodyError as error:
            return refuse(error.status, str(error))
        except ValueError:
            return refuse(400, "this is no search.")
        return await answer(request, wanted)

    return Starlette(routes=[Route(SEARCH, search, methods=["POST"])])


async def read_body(request: Request) -> bytes:
    """The whole of it, if it is not too long and not too slow."""
    content = b""
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MOST_REQUEST:
                    raise BadBodyError(413, f"a search has at most {MOST_REQUEST} bytes.")
    except TimeoutError:
        raise BadBodyError(408, "the search did not arrive in time.") from None
    return content


def refuse(status: int, why: str) -> Response:
    """It never repeats what was asked."""
    return Response(json.dumps({"detail": why}), status_code=status, media_type="application/json")


def read_address(said: str) -> str:
    """An address of a relay; ValueError for a name or a network."""
    if not is_address(said):
        raise ValueError(f"relays has {said!r}, which is no address. Give addresses such as 192.0.2.7 in a list.")
    return plain_address(said)


@contextmanager
def serve(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: tuple[Path, Path] | None = None,
    relays: Collection[str] = (),
) -> Iterator[str]:
    """The address of an application that runs in a thread of this process; port 0: any that is free.

    tls: a certificate and its key. Without it only this machine is served: queries never cross a network in the open.
    relays: addresses that many people search from. Each may have all connections; others have the limit of an address.
    """
    if tls is None and not is_loopback(host):
        raise ValueError(
            f"host is {host}, which others can reach, but there is no TLS: give a certificate and its key."
        )
    known = frozenset(map(read_address, relays))
    context = None if tls is None else make_context(*tls)
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    guard = ConnectionGuard(_AT_ONCE, _AT_ONE_ADDRESS, _BODY_S, lambda *_, **__: None, time.monotonic, known=known)
    config = uvicorn.Config(
        app,
        http=guarded_protocol(guard),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        proxy_headers=False,  # Why: whoever connects from this machine could make up an address for each search
    )
    server = GuardedServer(config, guard, context)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="queries", daemon=True)
    thread.start()
    began = time.monotonic()
    while not server.started:
        if not thread.is_alive() or time.monotonic() - began > _START_S:
            raise OSError(f"the server at {host}, port {listener.getsockname()[1]}, did not start.")
        time.sleep(0.005)
    try:
        where = f"[{host}]" if ":" in host else host
        yield f"{'http' if tls is None else 'https'}://{where}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_START_S)
        listener.close()
