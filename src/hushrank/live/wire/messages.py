"""What crosses the wire, version 1. Every path and header is here; both ends import them.

A client's update is its numbers and nothing else, little-endian, as the body of a PUT:

    dense update (fpdgd)    float32 [n_params]
    evolution strategy      bytes 0-3   seed, uint32
                            bytes 4-7   mean privatised reward of the lists ranked by params + noise, float32
                            bytes 8-11  the same by params - noise, float32; only when antithetic

Round, version, agreement, weight and credential travel beside it, in path and headers. A server reads a body with
`decode_update` or `decode_reward`, which refuse what cannot be right and say why; a refused message is dropped, the
round goes on. Everything else that is said is a small JSON object, read by the classes below.
"""

from __future__ import annotations

import math
import re
import secrets
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from hushrank.types import Array, PrivateReward, PrivateUpdate

WIRE_VERSION = 1  # Why: also names how a perturbation is made of a seed; another recipe for it is another version
_LAYOUTS = {1: struct.Struct("<If"), 2: struct.Struct("<Iff")}  # {number of rewards: layout}
_FLOAT32 = struct.Struct("<f")
_BY_LENGTH = {layout.size: layout for layout in _LAYOUTS.values()}

FEDERATION, ENROL, ME, LEAVE = "/v1/federation", "/v1/enrol", "/v1/me", "/v1/leave"
ROUND, RANKER, UPDATE = "/v1/round", "/v1/ranker", "/v1/rounds/{round}/update"
HEALTH, METRICS, OPENAPI = "/v1/health", "/v1/metrics", "/v1/openapi.json"
WIRE_HEADER, AGREEMENT_HEADER, WEIGHT_HEADER = "Hushrank-Wire", "Hushrank-Agreement", "Hushrank-Weight"
BODY_TYPE = "application/octet-stream"  # of an update and of a ranker
MOST_WAIT_S = 60  # that a long poll may ask for
_CREDENTIAL = re.compile(r"[A-Za-z0-9_-]{43}")


class Reason(StrEnum):
    """Why a server refuses. A client decides by these, never by the text beside them."""

    bad_request = "request"  # 400: not the JSON, path or query that is described
    credential = "credential"  # 401: none, or nobody's
    token = "token"  # 403: unknown, used or expired; which of them is not said
    not_asked = "not-asked"  # 403: this client was not sampled for this round, or has left
    round = "round"  # 404: never opened
    not_found = "path"  # 404, 405: no such path or method
    answered = "answered"  # 409: another body of this client already counts in this round
    agreement = "agreement"  # 409: the client joined under another agreement
    late = "late"  # 410: the round is over
    size = "size"  # 411, 413: no length, or too long
    media = "media"  # 415: a body of another type
    slow = "slow"  # 408: the body did not arrive in time
    shape = "shape"  # 422: not n_params numbers, or not 8 or 12 bytes
    not_finite = "not-finite"  # 422
    norm = "norm"  # 422: longer than an honest update can be
    weight = "weight"  # 422: not a weight that this federation counts with
    reward = "reward"  # 422: outside its range
    version = "version"  # 426: another version of the wire
    rate = "rate"  # 429: too many requests; Retry-After says when
    stopping = "stopping"  # 503: the server is going down; nothing was counted
    disk = "disk"  # 503: the disk is full or failing; nothing was counted


STATUS: dict[Reason, int] = {
    Reason.bad_request: 400,
    Reason.credential: 401,
    Reason.token: 403,
    Reason.not_asked: 403,
    Reason.round: 404,
    Reason.not_found: 404,
    Reason.slow: 408,
    Reason.answered: 409,
    Reason.agreement: 409,
    Reason.late: 410,
    Reason.size: 413,
    Reason.media: 415,
    Reason.shape: 422,
    Reason.not_finite: 422,
    Reason.norm: 422,
    Reason.weight: 422,
    Reason.reward: 422,
    Reason.version: 426,
    Reason.rate: 429,
    Reason.stopping: 503,
    Reason.disk: 503,
}


class RefusedError(ValueError):
    """What a server refuses, with the reason that it counts and tells."""

    def __init__(self, reason: Reason, detail: str, *, status: int | None = None, retry_after_s: int | None = None):
        super().__init__(detail)
        self.reason = reason
        self.status = STATUS[reason] if status is None else status
        self.retry_after_s = retry_after_s


class Outcome(StrEnum):
    """What became of a round."""

    open = "open"
    closed = "closed"  # its updates are in the ranker
    abandoned = "abandoned"  # its updates were thrown away


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last round that a client's update was accepted in, and what became of it."""

    round: int
    outcome: Outcome

    def as_json(self) -> dict[str, Any]:
        return {"round": self.round, "outcome": str(self.outcome)}


@dataclass(frozen=True, slots=True)
class Standing:
    """What the server knows of a client: the answer of /v1/me."""

    accepted_updates: int
    last: LastAnswer | None

    def as_json(self) -> dict[str, Any]:
        return {"accepted_updates": self.accepted_updates, "last": self.last and self.last.as_json()}


@dataclass(frozen=True, slots=True)
class RoundNews:
    """The answer of a long poll. round None: the federation is finished."""

    round: int | None
    closes_in_s: float | None  # None: the round waits for everybody who was asked
    is_asked: bool  # whether this client's update is wanted
    last: LastAnswer | None

    def as_json(self) -> dict[str, Any]:
        last = self.last and self.last.as_json()
        if self.round is None:
            return {"finished": True, "last": last}
        return {"round": self.round, "closes_in_s": self.closes_in_s, "is_asked": self.is_asked, "last": last}


def parse_standing(values: object) -> Standing:
    """From JSON that anybody may have written."""
    known = _as_mapping(values)
    return Standing(_whole(known, "accepted_updates", 0), _parse_last(known))


def parse_news(values: object) -> RoundNews:
    """From JSON that anybody may have written."""
    known = _as_mapping(values)
    if known.get("finished") is True:
        return RoundNews(None, None, False, _parse_last(known))
    closes, is_asked = known.get("closes_in_s"), known.get("is_asked")
    is_number = isinstance(closes, int | float) and not isinstance(closes, bool) and math.isfinite(closes)
    if not (closes is None or is_number) or not isinstance(is_asked, bool):
        raise ValueError("the server's news of a round lack closes_in_s or is_asked.")
    return RoundNews(_whole(known, "round", 1), None if closes is None else float(closes), is_asked, _parse_last(known))


def _parse_last(known: Mapping[str, Any]) -> LastAnswer | None:
    if known.get("last") is None:
        return None
    last = _as_mapping(known["last"])
    if last.get("outcome") not in tuple(Outcome):
        raise ValueError("the server does not say what became of the last round: open, closed or abandoned.")
    return LastAnswer(_whole(last, "round", 1), Outcome(last["outcome"]))


def _as_mapping(values: object) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise ValueError("the server's answer is no JSON object: it may be another program, or another version.")
    return values


def _whole(known: Mapping[str, Any], key: str, least: int) -> int:
    value = known.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise ValueError(f"the server's answer lacks {key}, a whole number from {least} on.")
    return value


def make_secret() -> str:
    """43 url-safe characters of 256 bits from the operating system: a credential, or a token."""
    return secrets.token_urlsafe(32)


def is_secret(text: str) -> bool:
    """Whether this has the form of a credential or token."""
    return _CREDENTIAL.fullmatch(text) is not None


def encode_update(update: PrivateUpdate) -> bytes:
    """float32 [n_params]. Takes what `hushrank.privacy` made and nothing else."""
    if not isinstance(update, PrivateUpdate):
        raise TypeError(f"a {type(update).__name__} came, only a PrivateUpdate may leave a device.")
    body = np.asarray(update.delta).astype("<f4")
    if body.ndim != 1 or not np.isfinite(body).all():
        raise ValueError("an update must be one vector of finite float32 numbers.")
    return body.tobytes()


@dataclass(frozen=True, slots=True)
class ReceivedUpdate:
    """A dense update as a server reads it."""

    delta: Array  # [n_params] float32
    weight: float  # in the weighted mean


def decode_update(body: bytes, *, n_params: int) -> Array:
    """[n_params] float32, finite."""
    if len(body) != 4 * n_params:
        raise RefusedError(
            Reason.shape, f"the body has {len(body)} bytes, must have {4 * n_params}: {n_params} float32 numbers."
        )
    delta = np.frombuffer(body, "<f4")
    if not np.isfinite(delta).all():
        raise RefusedError(Reason.not_finite, "the update holds infinite or undefined numbers.")
    return delta


@dataclass(frozen=True, slots=True)
class ReceivedReward:
    """An evolution strategy's message as a server reads it."""

    seed: int  # 32-bit word
    rewards: tuple[float, ...]  # one or two


def encode_reward(reward: PrivateReward) -> bytes:
    """8 or 12 bytes. Takes what `hushrank.privacy` made and nothing else."""
    if not isinstance(reward, PrivateReward):
        raise TypeError(f"a {type(reward).__name__} came, only a PrivateReward may leave a device.")
    if len(reward.rewards) not in _LAYOUTS:
        raise ValueError(f"{len(reward.rewards)} rewards came, a message carries one or two.")
    if not 0 <= reward.seed < 2**32:
        raise ValueError("a seed must be a whole number from 0 to 2^32 - 1: it travels in four bytes.")
    return _LAYOUTS[len(reward.rewards)].pack(reward.seed, *reward.rewards)


def decode_reward(body: bytes, *, low: float = 0.0, high: float = 1.0) -> ReceivedReward:
    """The message in these bytes, its rewards from `low` to `high`: the ends of what privatised rewards can be.

    The ends are rounded to float32 first, as rewards are, so that a reward at an end is never refused.
    """
    if len(body) not in _BY_LENGTH:
        raise RefusedError(
            Reason.shape,
            f"the message has {len(body)} bytes, must have 8 (a seed and a reward) or 12 (a seed and two rewards).",
        )
    seed, *rewards = _BY_LENGTH[len(body)].unpack(body)
    if not all(map(math.isfinite, rewards)):
        raise RefusedError(Reason.not_finite, "a reward in the message is not a finite number.")
    if not all(_to_float32(low) <= reward <= _to_float32(high) for reward in rewards):
        raise RefusedError(Reason.reward, f"a reward in the message is outside the range from {low:g} to {high:g}.")
    return ReceivedReward(seed, tuple(rewards))


def decode_rewards(
    bodies: Iterable[bytes], *, low: float = 0.0, high: float = 1.0
) -> tuple[list[ReceivedReward], Counter[str]]:
    """A round's messages that can be right, and how many were refused for which reason: the round goes on."""
    received, refused = list[ReceivedReward](), Counter[str]()
    for body in bodies:
        try:
            received.append(decode_reward(body, low=low, high=high))
        except ValueError as reason:
            refused[str(reason)] += 1
    return received, refused


def _to_float32(number: float) -> float:
    return float(_FLOAT32.unpack(_FLOAT32.pack(number))[0])
