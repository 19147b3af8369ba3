"""What a server takes from a client it knows nothing about: bodies of the right form and size, and not too often."""

from __future__ import annotations

import math

from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.body_formats import BodyFormat, body_of
from hushrank.live.wire.refusals import Reason, RefusedError


def limits_of(agreement: Agreement, *, max_norm: float) -> BodyFormat:
    """max_norm: of an update that no clipping bounds (privacy none or paper)."""
    return body_of(agreement, max_norm=max_norm)


def check_weight(limits: BodyFormat, header: str | None) -> int:
    """The weight of an update from its header; without one, 1 where every client counts alike."""
    text = header if header is not None else "1" if limits.most_weight == 1 else ""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= limits.most_weight):
        raise RefusedError(
            Reason.weight,
            f"the weight must be a whole number from 1 to {limits.most_weight}: the searches it was learnt from.",
        )
    return int(text)


class RateLimit:
    """So many requests per second on average, and so many at once: a bucket of tokens for each who asks."""

    def __init__(self, *, per_second: float, burst: int, most_known: int = 100_000) -> None:
        self.per_second, self.burst, self.most_known = per_second, burst, most_known
        self._buckets: dict[object, tuple[float, float]] = {}  # {who: (tokens, when that was)}

    def check(self, who: object, now: float) -> None:
        """Take a token, or refuse and say when one will be there."""
        tokens, then = self._buckets.get(who) or (self.burst, now)
        tokens += (now - then) * self.per_second
        if tokens > self.burst:  # Why not min: this is asked twice for every request
            tokens = self.burst
        if tokens < 1:
            wait = math.ceil((1 - tokens) / self.per_second)
            raise RefusedError(Reason.rate, "too many requests: wait.", retry_after_s=wait)
        if len(self._buckets) >= self.most_known and who not in self._buckets:
            self._forget(now)
        self._buckets[who] = (tokens - 1, now)

    def _forget(self, now: float) -> None:
        """Whoever would have a full bucket again is as good as unknown; if nobody would, everybody is."""
        longest = self.burst / self.per_second
        self._buckets = {who: seen for who, seen in self._buckets.items() if now - seen[1] < longest}
        if len(self._buckets) >= self.most_known:
            self._buckets.clear()
