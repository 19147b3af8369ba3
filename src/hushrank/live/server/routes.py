"""The routes: each reads a request, asks the coordinator one thing and answers. Every refusal has a reason."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response as StarletteResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hushrank.live.server.clients import KnownClient
from hushrank.live.server.config import ServerConfig
from hushrank.live.server.coordinator import Coordinator
from hushrank.live.server.counters import as_text
from hushrank.live.server.forgetting import read_forgotten
from hushrank.live.server.instances import Instances
from hushrank.live.server.limits import RateLimit, check_weight
from hushrank.live.server.publication import PublishedRanker
from hushrank.live.server.requests import Request, Response, address_of
from hushrank.live.server.store import NO_TOKEN, hash_secret
from hushrank.live.wire import protocol
from hushrank.live.wire.agreement import as_json
from hushrank.live.wire.credentials import is_secret
from hushrank.live.wire.openapi import describe_api
from hushrank.live.wire.refusals import Reason, RefusedError

_MOST_JSON = 1024  # bytes of a JSON body
_WIRE, _VERSION = protocol.WIRE_HEADER.lower().encode(), str(protocol.WIRE_VERSION)
_AGREEMENT, _WEIGHT = protocol.AGREEMENT_HEADER.lower().encode(), protocol.WEIGHT_HEADER.lower().encode()
_RECEIPT = protocol.RECEIPT_HEADER.lower().encode()
_FILLED = protocol.FILLED_HEADER.lower().encode()
_INSTANCE = protocol.INSTANCE_HEADER.lower().encode()
_BEFORE_ROUND = protocol.UPDATE.partition("{round}")[0]
_OPERATOR = "operator"
_ACCEPTED, _AGAIN = Response({"accepted": True}), Response({"accepted": True, "again": True})

Handler = Callable[[Request], Awaitable[Response]]


def make_app(coordinator: Coordinator, config: ServerConfig, *, operator_token: str) -> Application:
    """The whole service. It starts and stops the coordinator."""
    routes = Routes(coordinator, config, operator_token)
    endpoints = {
        ("PUT", protocol.UPDATE): Endpoint(routes, protocol.UPDATE, routes.update),
        ("GET", protocol.ROUND): Endpoint(routes, protocol.ROUND, routes.round),
        ("GET", protocol.RANKER): Endpoint(routes, protocol.RANKER, routes.ranker),
        ("GET", protocol.FEDERATION): Endpoint(routes, protocol.FEDERATION, routes.federation),
        ("GET", protocol.ME): Endpoint(routes, protocol.ME, routes.me),
        ("POST", protocol.ENROL): Endpoint(routes, protocol.ENROL, routes.enrol),
        ("POST", protocol.LEAVE): Endpoint(routes, protocol.LEAVE, routes.leave),
        ("GET", protocol.CANDIDATE): Endpoint(routes, protocol.CANDIDATE, routes.candidate),
        ("POST", protocol.DECLINE): Endpoint(routes, protocol.DECLINE, routes.decline),
        ("GET", protocol.FORGOTTEN): Endpoint(routes, protocol.FORGOTTEN, routes.forgotten),
        ("GET", protocol.HEALTH): Endpoint(routes, protocol.HEALTH, routes.health),
        ("GET", protocol.METRICS): Endpoint(routes, protocol.METRICS, routes.metrics),
        ("GET", protocol.OPENAPI): Endpoint(routes, protocol.OPENAPI, routes.openapi),
    }

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        await coordinator.start()
        yield
        await coordinator.stop()

    rest = Starlette(
        routes=[Route(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()],
        exception_handlers={HTTPException: routes.refuse_path},
        lifespan=live,
    )
    rest.router.redirect_slashes = False
    return Application(rest, routes, endpoints)


class Endpoint:
    """One route, as an ASGI application: calls its handler and turns refusals into answers."""

    def __init__(self, routes: Routes, path: str, handle: Handler) -> None:
        self._routes, self._path, self._handle = routes, path, handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._handle(Request(scope, receive))
        except RefusedError as refused:
            response = self._routes.refuse(refused)
        self._routes.counters.requests[self._path, response.status] += 1
        await response.send(scope, send)


class Application:
    """Takes requests to their endpoints, and everything else to Starlette, which knows how to refuse it.

    Why not Starlette alone: its routing and middlewares would take as long as everything else together.
    """

    def __init__(self, rest: Starlette, routes: Routes, endpoints: dict[tuple[str, str], Endpoint]) -> None:
        self.rest, self._routes = rest, routes
        self._endpoints, self._update = endpoints, endpoints["PUT", protocol.UPDATE]

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self.rest(scope, receive, send)
        path, method = scope["path"], scope["method"]
        endpoint = self._endpoints.get((method, path))
        if endpoint is None and method == "PUT" and _is_update(path):
            endpoint = self._update
        refused = self._routes.refuse_address(scope, is_known=endpoint is not None)
        if refused is not None:
            return refused.send(scope, send)
        return (endpoint or self.rest)(scope, receive, send)


class Routes:
    """What stands between the network and the coordinator."""

    def __init__(self, coordinator: Coordinator, config: ServerConfig, operator_token: str) -> None:
        self.counters = coordinator.counters
        self._federation, self._body_timeout_s = coordinator, config.body_timeout_s
        self._operator, self._instances = hash_secret(operator_token), Instances()
        self._callers = RateLimit(per_second=config.requests_per_second, burst=config.burst)
        self._strangers = RateLimit(per_second=config.requests_per_second, burst=config.burst)
        each_s = config.requests_per_address
        self._addresses = RateLimit(per_second=each_s, burst=math.ceil(2 * each_s))
        agreed = {"agreement": as_json(coordinator.agreement), "digest": coordinator.digest}
        self._agreed, self._api = Response({**agreed, "wire": protocol.WIRE_VERSION}), Response(describe_api())

    # Routes

    async def federation(self, request: Request) -> Response:
        self._meet_stranger(request)
        return self._agreed

    async def enrol(self, request: Request) -> Response:
        self._check_version(request)
        self._meet_stranger(request)
        credential = request.secret()
        if credential is None or not is_secret(credential):
            raise RefusedError(Reason.credential, "send Authorization: Bearer and 43 url-safe characters of your own.")
        said = await request.json(most=_MOST_JSON, within_s=self._body_timeout_s)
        token = said.get("token")
        if not isinstance(token, str) or len(said) > 1:
            raise RefusedError(Reason.bad_request, 'the body must be {"token": "..."}, with no other key.')
        if not is_secret(token):
            raise RefusedError(Reason.token, NO_TOKEN)
        standing = await self._federation.enrol(token, credential)
        request.recognise(self._federation.identify(credential).id)
        return Response({"accepted_updates": standing.accepted_updates})

    async def me(self, request: Request) -> Response:
        return Response(self._federation.standing(self._meet(request)).as_json())

    async def round(self, request: Request) -> Response:
        caller, query = self._meet(request), request.query()
        instance = request.header(_INSTANCE)
        self._instances.meet(caller.id, instance)
        after, wait_s = _whole(query.get("after", "0"), "after"), _seconds(query.get("wait", "0"))
        try:
            news = await self._federation.wait_for_round(caller, after=after, wait_s=wait_s)
        except RefusedError as refused:
            if refused.reason is Reason.rate and self._instances.is_former(caller.id, instance):
                refused.retry_after_s = 0  # Why: if it is still there, it is a clone, and should hear that now
            raise
        return Response(b"", status=204) if news is None else Response(news.as_json())

    async def ranker(self, request: Request) -> Response:
        self._meet(request)
        text = request.query().get("round")
        published = self._federation.published(None if text is None else _whole(text, "round"))
        return _send_ranker(request, published)

    async def candidate(self, request: Request) -> Response:
        self._meet(request)
        return _send_ranker(request, self._federation.candidate(_asked_round(request)))

    async def decline(self, request: Request) -> Response:
        self._federation.decline(self._meet(request), _asked_round(request))
        return Response({"declined": True})

    async def update(self, request: Request) -> Response:
        caller, limits = self._meet(request), self._federation.limits
        if not request.is_of_type(protocol.BODY_TYPE):
            raise RefusedError(Reason.media, f"an update is sent as {protocol.BODY_TYPE}.")
        if request.header(_AGREEMENT) != self._federation.digest:
            raise RefusedError(Reason.agreement, "this federation has another agreement than the client.")
        weight = check_weight(limits, request.header(_WEIGHT))
        number, phase = _parse_update_path(request.scope["path"])
        body = await request.body(most=limits.n_bytes, within_s=self._body_timeout_s)
        limits.check(body)
        is_filled = request.header(_FILLED) == "1"
        is_again = await self._federation.intake.take(caller, number, phase, weight, body, is_filled=is_filled)
        return _AGAIN if is_again else _ACCEPTED

    async def leave(self, request: Request) -> Response:
        caller = self._meet(request, or_left=True)
        if not await self._wants_forgetting(request):
            await self._federation.leave(caller)
            return Response({"left": True})
        return Response({"left": True, "client": await self._federation.forget(caller)})

    async def _wants_forgetting(self, request: Request) -> bool:
        """Who sends nothing leaves, as ever."""
        if request.header(b"content-length") in (None, "0"):
            return False
        said = await request.json(most=_MOST_JSON, within_s=self._body_timeout_s)
        if said != {"forget": True}:
            raise RefusedError(Reason.bad_request, 'the body must be {"forget": true}, or empty.')
        return True

    async def forgotten(self, request: Request) -> Response:
        self._meet_stranger(request)
        name = str(request.scope["path_params"]["client"])
        found = await self._federation.write(lambda connection: read_forgotten(connection, name))
        if found is None:
            raise RefusedError(Reason.not_found, "nobody with this pseudonym has asked to be forgotten.")
        return Response(found.as_json())

    async def health(self, request: Request) -> Response:
        self._meet_stranger(request)
        if self._federation.is_in_trouble:
            raise RefusedError(Reason.disk, self._federation.trouble.words, retry_after_s=5)
        if self._federation.is_behind:
            raise RefusedError(Reason.behind, "the server's file is older than what clients have seen.")
        return Response({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        self._meet_stranger(request)
        if not hmac.compare_digest(hash_secret(request.secret() or ""), self._operator):
            raise RefusedError(Reason.credential, "metrics are for the operator: send the token of the file keys.")
        request.recognise(_OPERATOR)
        text = as_text(self.counters, self._federation.gauges(), self._federation.rounds.state)
        return Response(text.encode(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        self._meet_stranger(request)
        return self._api

    # Refusals

    def refuse_address(self, scope: Scope, *, is_known: bool) -> Response | None:
        """The refusal of an address that asks too often, before anything is looked up; None: it may ask."""
        address, now = address_of(scope), self._federation.now()
        try:
            self._addresses.check(address, now)
            if not is_known:  # such a path and method
                self._strangers.check(address, now)
        except RefusedError as refused:
            return self.refuse(refused)
        return None

    def refuse(self, refused: RefusedError) -> Response:
        self._federation.count_refusal(refused.reason)
        # Why not for size too: whoever still sends would see a broken connection instead of the reason
        headers = {"connection": "close"} if refused.reason in (Reason.slow, Reason.rate) else {}
        if refused.retry_after_s is not None:
            headers["retry_after"] = str(refused.retry_after_s)
        if refused.status == 401:
            headers["www_authenticate"] = "Bearer"
        if refused.status == 426:
            headers["upgrade"] = f"hushrank-wire/{protocol.WIRE_VERSION}"
        return Response({"reason": str(refused.reason), "detail": str(refused)}, status=refused.status, **headers)

    async def refuse_path(self, _: StarletteRequest, error: Exception) -> StarletteResponse:
        """No such path, or not this method on it; called by Starlette."""
        assert isinstance(error, HTTPException)
        self._federation.count_refusal(Reason.not_found)
        said = {"reason": str(Reason.not_found), "detail": "there is no such path and method."}
        return StarletteResponse(json.dumps(said), error.status_code, error.headers, "application/json")

    # Who asks

    def _check_version(self, request: Request) -> None:
        if request.header(_WIRE) != _VERSION:
            self._meet_stranger(request)
            raise RefusedError(
                Reason.version,
                f"this server speaks version {protocol.WIRE_VERSION} of the wire: send {protocol.WIRE_HEADER}: "
                f"{protocol.WIRE_VERSION}, or update hushrank.",
            )

    def _meet(self, request: Request, *, or_left: bool = False) -> KnownClient:
        """The client that asks, if it does not request too often."""
        self._check_version(request)
        if (receipt := request.header(_RECEIPT)) is not None:
            self._federation.compare_past(receipt)  # Why first: who enrolled after the copy was made is not known in it
            if not or_left:  # Why: who leaves needs no decision, and must not wait for one
                self._federation.past.refuse_if_behind()
        try:
            caller = self._federation.identify(request.secret(), or_left=or_left)
        except RefusedError:
            self._meet_stranger(request)
            raise
        request.recognise(caller.id)
        self._callers.check(caller.id, self._federation.now())
        return caller

    def _meet_stranger(self, request: Request) -> None:
        self._strangers.check(request.address, self._federation.now())


def _send_ranker(request: Request, published: PublishedRanker) -> Response:
    is_known = request.header(b"if-none-match") == published.etag
    content, status = (b"", 304) if is_known else (published.content, 200)
    kind = protocol.BODY_TYPE
    return Response(content, status=status, media_type=kind, etag=published.etag, cache_control="no-cache")


def _asked_round(request: Request) -> int:
    return _whole(request.query().get("round", ""), "round")


def _is_update(path: str) -> bool:
    return path.startswith(_BEFORE_ROUND) and path.count("/") == protocol.UPDATE.count("/")


def _parse_update_path(path: str) -> tuple[int, str]:
    """Round and phase of an update."""
    round, _, phase = path.removeprefix(_BEFORE_ROUND).partition("/")
    if phase not in protocol.PHASES:
        raise RefusedError(Reason.phase, f"a round of this federation has the phases {', '.join(protocol.PHASES)}.")
    return _whole(round, "round"), phase


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RefusedError(Reason.bad_request, f"{name} must be a whole number from 0 on.")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= protocol.MOST_WAIT_S:
        raise RefusedError(Reason.bad_request, f"wait must be a number of seconds from 0 to {protocol.MOST_WAIT_S}.")
    return seconds
