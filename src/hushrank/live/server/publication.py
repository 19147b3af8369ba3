"""The ranker as clients get it: one file, made once for each round."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.terms import ranker_of
from hushrank.rankers.named import pack_ranker
from hushrank.types import Array


class PublishedRanker(NamedTuple):
    """The ranker of a round."""

    round: int  # that it is for
    content: bytes  # a safetensors file
    etag: str


class Shelf:
    """The rankers that clients may fetch: each file is made once."""

    def __init__(self, agreement: Agreement) -> None:
        self._agreement = agreement
        self._files: dict[bool, PublishedRanker] = {}  # {whether it is a candidate: the newest}

    def find(self, params: Array, *, round: int, is_candidate: bool = False) -> PublishedRanker:
        """The ranker with these parameters, which a round starts from."""
        found = self._files.get(is_candidate)
        if found is None or found.round != round:
            found = self._files[is_candidate] = publish_ranker(self._agreement, params, round=round)
        return found

    def clear(self) -> None:
        """Rankers of the same rounds may have become others."""
        self._files = {}


def publish_ranker(agreement: Agreement, params: Array, *, round: int) -> PublishedRanker:
    origin = {"agreement": agreement.digest, "round": round}
    content = pack_ranker(ranker_of(agreement), params, origin=origin)
    return PublishedRanker(round, content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
