"""What the engine and the relay share as servers: a bounded body, errors in words, and a place to run in."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hushrank.live.queries.messages import MOST_REQUEST, SEARCH, SearchRequest, parse_request

_BODY_S = 10.0  # for a whole body
_START_S = 10.0
_AT_ONCE = 200  # connections; whoever comes then gets 503

Answer = Callable[[Request, SearchRequest], Awaitable[Response]]


class BadBodyError(ValueError):
    """A body that is no search, with the status to answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def make_search_app(answer: Answer) -> Starlette:
    """An application with one route, which reads a search and hands it on."""

    async def search(request: Request) -> Response:
        try:
            wanted = parse_request(await read_body(request))
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


@contextmanager
def serve(app: Starlette, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """The address of an application that runs in a thread of this process; port 0: any that is free."""
    listener = socket.create_server((host, port))
    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", limit_concurrency=_AT_ONCE)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="queries", daemon=True)
    thread.start()
    began = time.monotonic()
    while not server.started:
        if not thread.is_alive() or time.monotonic() - began > _START_S:
            raise OSError(f"the server at {host}, port {listener.getsockname()[1]}, did not start.")
        time.sleep(0.005)
    try:
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_START_S)
        listener.close()
