"""What a device, a relay and a search engine say to each other: one query, one list. Nothing else crosses.

    POST /v1/search    {"query": "two words", "n": 30}    ->    {"documents": [{"name": "d17", "title": "..."}, ...]}

Why POST: the addresses of requests stand in logs of every machine on the way, bodies do not. No error here holds a
query or a title.

Both bodies are UTF-8 without escapes, so that what is passed on is never longer than it came. Half of a surrogate pair
is no letter: it becomes "?" in a query and in a title, and a list with one in a name is refused, because two names
could become one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from hushrank.live.wire.untrusted import parse_untrusted
from hushrank.personal.log import N_QUERY_WORDS
from hushrank.personal.queries.local_log import FoundDocument
from hushrank.personal.titles import split_words

SEARCH = "/v1/search"
MOST_LISTED = 100  # documents that may be asked for
MOST_QUERY = 1000  # letters
MOST_REQUEST = 8 << 10  # bytes
MOST_ANSWER = 512 << 10
_MOST_NAME, _MOST_TITLE = 500, 2000  # letters


class SearchRequest(NamedTuple):
    """All that an engine needs to know."""

    query: str
    n: int


def encode_request(request: SearchRequest) -> bytes:
    """ValueError for what an engine must refuse."""
    content = _encode(check_request(request)._asdict())
    if len(content) > MOST_REQUEST:
        raise ValueError(f"the search has {len(content)} bytes, must have at most {MOST_REQUEST}.")
    return content


def check_request(request: SearchRequest) -> SearchRequest:
    if not isinstance(request.query, str) or not 0 < len(request.query) <= MOST_QUERY:
        raise ValueError(f"the query must be a text of 1 to {MOST_QUERY} letters.")
    if not isinstance(request.n, int) or isinstance(request.n, bool) or not 1 <= request.n <= MOST_LISTED:
        raise ValueError(f"n must be a whole number from 1 to {MOST_LISTED}.")
    return request


def normalise_query(text: str) -> str:
    """Words in small letters, at most 20; refuses a text without any."""
    if not isinstance(text, str):
        raise ValueError("the query must be a text.")
    words = split_words(text)[:N_QUERY_WORDS]
    if not words:
        raise ValueError("there is no word in the query. Type at least one.")
    return " ".join(words)


def _encode(said: object) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace")


def parse_request(content: bytes) -> SearchRequest:
    """ValueError for anything else."""
    said = parse_untrusted(content)
    if not isinstance(said, dict) or said.keys() != {"query", "n"}:
        raise ValueError('a search is {"query": text, "n": number}.')
    return check_request(SearchRequest(said["query"], said["n"]))


def encode_answer(documents: Sequence[FoundDocument]) -> bytes:
    return _encode({"documents": [document._asdict() for document in documents]})


def parse_answer(content: bytes, *, n: int) -> tuple[FoundDocument, ...]:
    """At most n documents, each once; ValueError for anything else, without a word of it."""
    said = _parse_silently(content)
    documents = said.get("documents") if isinstance(said, dict) else None
    if not isinstance(documents, list):
        raise ValueError('it has no list "documents"')
    if len(documents) > n:
        raise ValueError(f"it has {len(documents)} documents where {n} were asked for")
    found = tuple(_parse_document(each) for each in documents)
    if len({document.name for document in found}) < len(found):
        raise ValueError("it has a document twice")
    return found


def _parse_silently(content: bytes) -> object:
    """Why the error is raised after the one that holds the answer: raised within `except`, it would keep it."""
    with suppress(ValueError):
        return parse_untrusted(content)
    raise ValueError("it is not JSON")


def _parse_document(said: object) -> FoundDocument:
    name, title = (said.get("name"), said.get("title")) if isinstance(said, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(title, str):
        raise ValueError("a document has no name or no title")
    if not 0 < len(name) <= _MOST_NAME or len(title) > _MOST_TITLE:
        raise ValueError("a document's name or title is too long, or the name is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ValueError("a document's name has half of a surrogate pair")
    return FoundDocument(name, title)
