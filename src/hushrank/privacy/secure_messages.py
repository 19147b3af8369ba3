"""What crosses the wire in a secure sum, and what all who take part agree on. The whole is told in `secure_sum.py`."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from hushrank.privacy.fixed_point import FixedPoint
from hushrank.privacy.identities import SIGNATURE_BYTES
from hushrank.privacy.masks import KEY_BYTES, agree, derive, expand_mask, is_sound_key
from hushrank.privacy.neighbours import Neighbours, plan_neighbours
from hushrank.types import Array

ADVERT, UPLOAD, SURVIVORS = "advert", "upload", "survivors"  # what a signature is for


class SumPhase(IntEnum):
    """What is answered next."""

    ADVERTISE = 1
    SHARE = 2
    MASK = 3
    SIGN = 4
    REVEAL = 5
    DONE = 6


@dataclass(frozen=True, slots=True)
class SumConfig:
    """What all who take part in one sum agree on beforehand."""

    session: bytes  # 16 to 64 bytes, never used before; see `name_session`
    n_clients: int  # that may take part at most
    n_entries: int  # values of each client
    bound: float  # the largest absolute value of an entry
    threshold: int  # clients that must answer in every phase; see `usual_threshold`
    least_honest: int | None = None  # see `honest_in_sum`; None: as many as the threshold gives
    neighbours_from: int = 1000  # clients on a roster, from which on secrets are shared with random neighbours only
    silent_share: float = 0.1  # with neighbours: of the roster, may fall silent without the sum being lost

    def __post_init__(self) -> None:
        if not 16 <= len(self.session) <= 64:
            raise ValueError(f"session has {len(self.session)} bytes, must have 16 to 64 that were never used before.")
        if not 1 <= self.n_entries <= 2**24:
            raise ValueError(f"n_entries is {self.n_entries}, must be from 1 to 2^24.")
        if not max(2, usual_threshold(self.n_clients)) <= self.threshold <= self.n_clients:
            raise ValueError(
                f"threshold is {self.threshold} of {self.n_clients} clients, must be at least 2, more than two thirds, "
                "at most all: with fewer, a server and a third of the clients could open an update."
            )
        if not (self.honest_in_sum >= 1 and self.least_roster <= self.n_clients):
            raise ValueError(
                f"least_honest is {self.honest_in_sum}, must be from 1 to {self.n_clients - self.n_colluding}: a third "
                f"of {self.n_clients} clients may collude with the server."
            )
        if not 0 <= self.silent_share < 1 / 3:
            raise ValueError(f"silent_share is {self.silent_share}, must be from 0 to below a third.")
        self.encoding  # noqa: B018 - refuses a bound that cannot be

    @property
    def encoding(self) -> FixedPoint:
        return FixedPoint(self.bound, self.n_clients)

    @property
    def n_colluding(self) -> int:
        """Clients that may be on the server's side, invented ones among them, without any promise being broken."""
        return self.n_clients // 3

    @property
    def honest_in_sum(self) -> int:
        """Clients in every sum that comes out, those that collude with the server not counted."""
        return self.threshold - self.n_colluding if self.least_honest is None else self.least_honest

    @property
    def least_roster(self) -> int:
        """Clients on a roster, and again among the survivors: with fewer, a client refuses to go on."""
        return max(self.threshold, self.honest_in_sum + self.n_colluding)

    def sharing(self, n_clients: int) -> Neighbours:
        """With how many others on a roster of n_clients each shares its secrets."""
        planned = None
        if n_clients >= self.neighbours_from:
            planned = plan_neighbours(
                n_clients,
                n_colluding=self.n_colluding,
                n_silent=math.ceil(self.silent_share * n_clients),
                least_honest=self.honest_in_sum,
            )
        return planned or Neighbours(n_clients - 1, self.threshold)


def usual_threshold(n_clients: int) -> int:
    """The least that is allowed: more than two thirds, so that nearly a third may fall silent [bonawitz2017].

    Why: for two sets of survivors to be signed by `threshold` clients each, 2 threshold <= n_clients + n_colluding must
    hold, because an honest client signs one set only. With this threshold it takes more than a third of the clients.
    """
    return 2 * n_clients // 3 + 1


def name_session(agreement: bytes, round: int, ranker: bytes) -> bytes:
    """32 bytes for one sum: SHA-256 of the agreement and of the ranker that clients train, and the round's number."""
    if len(agreement) != 32 or len(ranker) != 32:
        raise ValueError("agreement and ranker are named by their SHA-256, 32 bytes each.")
    return hashlib.sha256(b"hushrank session|" + agreement + struct.pack("<Q", round) + ranker).digest()


# Messages, in the order in which they are sent. Ids are whole numbers below 2^64.


@dataclass(frozen=True, slots=True)
class Advert:
    """Client to server: what the others need in order to agree on keys with this client."""

    client_id: int
    sealing_key: bytes  # 32, public: for sealed shares
    mask_key: bytes  # 32, public: for pair masks
    commitment: bytes  # 32, to the seed of the own mask
    signature: bytes  # 64, of the client's identity


@dataclass(frozen=True, slots=True)
class Roster:
    """Server to all: who takes part, by ascending id."""

    adverts: tuple[Advert, ...]


@dataclass(frozen=True, slots=True)
class SealedShares:
    """Client to server: for each neighbour, shares that only that one can open. Without a graph all are neighbours."""

    client_id: int
    sealed: tuple[tuple[int, bytes], ...]  # (reader, 82 bytes)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Server to one client: who shared its secrets, and what was sealed for this client."""

    sharers: tuple[int, ...]  # all of them, by ascending id
    sealed: tuple[tuple[int, bytes], ...]  # (writer, 82 bytes)


@dataclass(frozen=True, slots=True)
class MaskedValues:
    """Client to server: values that look uniform."""

    client_id: int
    words: Array  # [n_entries] uint32
    signature: bytes  # 64, about session, roster and sharers


@dataclass(frozen=True, slots=True)
class Survivors:
    """Server to one of those named: whose masked values arrived."""

    client_ids: tuple[int, ...]  # by ascending id
    uploads: tuple[tuple[int, bytes], ...]  # (survivor that shared with the reader, the signature of its upload)


@dataclass(frozen=True, slots=True)
class SignedSurvivors:
    """Client to server: this session, roster and sharers, and these survivors are what the client was told."""

    client_id: int
    signature: bytes  # 64


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Server to all that signed: as many as the threshold signed the same."""

    signatures: tuple[tuple[int, bytes], ...]  # (survivor, 64 bytes)


@dataclass(frozen=True, slots=True)
class Revealed:
    """Client to server: of each survivor the share of its own mask, of each silent client the share of its key."""

    client_id: int
    mask_shares: tuple[tuple[int, bytes], ...]  # (survivor, 33 bytes)
    key_shares: tuple[tuple[int, bytes], ...]  # (silent client, 33 bytes)


def count_sent_bytes(n_clients: int, n_entries: int) -> int:
    """What one client sends in a sum of n_clients that all share with each other: fields alone, 8 bytes for an id."""
    advert = 8 + 3 * 32 + 64
    shares = 8 + (n_clients - 1) * (8 + 82)
    masked = 8 + 4 * n_entries + 64
    signed = 8 + 64
    revealed = 8 + n_clients * (8 + 33)
    return advert + shares + masked + signed + revealed


# What both sides compute.


def pair_masks(secret: bytes, own: Advert, others: Sequence[Advert], view: bytes, n_entries: int) -> Iterator[Array]:
    """[n_entries] uint32 for each other client: the mask that both compute, PRG(s_uv). secret, own: of one client."""
    agreed = agree(secret, (other.mask_key for other in others))
    for other, shared in zip(others, agreed, strict=True):
        yield expand_mask(derive(shared, "pair mask", name_pair(own, other, view)), n_entries)


def name_pair(one: Advert, other: Advert, view: bytes) -> bytes:
    """A view and two of its clients, in either order.

    Why: X25519 agrees on the same bytes with a key and with altered copies of it. If a mask did not say whose it is,
    somebody with a copy of w's key would have w's mask with u. Where u adds one and subtracts the other, both vanish.
    """
    first, second = sorted((one, other), key=lambda advert: advert.client_id)
    return view + _pack_ids((first.client_id, second.client_id)) + first.mask_key + second.mask_key


def own_mask(seed: bytes, view: bytes, n_entries: int) -> Array:
    """[n_entries] uint32, PRG(b_u)."""
    return expand_mask(derive(seed, "own mask", view), n_entries)


def apply_mask(words: Array, mask: Array, *, is_added: bool) -> Array:
    """Modulo 2^32, as unsigned arrays are."""
    return words + mask if is_added else words - mask


def is_well_formed(advert: Advert) -> bool:
    """Whether every field has its length, so that fields can be written one after the other."""
    keys = (advert.sealing_key, advert.mask_key, advert.commitment)
    return all(len(key) == KEY_BYTES for key in keys) and len(advert.signature) == SIGNATURE_BYTES


def check_advert(advert: Advert) -> None:
    """Refuse an advert that cannot be used, whoever signed it."""
    if not is_well_formed(advert):
        raise ValueError(f"a key, commitment or signature has not {KEY_BYTES} or {SIGNATURE_BYTES} bytes.")
    if not (is_sound_key(advert.sealing_key) and is_sound_key(advert.mask_key)):
        raise ValueError(f"a public key of client {advert.client_id} is malformed: no key can be agreed with it.")


def is_repeated(adverts: Iterable[Advert]) -> bool:
    """Whether two keys are the same."""
    keys = [key for advert in adverts for key in (advert.sealing_key, advert.mask_key)]
    return len(set(keys)) != len(keys)


def describe_advert(config: SumConfig, advert: Advert) -> bytes:
    """What the advert's signature is about: its fields, in this agreement's session."""
    return _digest_config(config) + _pack_advert(advert)


def digest_of(config: SumConfig, roster: Roster) -> bytes:
    """32 bytes that name this sum: whoever has another roster or another agreement has other masks and keys."""
    lines = [_pack_advert(a) + a.signature for a in roster.adverts]
    return hashlib.sha256(b"roster|" + _digest_config(config) + b"".join(lines)).digest()


def view_of(digest: bytes, sharers: Iterable[int]) -> bytes:
    """32 bytes that name a roster and who shared: whoever was told of other sharers has other masks."""
    return hashlib.sha256(b"sharers|" + digest + _pack_ids(sharers)).digest()


def describe_survivors(view: bytes, client_ids: Iterable[int]) -> bytes:
    """What a survivor signs: session, roster, sharers and survivors, each of which a change would show in."""
    return hashlib.sha256(b"survivors|" + view + _pack_ids(client_ids)).digest()


def expect_phase(phase: SumPhase, wanted: SumPhase) -> None:
    if phase != wanted:
        raise ValueError(f"the sum is in phase {phase.name.lower()}, a message of phase {wanted.name.lower()} came.")


def _digest_config(config: SumConfig) -> bytes:
    counts = (config.n_clients, config.n_entries, config.threshold, config.honest_in_sum, config.neighbours_from)
    numbers = struct.pack("<5Q2d", *counts, config.bound, config.silent_share)
    return hashlib.sha256(b"agreement|" + numbers + config.session).digest()


def _pack_advert(advert: Advert) -> bytes:
    return struct.pack("<Q", advert.client_id) + advert.sealing_key + advert.mask_key + advert.commitment


def _pack_ids(client_ids: Iterable[int]) -> bytes:
    return b"".join(struct.pack("<Q", i) for i in client_ids)
