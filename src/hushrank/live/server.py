"""The routes: each reads a request, asks the coordinator one thing and answers. Every refusal has a reason."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hushrank.live import messages
from hushrank.live.agreement import as_json
from hushrank.live.config import ServerConfig
from hushrank.live.coordinator import Caller, Coordinator
from hushrank.live.counters import as_text
from hushrank.live.limits import RateLimit, check_body, check_weight
from hushrank.live.messages import Reason, RefusedError
from hushrank.live.openapi import describe_api
from hushrank.live.store import hash_secret

_MOST_JSON = 1024  # bytes of a JSON body
_JSON = "application/json"
_ACCEPTED = json.dumps({"accepted": True}).encode()
_ACCEPTED_AGAIN = json.dumps({"accepted": True, "again": True}).encode()

Handler = Callable[[Request], Awaitable[Response]]


def make_app(coordinator: Coordinator, config: ServerConfig, *, operator_token: str) -> Starlette:
    """The whole service. It starts and stops the coordinator."""
    door = Door(coordinator, config, operator_token)
    plan: list[tuple[str, str, Handler]] = [
        ("PUT", messages.UPDATE, door.update),
        ("GET", messages.ROUND, door.round),
        ("GET", messages.RANKER, door.ranker),
        ("GET", messages.FEDERATION, door.federation),
        ("GET", messages.ME, door.me),
        ("POST", messages.ENROL, door.enrol),
        ("POST", messages.LEAVE, door.leave),
        ("GET", messages.HEALTH, door.health),
        ("GET", messages.METRICS, door.metrics),
        ("GET", messages.OPENAPI, door.openapi),
    ]

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        await coordinator.start()
        yield
        await coordinator.stop()

    app = Starlette(
        routes=[Route(path, Endpoint(door, path, handle), methods=[method]) for method, path, handle in plan],
        exception_handlers={HTTPException: door.refuse_path},
        lifespan=live,
    )
    app.router.redirect_slashes = False
    return app


class Endpoint:
    """One route, as an ASGI application: calls its handler and turns refusals into answers."""

    def __init__(self, door: Door, path: str, handle: Handler) -> None:
        self._door, self._path, self._handle = door, path, handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._handle(Request(scope, receive))
        except RefusedError as refused:
            response = self._door.refuse(refused)
        self._door.counters.requests[self._path, response.status_code] += 1
        await response(scope, receive, send)


class Door:
    """What stands between the network and the coordinator."""

    def __init__(self, coordinator: Coordinator, config: ServerConfig, operator_token: str) -> None:
        self.counters = coordinator.counters
        self._federation, self._config = coordinator, config
        self._operator = hash_secret(operator_token)
        limits = {"per_second": config.requests_per_second, "burst": config.burst}
        self._callers, self._strangers = RateLimit(**limits), RateLimit(**limits)  # type: ignore[arg-type]
        agreed = {
            "agreement": as_json(coordinator.agreement),
            "digest": coordinator.digest,
            "wire": messages.WIRE_VERSION,
        }
        self._agreed, self._api = json.dumps(agreed).encode(), json.dumps(describe_api()).encode()

    # Routes

    async def federation(self, request: Request) -> Response:
        self._meet_stranger(request)
        return _answer(self._agreed)

    async def enrol(self, request: Request) -> Response:
        self._check_version(request)
        self._meet_stranger(request)
        scheme, _, credential = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not messages.is_secret(credential):
            raise RefusedError(Reason.credential, "send Authorization: Bearer and 43 url-safe characters of your own.")
        said = await self._read_json(request)
        token = said.get("token")
        if not isinstance(token, str):
            raise RefusedError(Reason.bad_request, 'the body must be {"token": "..."}.')
        standing = await self._federation.enrol(token if messages.is_secret(token) else "", credential)
        return _answer({"accepted_updates": standing.accepted_updates})

    async def me(self, request: Request) -> Response:
        return _answer(self._federation.standing(self._meet(request)).as_json())

    async def round(self, request: Request) -> Response:
        caller = self._meet(request)
        after = _whole(request.query_params.get("after", "0"), "after")
        wait_s = _seconds(request.query_params.get("wait", "0"))
        news = await self._federation.wait_for_round(caller, after=after, wait_s=wait_s)
        return Response(status_code=204) if news is None else _answer(news.as_json())

    async def ranker(self, request: Request) -> Response:
        self._meet(request)
        text = request.query_params.get("round")
        published = self._federation.published(None if text is None else _whole(text, "round"))
        headers = {"ETag": published.etag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == published.etag:
            return Response(status_code=304, headers=headers)
        return Response(published.content, media_type=messages.BODY_TYPE, headers=headers)

    async def update(self, request: Request) -> Response:
        caller = self._meet(request)
        headers, limits = request.headers, self._federation.limits
        if headers.get("content-type", "").partition(";")[0].strip().lower() != messages.BODY_TYPE:
            raise RefusedError(Reason.media, f"an update is sent as {messages.BODY_TYPE}.")
        if headers.get(messages.AGREEMENT_HEADER) != self._federation.digest:
            raise RefusedError(Reason.agreement, "this federation has another agreement than the client.")
        weight = check_weight(limits, headers.get(messages.WEIGHT_HEADER))
        number = _whole(request.path_params["round"], "round")
        body = await self._read_body(request, most=limits.most_bytes)
        check_body(limits, body)
        is_again = await self._federation.take_update(caller, number, weight, body)
        return _answer(_ACCEPTED_AGAIN if is_again else _ACCEPTED)

    async def leave(self, request: Request) -> Response:
        caller = self._meet(request, or_left=True)
        await self._federation.leave(caller)
        return _answer({"left": True})

    async def health(self, request: Request) -> Response:
        self._meet_stranger(request)
        if self._federation.is_in_trouble:
            raise RefusedError(Reason.disk, "the server cannot write to its disk.", retry_after_s=5)
        return _answer({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        self._meet_stranger(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(hash_secret(token), self._operator):
            raise RefusedError(Reason.credential, "metrics are for the operator: send the token of the file keys.")
        text = as_text(self.counters, self._federation.gauges(), self._federation.rounds.phase)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        self._meet_stranger(request)
        return _answer(self._api)

    # Refusals

    def refuse(self, refused: RefusedError) -> Response:
        self._federation.count_refusal(refused.reason)
        headers = {"Connection": "close"} if refused.reason in (Reason.size, Reason.slow) else {}
        if refused.retry_after_s is not None:
            headers["Retry-After"] = str(refused.retry_after_s)
        if refused.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if refused.status == 426:
            headers["Upgrade"] = f"hushrank-wire/{messages.WIRE_VERSION}"
        return _answer({"reason": str(refused.reason), "detail": str(refused)}, refused.status, headers)

    async def refuse_path(self, _: Request, error: Exception) -> Response:
        """No such path, or not this method on it."""
        assert isinstance(error, HTTPException)
        response = self.refuse(
            RefusedError(Reason.not_found, "there is no such path and method.", status=error.status_code)
        )
        response.headers.update(error.headers or {})
        return response

    # Who asks, and what they send

    def _check_version(self, request: Request) -> None:
        if request.headers.get(messages.WIRE_HEADER) != str(messages.WIRE_VERSION):
            raise RefusedError(
                Reason.version,
                f"this server speaks version {messages.WIRE_VERSION} of the wire: send {messages.WIRE_HEADER}: "
                f"{messages.WIRE_VERSION}, or update hushrank.",
            )

    def _meet(self, request: Request, *, or_left: bool = False) -> Caller:
        """The client that asks, if it does not ask too often."""
        self._check_version(request)
        try:
            caller = self._federation.identify(request.headers.get("authorization"), or_left=or_left)
        except RefusedError:
            self._meet_stranger(request)
            raise
        self._callers.check(caller.id, self._federation.now())
        return caller

    def _meet_stranger(self, request: Request) -> None:
        address = request.client.host if request.client else None
        self._strangers.check(address, self._federation.now())

    async def _read_body(self, request: Request, *, most: int) -> bytes:
        """The whole body, if it is announced, not too long and not too slow."""
        length = request.headers.get("content-length")
        if length is None:
            raise RefusedError(Reason.size, "a body needs a Content-Length.", status=411)
        if _whole(length, "Content-Length") > most:
            raise RefusedError(Reason.size, f"the body has {length} bytes, must have at most {most}.")
        try:
            async with asyncio.timeout(self._config.body_timeout_s):
                return await request.body()
        except TimeoutError as error:
            raise RefusedError(Reason.slow, "the body did not arrive in time.") from error
        except ClientDisconnect as error:
            raise RefusedError(Reason.slow, "the connection ended before the body did.") from error

    async def _read_json(self, request: Request) -> dict[str, Any]:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise RefusedError(Reason.media, f"the body must be {_JSON}.")
        body = await self._read_body(request, most=_MOST_JSON)
        try:
            said = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RefusedError(Reason.bad_request, "the body is not JSON.") from error
        if not isinstance(said, dict):
            raise RefusedError(Reason.bad_request, "the body must be a JSON object.")
        return said


def _answer(content: bytes | dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, _JSON)


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RefusedError(Reason.bad_request, f"{name} must be a whole number from 0 on.")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= messages.MOST_WAIT_S:
        raise RefusedError(Reason.bad_request, f"wait must be a number of seconds from 0 to {messages.MOST_WAIT_S}.")
    return seconds
