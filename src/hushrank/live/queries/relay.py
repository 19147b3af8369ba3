"""A relay between devices and a search engine: the engine sees the group's queries, and not who asks [fedps].

A relay reads a search, and sends the engine a new one with the same words, on a connection of its own, with headers of
its own: no address, cookie, account or any other header of a device goes on. It always asks for 100 documents and cuts
the list itself, because a number that one device asks for would be its name. So would its capitals, signs and spaces
be: a query goes on as its first 20 words in small letters, whatever program sent it. The relay adds no covers, holds
nothing back and mixes nothing: times and order of searches go on as they came. It reads the engine's list, and hands on
a new one: nothing that an engine hides in headers comes back either. It writes no log and keeps counts.

A relay asks the engine for at most 100 devices at once, and for 25 at one address. Whoever comes then gets 503 at once:
nothing waits in a queue until its device has given up. So one user's slow searches do not stop the others.

The relay itself reads every query and knows who asks: it must be run by somebody whom its users trust, and for many of
them, because a relay of one user hides nobody.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from hushrank.live.device.connector import make_connector
from hushrank.live.queries.fetch import TIMEOUT_S, EngineError, fetch_answer
from hushrank.live.queries.messages import (
    MOST_LISTED,
    SearchRequest,
    encode_answer,
    encode_request,
    normalise_query,
    parse_answer,
)
from hushrank.live.queries.requests import make_search_app, refuse
from hushrank.live.wire.addresses import network_of

MOST_AT_ONCE, MOST_PER_ADDRESS = 100, 25  # searches under way. Why 25: a household or an office may share an address
RELAY_TIMEOUT_S = TIMEOUT_S - 2  # Why shorter: a device hears from the relay what is wrong, before it gives up itself


class QueryRelay:
    """Before one engine."""

    def __init__(
        self,
        engine_url: str,
        *,
        ca: Path | None = None,
        timeout_s: float = RELAY_TIMEOUT_S,
        most_at_once: int = MOST_AT_ONCE,
        most_per_address: int = MOST_PER_ADDRESS,
    ) -> None:
        """most_per_address: searches under way; 0 for any number, as behind a proxy that all devices share."""
        self._connector = make_connector(engine_url, ca, carries="users' queries")
        self._timeout_s, self._most, self._most_per_address = timeout_s, most_at_once, most_per_address
        self._threads, self._asking = CapacityLimiter(most_at_once), Counter[str]()  # {network: searches under way}
        self.n_relayed = self.n_failed = self.n_refused = self.n_broken_off = 0

    def app(self) -> Starlette:
        return make_search_app(self._answer, self._count_broken_off)

    def _count_broken_off(self) -> None:
        self.n_broken_off += 1

    async def _answer(self, request: Request, wanted: SearchRequest) -> Response:
        """Nothing of the request but what is wanted goes on."""
        try:
            body = encode_request(SearchRequest(normalise_query(wanted.query), MOST_LISTED))
        except ValueError:
            return refuse(400, "there is no word in the query.")
        network = network_of(request.client.host if request.client else "")
        if self._asking.total() >= self._most or 0 < self._most_per_address <= self._asking[network]:
            self.n_refused += 1
            return refuse(503, "too many searches are under way: search again later.")
        self._asking[network] += 1
        try:
            if await request.is_disconnected():  # Why: its device has given up, and nobody would read the answer
                self._count_broken_off()
                return refuse(408, "the search came too late.")
            content = await to_thread.run_sync(self._ask, body, wanted.n, limiter=self._threads)
        except (EngineError, RuntimeError, MemoryError):  # Why the last two: no thread may be left to ask it
            self.n_failed += 1
            return refuse(502, "the search engine behind this relay gave no list.")
        finally:
            self._asking[network] -= 1
            self._asking += Counter()  # forgets those who have none
        self.n_relayed += 1
        return Response(content, media_type="application/json")

    def _ask(self, body: bytes, n: int) -> bytes:
        answer = fetch_answer(self._connector, body, timeout_s=self._timeout_s)
        try:
            return encode_answer(parse_answer(answer, n=MOST_LISTED)[:n])
        except ValueError:
            raise EngineError("an answer that cannot be read") from None
