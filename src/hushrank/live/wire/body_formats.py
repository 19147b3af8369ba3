"""What a message looks like as bytes, for every exchange: written by a client, read and refused by a server."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import Exchange, UpdateExchange
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.bodies import (
    ReceivedReward,
    ReceivedUpdate,
    decode_reward,
    decode_update,
    encode_reward,
    encode_update,
)
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import count_params, exchange_of
from hushrank.privacy.protection import NormBound
from hushrank.types import Array, PrivateReward, PrivateUpdate


@dataclass(frozen=True, slots=True)
class BodyFormat(ABC):
    """How the bodies of one federation are written, and what each of them must keep to."""

    n_bytes: int  # of every body
    most_weight: int  # 1: every client counts alike

    @abstractmethod
    def encode(self, message: Any) -> bytes:
        """The body of what `hushrank.privacy` made, and of nothing else."""

    @abstractmethod
    def decode(self, body: bytes, *, weight: float) -> Any:
        """The message in a body of a form that can be right."""

    def check(self, body: bytes) -> None:
        """Refuse a body that cannot be an honest client's, without saying what is in it."""
        self.decode(body, weight=1.0)


@dataclass(frozen=True, slots=True)
class UpdateBody(BodyFormat):
    """The numbers of a dense update."""

    n_params: int
    bound: NormBound  # of an honest client's update

    def encode(self, message: PrivateUpdate) -> bytes:
        return encode_update(message)

    def decode(self, body: bytes, *, weight: float) -> ReceivedUpdate:
        """Why no more than the most: an answer that an earlier version took may have more."""
        return ReceivedUpdate(decode_update(body, n_params=self.n_params), min(weight, self.most_weight))

    def check(self, body: bytes) -> None:
        delta = decode_update(body, n_params=self.n_params).astype(np.float64)
        if _norm(delta, self.bound.order) > self.bound.most:
            raise RefusedError(
                Reason.norm, f"the update's L{self.bound.order} norm is above {self.bound.most:.6g}, the most allowed."
            )


@dataclass(frozen=True, slots=True)
class RewardBody(BodyFormat):
    """A seed and the rewards of an evolution strategy."""

    low: float  # of a reward
    high: float

    def encode(self, message: PrivateReward) -> bytes:
        return encode_reward(message)

    def decode(self, body: bytes, *, weight: float) -> ReceivedReward:
        del weight
        if len(body) != self.n_bytes:
            raise RefusedError(Reason.shape, f"the body has {len(body)} bytes, must have {self.n_bytes}.")
        return decode_reward(body, low=self.low, high=self.high)


def update_body(exchange: UpdateExchange, agreement: Agreement, *, max_norm: float) -> UpdateBody:
    """max_norm: of an update that the mechanism does not bound."""
    protection, n_params = exchange.protection, count_params(agreement)
    bound = protection.bound_norm(n_params)
    bound = bound if math.isfinite(bound.most) else bound._replace(most=max_norm)
    weight = 1 if protection.counts_alike else agreement.interactions
    return UpdateBody(exchange.count_bytes(n_params), weight, n_params, bound)


def reward_body(exchange: Evolution, agreement: Agreement, *, max_norm: float) -> RewardBody:
    del max_norm
    values = exchange.finite.values
    return RewardBody(exchange.count_bytes(count_params(agreement)), 1, values[0], values[-1])


BODIES: dict[str, Callable[..., BodyFormat]] = {
    UpdateExchange.name: update_body,
    Evolution.name: reward_body,
}  # {name of the exchange: the form of its bodies}


def body_of(agreement: Agreement, *, exchange: Exchange | None = None, max_norm: float = math.inf) -> BodyFormat:
    """How this federation's messages are written. max_norm: what a server takes where nothing bounds an update."""
    exchange = exchange or exchange_of(agreement)
    return BODIES[exchange.name](exchange, agreement, max_norm=max_norm)


def _norm(delta: Array, order: int) -> float:
    """Why not linalg.norm, nor sum: for short vectors this is quicker, and it does not hand over to another thread."""
    return float(np.add.reduce(np.abs(delta))) if order == 1 else math.sqrt(np.add.reduce(delta * delta))
