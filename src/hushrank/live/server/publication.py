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


def publish_ranker(agreement: Agreement, params: Array, *, round: int) -> PublishedRanker:
    origin = {"agreement": agreement.digest, "round": round}
    content = pack_ranker(ranker_of(agreement), params, origin=origin)
    return PublishedRanker(round, content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
