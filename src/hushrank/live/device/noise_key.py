"""The key of a home's seeds and noise: a copy of the home that answers with the same data says the same, not more.

A home that was copied, or restored from a backup, may answer a round a second time. With fresh noise that would be a
second look at the same data. So seeds and noise come from a secret of the home, by federation, round and the very
content that is protected: the same content in the same round gives the same bytes, which say nothing new; any other
content, and any other round, is as good as independent noise, and is charged like any answer.

What this promises holds against whoever cannot break SHAKE256; noise that the server adds comes from its operating
system (`streams.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import cast

import numpy as np

from hushrank.live.wire.agreement import Agreement
from hushrank.streams import KeyedEntropy
from hushrank.types import Array, DenseUpdate, SeedReward


def find_home_key(secret: bytes, agreement: Agreement, credential: str) -> Array:
    """[2] of all that this home draws in one federation."""
    return KeyedEntropy(secret=secret).bind(f"{agreement.digest} {credential}".encode())


def bind_content(key: Array, raw: DenseUpdate | SeedReward) -> Array:
    """The key of one answer's noise; keys of a simulator, and entropy itself, stay as they are."""
    if not isinstance(key, KeyedEntropy):
        return key
    digest = hashlib.sha256(type(raw).__name__.encode())
    for field in fields(raw):
        value = np.asarray(getattr(raw, field.name))
        digest.update(f"{field.name} {value.dtype.str} {value.shape} ".encode() + np.ascontiguousarray(value).tobytes())
    return cast("KeyedEntropy", key).bind(digest.digest())
