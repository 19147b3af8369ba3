"""The routes: each reads a request, asks the coordinator one thing and answers. Every refusal has a reason."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hushrank.live import messages
from hushrank.live.agreement import as_json
from hushrank.live.asking import Answer, Ask
from hushrank.live.config import ServerConfig
from hushrank.live.coordinator import Caller, Coordinator
from hushrank.live.counters import as_text
from hushrank.live.limits import RateLimit, check_body, check_weight
from hushrank.live.messages import Reason, RefusedError
from hushrank.live.openapi import describe_api
from hushrank.live.store import hash_secret

_MOST_JSON = 1024  # bytes of a JSON body
_WIRE = messages.WIRE_HEADER.lower().encode()
_AGREEMENT, _WEIGHT = messages.AGREEMENT_HEADER.lower().encode(), messages.WEIGHT_HEADER.lower().encode()
_BEFORE_ROUND, _, _AFTER_ROUND = messages.UPDATE.partition("{round}")
_ACCEPTED, _AGAIN = Answer({"accepted": True}), Answer({"accepted": True, "again": True})

Handler = Callable[[Ask], Awaitable[Answer]]


def make_app(coordinator: Coordinator, config: ServerConfig, *, operator_token: str) -> Front:
    """The whole service. It starts and stops the coordinator."""
    door = Door(coordinator, config, operator_token)
    endpoints = {
        ("PUT", messages.UPDATE): Endpoint(door, messages.UPDATE, door.update),
        ("GET", messages.ROUND): Endpoint(door, messages.ROUND, door.round),
        ("GET", messages.RANKER): Endpoint(door, messages.RANKER, door.ranker),
        ("GET", messages.FEDERATION): Endpoint(door, messages.FEDERATION, door.federation),
        ("GET", messages.ME): Endpoint(door, messages.ME, door.me),
        ("POST", messages.ENROL): Endpoint(door, messages.ENROL, door.enrol),
        ("POST", messages.LEAVE): Endpoint(door, messages.LEAVE, door.leave),
        ("GET", messages.HEALTH): Endpoint(door, messages.HEALTH, door.health),
        ("GET", messages.METRICS): Endpoint(door, messages.METRICS, door.metrics),
        ("GET", messages.OPENAPI): Endpoint(door, messages.OPENAPI, door.openapi),
    }

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        await coordinator.start()
        yield
        await coordinator.stop()

    rest = Starlette(
        routes=[Route(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()],
        exception_handlers={HTTPException: door.refuse_path},
        lifespan=live,
    )
    rest.router.redirect_slashes = False
    return Front(rest, endpoints)


class Endpoint:
    """One route, as an ASGI application: calls its handler and turns refusals into answers."""

    def __init__(self, door: Door, path: str, handle: Handler) -> None:
        self._door, self._path, self._handle = door, path, handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._handle(Ask(scope, receive))
        except RefusedError as refused:
            answer = self._door.refuse(refused)
        self._door.counters.requests[self._path, answer.status] += 1
        await answer.send(send)


class Front:
    """Takes requests to their endpoints, and everything else to Starlette, which knows how to refuse it.

    Why not Starlette alone: its routing and middlewares would take as long as everything else together.
    """

    def __init__(self, rest: Starlette, endpoints: dict[tuple[str, str], Endpoint]) -> None:
        self.rest = rest
        self._endpoints, self._update = endpoints, endpoints["PUT", messages.UPDATE]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.rest(scope, receive, send)
        path, method = scope["path"], scope["method"]
        endpoint = self._endpoints.get((method, path))
        if endpoint is None and method == "PUT" and path.startswith(_BEFORE_ROUND) and path.endswith(_AFTER_ROUND):
            endpoint = self._update
        return await (endpoint or self.rest)(scope, receive, send)


class Door:
    """What stands between the network and the coordinator."""

    def __init__(self, coordinator: Coordinator, config: ServerConfig, operator_token: str) -> None:
        self.counters = coordinator.counters
        self._federation, self._body_timeout_s = coordinator, config.body_timeout_s
        self._operator = hash_secret(operator_token)
        self._callers = RateLimit(per_second=config.requests_per_second, burst=config.burst)
        self._strangers = RateLimit(per_second=config.requests_per_second, burst=config.burst)
        agreed = {"agreement": as_json(coordinator.agreement), "digest": coordinator.digest}
        self._agreed, self._api = Answer({**agreed, "wire": messages.WIRE_VERSION}), Answer(describe_api())

    # Routes

    async def federation(self, ask: Ask) -> Answer:
        self._meet_stranger(ask)
        return self._agreed

    async def enrol(self, ask: Ask) -> Answer:
        self._check_version(ask)
        self._meet_stranger(ask)
        credential = ask.secret()
        if credential is None or not messages.is_secret(credential):
            raise RefusedError(Reason.credential, "send Authorization: Bearer and 43 url-safe characters of your own.")
        said = await ask.json(most=_MOST_JSON, within_s=self._body_timeout_s)
        token = said.get("token")
        if not isinstance(token, str) or len(said) > 1:
            raise RefusedError(Reason.bad_request, 'the body must be {"token": "..."}, with no other key.')
        standing = await self._federation.enrol(token if messages.is_secret(token) else "", credential)
        return Answer({"accepted_updates": standing.accepted_updates})

    async def me(self, ask: Ask) -> Answer:
        return Answer(self._federation.standing(self._meet(ask)).as_json())

    async def round(self, ask: Ask) -> Answer:
        caller, query = self._meet(ask), ask.query()
        after, wait_s = _whole(query.get("after", "0"), "after"), _seconds(query.get("wait", "0"))
        news = await self._federation.wait_for_round(caller, after=after, wait_s=wait_s)
        return Answer(b"", status=204) if news is None else Answer(news.as_json())

    async def ranker(self, ask: Ask) -> Answer:
        self._meet(ask)
        text = ask.query().get("round")
        published = self._federation.published(None if text is None else _whole(text, "round"))
        is_known = ask.header(b"if-none-match") == published.etag
        content, status = (b"", 304) if is_known else (published.content, 200)
        kind = messages.BODY_TYPE
        return Answer(content, status=status, media_type=kind, etag=published.etag, cache_control="no-cache")

    async def update(self, ask: Ask) -> Answer:
        caller, limits = self._meet(ask), self._federation.limits
        if not ask.is_of_type(messages.BODY_TYPE):
            raise RefusedError(Reason.media, f"an update is sent as {messages.BODY_TYPE}.")
        if ask.header(_AGREEMENT) != self._federation.digest:
            raise RefusedError(Reason.agreement, "this federation has another agreement than the client.")
        weight = check_weight(limits, ask.header(_WEIGHT))
        number = _whole(ask.scope["path"][len(_BEFORE_ROUND) : -len(_AFTER_ROUND)], "round")
        body = await ask.body(most=limits.most_bytes, within_s=self._body_timeout_s)
        check_body(limits, body)
        is_again = await self._federation.take_update(caller, number, weight, body)
        return _AGAIN if is_again else _ACCEPTED

    async def leave(self, ask: Ask) -> Answer:
        await self._federation.leave(self._meet(ask, or_left=True))
        return Answer({"left": True})

    async def health(self, ask: Ask) -> Answer:
        self._meet_stranger(ask)
        if self._federation.is_in_trouble:
            raise RefusedError(Reason.disk, "the server cannot write to its disk.", retry_after_s=5)
        return Answer({"status": "ok"})

    async def metrics(self, ask: Ask) -> Answer:
        self._meet_stranger(ask)
        if not hmac.compare_digest(hash_secret(ask.secret() or ""), self._operator):
            raise RefusedError(Reason.credential, "metrics are for the operator: send the token of the file keys.")
        text = as_text(self.counters, self._federation.gauges(), self._federation.rounds.phase)
        return Answer(text.encode(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, ask: Ask) -> Answer:
        self._meet_stranger(ask)
        return self._api

    # Refusals

    def refuse(self, refused: RefusedError) -> Answer:
        self._federation.count_refusal(refused.reason)
        # Why not for size too: whoever still sends would see a broken connection instead of the reason
        headers = {"connection": "close"} if refused.reason is Reason.slow else {}
        if refused.retry_after_s is not None:
            headers["retry_after"] = str(refused.retry_after_s)
        if refused.status == 401:
            headers["www_authenticate"] = "Bearer"
        if refused.status == 426:
            headers["upgrade"] = f"hushrank-wire/{messages.WIRE_VERSION}"
        return Answer({"reason": str(refused.reason), "detail": str(refused)}, status=refused.status, **headers)

    async def refuse_path(self, _: Request, error: Exception) -> Response:
        """No such path, or not this method on it; called by Starlette."""
        assert isinstance(error, HTTPException)
        self._federation.count_refusal(Reason.not_found)
        said = {"reason": str(Reason.not_found), "detail": "there is no such path and method."}
        return Response(json.dumps(said), error.status_code, error.headers, "application/json")

    # Who asks

    def _check_version(self, ask: Ask) -> None:
        if ask.header(_WIRE) != str(messages.WIRE_VERSION):
            raise RefusedError(
                Reason.version,
                f"this server speaks version {messages.WIRE_VERSION} of the wire: send {messages.WIRE_HEADER}: "
                f"{messages.WIRE_VERSION}, or update hushrank.",
            )

    def _meet(self, ask: Ask, *, or_left: bool = False) -> Caller:
        """The client that asks, if it does not ask too often."""
        self._check_version(ask)
        try:
            caller = self._federation.identify(ask.secret(), or_left=or_left)
        except RefusedError:
            self._meet_stranger(ask)
            raise
        self._callers.check(caller.id, self._federation.now())
        return caller

    def _meet_stranger(self, ask: Ask) -> None:
        self._strangers.check(ask.address, self._federation.now())


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
