"""What a client sends: its numbers and nothing else, little-endian.

    dense update (fpdgd)    float32 [n_params]
    evolution strategy      bytes 0-3   seed, uint32
                            bytes 4-7   mean privatised reward of the lists ranked by params + noise, float32
                            bytes 8-11  the same by params - noise, float32; only when antithetic

A server reads a body with `decode_update` or `decode_reward`, which refuse what cannot be right and say why; a refused
message is dropped, the round goes on.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.types import Array, PrivateReward, PrivateUpdate

_LAYOUTS = {1: struct.Struct("<If"), 2: struct.Struct("<Iff")}  # {number of rewards: layout}
_FLOAT32 = struct.Struct("<f")
_BY_LENGTH = {layout.size: layout for layout in _LAYOUTS.values()}


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
    if not np.logical_and.reduce(np.isfinite(delta)):  # Why not all(): for short vectors this is quicker
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


def _to_float32(number: float) -> float:
    return float(_FLOAT32.unpack(_FLOAT32.pack(number))[0])
