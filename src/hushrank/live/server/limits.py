"""What a server takes from a client it knows nothing about: bodies of the right form and size, and not too often."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.bodies import decode_reward, decode_update
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import count_params, evolution_of, protection_of
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.noisy_sum import NoisySum, Placement
from hushrank.types import Array

_ROUNDING = 1.001  # Why: float32 and the grid of the noise may lengthen an honest update by far less
_UNLIKELY = 50.0  # Why: an honest client's noise exceeds its bound with probability below e^-50


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What every body of a federation must keep to."""

    n_bytes: tuple[int, ...]  # lengths that are right
    n_params: int
    norm_order: int  # 1 or 2
    most_norm: float
    most_weight: int  # 1: every client counts alike
    rewards: tuple[float, float] | None  # lowest and highest, of an evolution strategy

    @property
    def most_bytes(self) -> int:
        return max(self.n_bytes)


def limits_of(agreement: Agreement, *, max_norm: float) -> BodyLimits:
    """max_norm: of an update that no clipping bounds (privacy none or paper)."""
    n_params, evolution, protection = count_params(agreement), evolution_of(agreement), protection_of(agreement)
    if evolution is not None:
        ends = evolution.finite.values[0], evolution.finite.values[-1]
        return BodyLimits((12 if evolution.antithetic else 8,), n_params, 2, math.inf, 1, ends)
    weight = 1 if agreement.counts_alike else agreement.interactions
    if not isinstance(protection, NoisySum):
        return BodyLimits((4 * n_params,), n_params, 2, max_norm, weight, None)
    norm = _ROUNDING * (protection.clip_norm + most_noise(protection, n_params))
    return BodyLimits((4 * n_params,), n_params, protection.norm_order, norm, weight, None)


def most_noise(protection: NoisySum, n_params: int) -> float:
    """The norm that an honest client's share of the noise practically never exceeds.

    Gaussian: |z| <= sqrt(n) + sqrt(2 t) except with probability e^-t. Laplace: the L1 norm of n differences of
    Gamma(1/h) numbers is at most a Gamma(2 n / h) number, and that is at most k + sqrt(2 k t) + t, k = 2 n / h.
    """
    if protection.placement == Placement.server or protection.n_honest is None:
        return 0.0
    if isinstance(protection, SoundGaussian):
        return protection.scale / math.sqrt(protection.n_honest) * (math.sqrt(n_params) + math.sqrt(2 * _UNLIKELY))
    k = 2 * n_params / protection.n_honest
    return protection.scale * (k + math.sqrt(2 * k * _UNLIKELY) + _UNLIKELY)


def check_weight(limits: BodyLimits, header: str | None) -> int:
    """The weight of an update from its header; without one, 1 where every client counts alike."""
    text = header if header is not None else "1" if limits.most_weight == 1 else ""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= limits.most_weight):
        raise RefusedError(
            Reason.weight,
            f"the weight must be a whole number from 1 to {limits.most_weight}: the searches it was learnt from.",
        )
    return int(text)


def check_body(limits: BodyLimits, body: bytes) -> None:
    """Refuse a body that cannot be an honest client's, without saying what is in it."""
    if limits.rewards is not None:
        if len(body) not in limits.n_bytes:
            raise RefusedError(Reason.shape, f"the body has {len(body)} bytes, must have {limits.n_bytes[0]}.")
        decode_reward(body, low=limits.rewards[0], high=limits.rewards[1])
        return
    delta = decode_update(body, n_params=limits.n_params).astype(np.float64)
    if _norm(delta, limits.norm_order) > limits.most_norm:
        raise RefusedError(
            Reason.norm, f"the update's L{limits.norm_order} norm is above {limits.most_norm:.6g}, the most allowed."
        )


def _norm(delta: Array, order: int) -> float:
    """Why not linalg.norm: for short vectors this is quicker, and it does not hand over to another thread."""
    return float(np.abs(delta).sum()) if order == 1 else math.sqrt(float((delta * delta).sum()))


class RateLimit:
    """So many requests per second on average, and so many at once: a bucket of tokens for each who asks."""

    def __init__(self, *, per_second: float, burst: int, most_known: int = 100_000) -> None:
        self.per_second, self.burst, self.most_known = per_second, burst, most_known
        self._buckets: dict[object, tuple[float, float]] = {}  # {who: (tokens, when that was)}

    def check(self, who: object, now: float) -> None:
        """Take a token, or refuse and say when one will be there."""
        tokens, then = self._buckets.get(who, (float(self.burst), now))
        tokens = min(tokens + (now - then) * self.per_second, float(self.burst))
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
