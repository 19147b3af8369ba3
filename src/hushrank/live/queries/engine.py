"""A small search engine over HTTP: BM25 over titles, and a log of what it could know about whoever asks.

It is there to try the way of a query, and to show what an engine sees: `seen` holds of every question the time, the
address it came from, the target, all headers and all that its body says, the way an engine that wants to know its users
would keep it.
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
    target: str  # path and what follows it, as they came
    headers: dict[str, str]  # {name: value, or all of them with commas between}
    query: str
    n: int  # documents that were asked for


def see_query(request: Request, wanted: SearchRequest) -> SeenQuery:
    address = request.client.host if request.client else ""
    path, after = (request.scope[part].decode("latin-1") for part in ("raw_path", "query_string"))
    headers = {name: ", ".join(request.headers.getlist(name)) for name in request.headers}
    return SeenQuery(time.time(), address, f"{path}?{after}" if after else path, headers, wanted.query, wanted.n)


class TitleEngine:
    """Finds titles of a collection. A document's name is d and its row."""

    def __init__(self, collection: Collection) -> None:
        self.collection, self.index = collection, make_index(collection)
        self.seen: deque[SeenQuery] = deque(maxlen=_MOST_SEEN)
        self.n_broken_off = 0  # questions that ended before all of them had come
        self._numbers = {word: number for number, word in enumerate(collection.words) if number > 1}

    def find(self, wanted: SearchRequest) -> list[FoundDocument]:
        query = pad_words([encode_words(wanted.query, self._numbers, most=N_QUERY_WORDS)], N_QUERY_WORDS)
        rows = find_candidates(self.index, query, wanted.n).documents.tolist()
        return [FoundDocument(f"d{row}", self.title(row)) for row in rows]

    def title(self, row: int) -> str:
        return " ".join(self.collection.words[word] for word in self.collection.titles[row] if word != PADDING)

    def app(self) -> Starlette:
        return make_search_app(self._answer, self._count_broken_off)

    def _count_broken_off(self) -> None:
        self.n_broken_off += 1

    async def _answer(self, request: Request, wanted: SearchRequest) -> Response:
        self.seen.append(see_query(request, wanted))
        found = await run_in_threadpool(self.find, wanted)
        return Response(encode_answer(found), media_type="application/json")
