"""A relay between devices and a search engine: the engine sees the group's queries, and not who asks [fedps].

A relay reads a search, and sends the engine a new one with the same query and number, on a connection of its own, with
headers of its own: no address, cookie, account or any other header of a device goes on. It adds no covers. It reads the
engine's list, and hands on a new one: nothing that an engine hides in headers comes back either. It writes no log and
keeps a count.

The relay itself reads every query and knows who asks: it must be run by somebody whom its users trust, and for many of
them, because a relay of one user hides nobody.
"""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from hushrank.live.device.connector import make_connector
from hushrank.live.queries.fetch import TIMEOUT_S, EngineError, fetch_answer
from hushrank.live.queries.messages import SearchRequest, encode_answer, encode_request, parse_answer
from hushrank.live.queries.requests import make_search_app, refuse

RELAY_TIMEOUT_S = TIMEOUT_S - 2  # Why shorter: a device hears from the relay what is wrong, before it gives up itself


class QueryRelay:
    """Before one engine."""

    def __init__(self, engine_url: str, *, ca: Path | None = None, timeout_s: float = RELAY_TIMEOUT_S) -> None:
        self._connector = make_connector(engine_url, ca, carries="users' queries")
        self._timeout_s = timeout_s
        self.n_relayed = self.n_failed = 0

    def app(self) -> Starlette:
        return make_search_app(self._answer)

    async def _answer(self, request: Request, wanted: SearchRequest) -> Response:
        del request  # Why: nothing of it goes on
        try:
            content = await run_in_threadpool(self._ask, wanted)
        except EngineError:
            self.n_failed += 1
            return refuse(502, "the search engine behind this relay gave no list.")
        self.n_relayed += 1
        return Response(content, media_type="application/json")

    def _ask(self, wanted: SearchRequest) -> bytes:
        answer = fetch_answer(self._connector, encode_request(wanted), timeout_s=self._timeout_s)
        try:
            return encode_answer(parse_answer(answer, n=wanted.n))
        except ValueError:
            raise EngineError("an answer that cannot be read") from None
