"""The only source of randomness: counter-based streams that name their purpose.

A key is two 32-bit words. `stream(key, SHOW, round, client_id, interaction)` derives the key of one purpose, round,
client and interaction; draw i of a stream depends on that key and on i alone. So adding a draw, removing a client,
padding a list or resuming a run does not change any other draw. The block function is Threefry-2x32 with 20 rounds
[salmon2011].

`threefry` and `to_uniform` use only operators that NumPy and JAX arrays share; the rest of this file is NumPy, for
devices, and `streams_fast.py` is its twin for the simulator. Both give the same bits (tests/test_streams.py pins them).
Where nothing may be repeatable, `ENTROPY` stands in the place of a key: the live system's noise, seeds and masks.
Shapes: a key is [2] or, batched, [..., 2], always uint32.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

import numpy as np

from hushrank.types import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


class Purpose(IntEnum):
    """What a draw is for. A number is never reused or changed: old runs must replay."""

    INITIAL = 1  # a ranker's first parameters
    QUERY = 2  # which query a client issues
    SHOW = 3  # the list that a stochastic ranker shows
    CLICK = 4  # whether a person clicks on an examined document
    STOP = 5  # whether a person stops after a click
    COHORT = 6  # which clients take part in a round
    DROPOUT = 7  # which of them never answer
    SYNTHETIC = 8  # generated data sets
    SHUFFLE = 9  # an order of things, for instance of the queries of a generated set
    BOOTSTRAP = 10  # resampling in statistics
    ATTACK = 11  # what malicious clients make up
    SEED = 12  # the word from which a client of an evolution strategy makes its perturbation
    PERTURB = 13  # that perturbation, under the word as key: part of the wire version
    PRIVATISE = 14  # randomised responses and noise on what a client sends
    SERVER_NOISE = 15  # noise that the server adds to a sum
    MASK = 16  # the secrets of a client in a simulated secure sum
    PARTITION = 17  # how documents, labels and queries are divided among clients that differ
    REGROUP = 18  # whose behaviour a client takes in a round, where that is drawn anew
    SHARE = 19  # which queries everybody gets, or what is made up in their place
    WARM_UP = 20  # all that a training draws which comes before the first round
    FORGET = 21  # the noise of a training that repeats rounds of another without some clients
    COLLECTION = 22  # words, topics and quality of the documents of a generated population
    PERSON = 23  # one user of a generated population: interests, searches, clicks
    UNITS = 26  # which units of a network a step of training leaves out
    VISIT = 30  # what a client of personalised search draws while it trains
    STRAGGLER = 31  # which clients always miss the deadline
    ATTEMPT = 32  # who answers when a step is repeated
    MEASURED = 33  # on whose searches models of personalised search are measured
    PROXY = 40  # which proxies a step asks, and whom each of them picks
    VANISH = 41  # which proxies vanish before they have forwarded a step's sum
    COVER = 50  # the words of cover queries
    COVER_ORDER = 51  # in which order a query and its covers are sent, and with which pauses
    SHARED_ID = 52  # which users share one id at a search engine


@dataclass(frozen=True, slots=True)
class Entropy:
    """A key that is none: whatever is folded in, every draw is new and comes from the operating system.

    Why not a random key: 64 bits can be tried out, and noise that can be drawn again hides nothing. Why no array:
    what forgets to ask for it fails, instead of drawing from a key that everybody knows.
    """

    shape: tuple[int, ...] = (2,)  # as of a key

    def fold_in(self, names: Array) -> Array:
        return cast("Array", Entropy((*np.broadcast_shapes(self.shape[:-1], np.shape(names)), 2)))

    def draw(self, shape: tuple[int, ...]) -> Array:
        """uint32"""
        return np.frombuffer(self.reader()(4 * math.prod(shape)), dtype="<u4").astype(np.uint32).reshape(shape)

    def reader(self) -> Callable[[int], bytes]:
        """Gives so many random bytes, others at each call."""
        return os.urandom


@dataclass(frozen=True, slots=True)
class KeyedEntropy(Entropy):
    """Entropy that its owner can draw again: SHAKE256 under a secret of 256 random bits, names folded in by HMAC.

    To whoever lacks the secret its bytes are like the operating system's, as long as SHA-2 and SHA-3 stand: what is
    hidden behind them is hidden from anybody who can compute only so much. Two keys that differ in a name are as good
    as independent. Why not threefry: it is no cipher, and its keys have 64 bits.
    """

    secret: bytes = b""

    def fold_in(self, names: Array) -> Array:
        whole = np.asarray(names, dtype=np.uint64)
        shape = np.broadcast_shapes(self.shape[:-1], whole.shape)
        said = repr(whole.shape).encode() + whole.astype("<u8").tobytes()
        return cast("Array", KeyedEntropy((*shape, 2), self._derive(b"names", said)))

    def bind(self, content: bytes) -> Array:
        """The key of one content: for another one, every draw is another."""
        return cast("Array", KeyedEntropy(self.shape, self._derive(b"content", content)))

    def reader(self) -> Callable[[int], bytes]:
        blocks = itertools.count()
        return lambda n: hashlib.shake_256(self.secret + next(blocks).to_bytes(8, "little")).digest(n)

    def _derive(self, purpose: bytes, said: bytes) -> bytes:
        return hmac.digest(self.secret, purpose + b"\0" + said, "sha256")


ENTROPY = cast("Array", Entropy())  # Why: whatever takes a key takes it


def threefry(key: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """Two 32-bit words for each 64-bit counter (high, low) under each key [..., 2], or pair of words; shapes
    broadcast.

    Why: in NumPy the counters are arrays, never scalars, because scalar overflow warns.
    """
    k0, k1 = key if isinstance(key, tuple) else (key[..., 0], key[..., 1])
    schedule = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = high + k0, low + k1
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation)))
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def seed_key(seed: int) -> Array:
    """[2] the key of a whole run."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed is {seed}, must be a whole number from 0 to 2^64 - 1.")
    return np.array([seed >> 32, seed & 0xFFFFFFFF], dtype=np.uint32)


def stream(key: Array, *names: int) -> Array:
    """[2] the key of one purpose, round, client, ...: each name is folded in, in order."""
    for name in names:
        key = fold_in(key, np.asarray(name))
    return key


def fold_in(key: Array, names: Array) -> Array:
    """[..., 2] one new key for each whole number in `names`; keys and names broadcast."""
    if isinstance(key, Entropy):
        return key.fold_in(names)
    flat = np.atleast_1d(np.asarray(names, dtype=np.uint64))
    words = threefry(key, (flat >> np.uint64(32)).astype(np.uint32), flat.astype(np.uint32))
    return np.stack(words, axis=-1).reshape(*np.broadcast_shapes(key.shape[:-1], np.shape(names)), 2)


def draw_bits(key: Array, n: int) -> Array:
    """[..., n] uint32: draw i is word i % 2 of block i // 2, so it does not depend on n."""
    if isinstance(key, Entropy):
        return key.draw((*key.shape[:-1], n))
    counters = np.arange((n + 1) // 2, dtype=np.uint32)
    pair = threefry(key[..., None, :], np.zeros_like(counters), counters)
    return np.stack(pair, axis=-1).reshape(*key.shape[:-1], 2 * len(counters))[..., :n]


def draw_blocks(key: Array, owners: Array, blocks: Array) -> Array:
    """[n, m, 2] uint32, both words of `blocks` [n, m], row i of the key that stands at owners[i] among all keys."""
    if isinstance(key, Entropy):
        return key.draw((*blocks.shape, 2))
    return np.stack(threefry(key.reshape(-1, 2)[owners][:, None, :], np.zeros_like(blocks), blocks), axis=-1)


def to_uniform(bits: Any) -> Any:
    """Uniform numbers strictly between 0 and 1, exact in float32: (b + 1/2) / 2^23 for the upper 23 bits b."""
    return ((bits >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)


def draw_uniform(key: Array, n: int) -> Array:
    """[..., n] float32, strictly between 0 and 1."""
    return to_uniform(draw_bits(key, n))


def draw_below(key: Array, bound: int, n: int) -> Array:
    """[..., n] whole numbers from 0 to bound - 1 (each within bound / 2^32 of equally likely)."""
    return (draw_bits(key, n) % np.uint32(bound)).astype(np.int64)


def draw_normal(key: Array, n: int) -> Array:
    """[..., n] float64 standard normal numbers, by Box and Muller's transform."""
    pairs = draw_uniform(key, 2 * n).astype(np.float64).reshape(*key.shape[:-1], n, 2)
    return np.sqrt(-2.0 * np.log(pairs[..., 0])) * np.cos(2.0 * np.pi * pairs[..., 1])
