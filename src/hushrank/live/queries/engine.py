"""A small search engine over HTTP: BM25 over titles, and a log of all that it could know about whoever asks.

It is there to try the way of a query, and to show what an engine sees: `seen` holds every question with the address it
came from and all its headers, the way an engine that wants to know its users would keep it.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from hushrank.live.queries.messages import SearchRequest, encode_answer
from hushrank.live.queries.requests import make_search_app
from hushrank.personal.bm25 import find_candidates, make_index
from hushrank.personal.log import N_QUERY_WORDS, PADDING, Collection, pad_words
from hushrank.personal.queries.local_log import FoundDocument, encode_words

_MOST_SEEN = 100_000


class SeenQuery(NamedTuple):
    """One line of an engine's log."""

    time: float
    address: str  # of whoever connected
    headers: dict[str, str]
    query: str


class TitleEngine:
    """Finds titles of a collection. A document's name is d and its row."""

    def __init__(self, collection: Collection) -> None:
        self.collection, self.index = collection, make_index(collection)
        self.seen: deque[SeenQuery] = deque(maxlen=_MOST_SEEN)
        self._numbers = {word: number for number, word in enumerate(collection.words) if number > 1}

    def find(self, wanted: SearchRequest) -> list[FoundDocument]:
        query = pad_words([encode_words(wanted.query, self._numbers, most=N_QUERY_WORDS)], N_QUERY_WORDS)
        rows = find_candidates(self.index, query, wanted.n).documents.tolist()
        return [FoundDocument(f"d{row}", self.title(row)) for row in rows]

    def title(self, row: int) -> str:
        return " ".join(self.collection.words[word] for word in self.collection.titles[row] if word != PADDING)

    def app(self) -> Starlette:
        return make_search_app(self._answer)

    async def _answer(self, request: Request, wanted: SearchRequest) -> Response:
        address = request.client.host if request.client else ""
        self.seen.append(SeenQuery(time.time(), address, dict(request.headers), wanted.query))
        found = await run_in_threadpool(self.find, wanted)
        return Response(encode_answer(found), media_type="application/json")
