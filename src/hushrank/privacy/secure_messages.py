"""What crosses the wire in a secure sum, and what all who take part agree on. The whole is told in `secure_sum.py`."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from hushrank.privacy.fixed_point import FixedPoint
from hushrank.privacy.masks import agree, derive, expand_mask
from hushrank.types import Array


class SumPhase(IntEnum):
    """What is answered next."""

    ADVERTISE = 1
    SHARE = 2
    MASK = 3
    REVEAL = 4
    DONE = 5


@dataclass(frozen=True, slots=True)
class SumConfig:
    """What all who take part in one sum agree on beforehand."""

    session: bytes  # 16 to 64 bytes, never used before: federation and round, for instance
    n_clients: int  # that may take part at most
    n_entries: int  # values of each client
    bound: float  # the largest absolute value of an entry
    threshold: int  # clients that must answer in every phase; see `usual_threshold`

    def __post_init__(self) -> None:
        if not 16 <= len(self.session) <= 64:
            raise ValueError(f"session has {len(self.session)} bytes, must have 16 to 64 that were never used before.")
        if not 1 <= self.n_entries <= 2**24:
            raise ValueError(f"n_entries is {self.n_entries}, must be from 1 to 2^24.")
        if not max(2, self.n_clients // 2 + 1) <= self.threshold <= self.n_clients:
            raise ValueError(
                f"threshold is {self.threshold} of {self.n_clients} clients, must be at least 2, more than half, at "
                "most all: with half, a server could ask one half for the masks and the other for the keys."
            )
        self.encoding  # noqa: B018 - refuses a bound that cannot be

    @property
    def encoding(self) -> FixedPoint:
        return FixedPoint(self.bound, self.n_clients)


def usual_threshold(n_clients: int) -> int:
    """More than two thirds: nearly a third of the clients may fall silent [bonawitz2017].

    Why: a server that lies about who survived needs `threshold` shares of each of a client's two secrets. An honest
    client gives one kind only, a colluding one both, so it takes 2 threshold <= n_clients + n_colluding: with this
    threshold, more than a third of the clients.
    """
    return 2 * n_clients // 3 + 1


# Messages, in the order in which they are sent. Ids are whole numbers below 2^64.


@dataclass(frozen=True, slots=True)
class Advert:
    """Client to server: what the others need in order to agree on keys with this client."""

    client_id: int
    sealing_key: bytes  # 32, public: for sealed shares
    mask_key: bytes  # 32, public: for pair masks
    commitment: bytes  # 32, to the seed of the own mask


@dataclass(frozen=True, slots=True)
class Roster:
    """Server to all: who takes part, by ascending id."""

    adverts: tuple[Advert, ...]


@dataclass(frozen=True, slots=True)
class SealedShares:
    """Client to server: for each other client of the roster, shares that only that one can open."""

    client_id: int
    sealed: tuple[tuple[int, bytes], ...]  # (reader, 82 bytes)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Server to one client: what each other client that shared its secrets has sealed for it."""

    sealed: tuple[tuple[int, bytes], ...]  # (writer, 82 bytes)


@dataclass(frozen=True, slots=True)
class MaskedValues:
    """Client to server: values that look uniform."""

    client_id: int
    words: Array  # [n_entries] uint32


@dataclass(frozen=True, slots=True)
class Survivors:
    """Server to those named: whose masked values arrived."""

    client_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Revealed:
    """Client to server: of each survivor the share of its own mask, of each silent client the share of its key."""

    client_id: int
    mask_shares: tuple[tuple[int, bytes], ...]  # (survivor, 33 bytes)
    key_shares: tuple[tuple[int, bytes], ...]  # (silent client, 33 bytes)


def count_sent_bytes(n_clients: int, n_entries: int) -> int:
    """What one client sends in a sum of n_clients: fields alone, 8 bytes for an id; growing with both numbers."""
    advert = 8 + 3 * 32
    shares = 8 + (n_clients - 1) * (8 + 82)
    masked = 8 + 4 * n_entries
    revealed = 8 + n_clients * (8 + 33)
    return advert + shares + masked + revealed


# What both sides compute.


def pair_masks(secret: bytes, others: Sequence[Advert], digest: bytes, n_entries: int) -> Iterator[Array]:
    """[n_entries] uint32 for each other client: the mask that both compute, PRG(s_uv)."""
    for shared in agree(secret, (other.mask_key for other in others)):
        yield expand_mask(derive(shared, "pair mask", digest), n_entries)


def apply_mask(words: Array, mask: Array, *, is_added: bool) -> Array:
    """Modulo 2^32, as unsigned arrays are."""
    return words + mask if is_added else words - mask


def digest_of(config: SumConfig, roster: Roster) -> bytes:
    """32 bytes that name this sum: whoever has another roster or another agreement has other masks and keys."""
    numbers = struct.pack("<QQQd", config.n_clients, config.n_entries, config.threshold, config.bound)
    lines = [struct.pack("<Q", a.client_id) + a.sealing_key + a.mask_key + a.commitment for a in roster.adverts]
    return hashlib.sha256(b"|".join([config.session, numbers, *lines])).digest()


def expect_phase(phase: SumPhase, wanted: SumPhase) -> None:
    if phase != wanted:
        raise ValueError(f"the sum is in phase {phase.name.lower()}, a message of phase {wanted.name.lower()} came.")
