"""The client's side of a secure sum: four steps, each (state, input) -> (state, message). See `secure_sum.py`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hushrank.privacy.fixed_point import encode_values
from hushrank.privacy.masks import KEY_BYTES, agree, commit, derive, expand_mask, public_key, seal, unseal
from hushrank.privacy.secure_messages import (
    Advert,
    Delivery,
    MaskedValues,
    Revealed,
    Roster,
    SealedShares,
    SumConfig,
    SumPhase,
    Survivors,
    apply_mask,
    digest_of,
    expect_phase,
    pair_masks,
)
from hushrank.privacy.shamir import SHARE_BYTES, split_secret
from hushrank.types import Array

_IDS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class ClientState:
    """What a client remembers between phases. It holds secrets: keep it where the raw update is kept."""

    config: SumConfig
    client_id: int
    phase: SumPhase
    entropy: bytes = field(repr=False)  # 32, all its secrets are derived of it
    adverts: Mapping[int, Advert] = field(default_factory=dict)  # of all on the roster
    digest: bytes = b""  # 32, names this sum and its roster
    shares: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)
    # {client: (share of its own mask's seed, share of its mask key's secret)}: only its own until the others' arrive


def begin_client(config: SumConfig, client_id: int, *, entropy: bytes) -> tuple[ClientState, Advert]:
    """SumPhase 1. `entropy`: 32 bytes from the operating system, never used before."""
    if len(entropy) != KEY_BYTES:
        raise ValueError(f"{len(entropy)} bytes of entropy came, must be {KEY_BYTES} from the operating system.")
    if not 0 <= client_id < 2**64:
        raise ValueError("a client's id must be a whole number from 0 to 2^64 - 1.")
    state = ClientState(config, client_id, SumPhase.SHARE, entropy)
    return state, _advert_of(state)


def share_secrets(state: ClientState, roster: Roster) -> tuple[ClientState, SealedShares]:
    """SumPhase 2: split the two secrets among all on the roster."""
    expect_phase(state.phase, SumPhase.SHARE)
    _check_roster(state, roster)
    adverts, digest = {a.client_id: a for a in roster.adverts}, digest_of(state.config, roster)
    state = replace(state, phase=SumPhase.MASK, adverts=adverts, digest=digest)
    of_mask, of_key = (_split(state, name) for name in ("own mask", "mask key"))
    shares = dict(zip(adverts, zip(of_mask, of_key, strict=True), strict=True))
    others = [advert for advert in roster.adverts if advert.client_id != state.client_id]
    keys = _sealing_keys(state, others, is_writer=True)
    sealed = tuple(
        (other.client_id, seal(key, b"".join(shares[other.client_id]))) for other, key in zip(others, keys, strict=True)
    )
    own = {state.client_id: shares[state.client_id]}
    return replace(state, shares=own), SealedShares(state.client_id, sealed)


def mask_values(state: ClientState, delivery: Delivery, values: Array) -> tuple[ClientState, MaskedValues]:
    """SumPhase 3: open what the others sealed, and add every mask to the values [n_entries], noise included.

    y_u = x_u + PRG(b_u) + sum over v > u of PRG(s_uv) - sum over v < u of PRG(s_uv) mod 2^32 [bonawitz2017, Figure 4].
    """
    expect_phase(state.phase, SumPhase.MASK)
    n = state.config.n_entries
    if np.shape(values) != (n,):
        raise ValueError(f"values have shape {np.shape(values)}, all agreed on ({n},).")
    words = encode_values(values, state.config.encoding)
    shares = {**state.shares, **_open_delivery(state, delivery)}
    words = words + expand_mask(derive(_secret(state, "own mask"), "own mask", state.digest), n)
    others = [state.adverts[writer] for writer, _ in delivery.sealed]
    for other, mask in zip(others, pair_masks(_secret(state, "mask key"), others, state.digest, n), strict=True):
        words = apply_mask(words, mask, is_added=state.client_id < other.client_id)
    return replace(state, phase=SumPhase.REVEAL, shares=shares), MaskedValues(state.client_id, words)


def reveal_shares(state: ClientState, survivors: Survivors) -> tuple[ClientState, Revealed]:
    """SumPhase 4, once: of each client one share or the other, never both. Afterwards every secret is forgotten."""
    expect_phase(state.phase, SumPhase.REVEAL)
    alive = set(survivors.client_ids)
    if len(alive) != len(survivors.client_ids) or not alive <= set(state.shares) or state.client_id not in alive:
        raise ValueError("the survivors are not distinct clients that shared their secrets, this one among them.")
    if len(alive) < state.config.threshold:
        raise ValueError(f"{len(alive)} clients survived, the threshold is {state.config.threshold}: nothing revealed.")
    mask_shares = tuple((i, state.shares[i][0]) for i in sorted(alive))
    key_shares = tuple((i, state.shares[i][1]) for i in sorted(set(state.shares) - alive))
    forgotten = replace(state, phase=SumPhase.DONE, entropy=b"", shares={})
    return forgotten, Revealed(state.client_id, mask_shares, key_shares)


def _secret(state: ClientState, name: str) -> bytes:
    """One of the client's 32-byte secrets: "sealing key", "mask key" or "own mask"."""
    return derive(state.entropy, name, state.config.session + _IDS.pack(state.client_id, 0))


def _advert_of(state: ClientState) -> Advert:
    sealing_key, mask_key = (public_key(_secret(state, name)) for name in ("sealing key", "mask key"))
    return Advert(state.client_id, sealing_key, mask_key, commit(_secret(state, "own mask")))


def _split(state: ClientState, name: str) -> list[bytes]:
    """One share of a secret for each client of the roster, in order."""
    entropy = derive(state.entropy, f"shares of {name}", state.digest)
    points = range(1, len(state.adverts) + 1)
    return split_secret(_secret(state, name), points, threshold=state.config.threshold, entropy=entropy)


def _check_roster(state: ClientState, roster: Roster) -> None:
    ids = [advert.client_id for advert in roster.adverts]
    if ids != sorted(set(ids)) or _advert_of(state) not in roster.adverts:
        raise ValueError("the roster must list different clients by ascending id, this one among them as it wrote.")
    if not state.config.threshold <= len(ids) <= state.config.n_clients:
        raise ValueError(
            f"{len(ids)} clients are on the roster, must be from {state.config.threshold}, the threshold, to "
            f"{state.config.n_clients}."
        )
    keys = [key for advert in roster.adverts for key in (advert.sealing_key, advert.mask_key)]
    if len(set(keys)) != len(keys):
        raise ValueError("two keys of the roster are the same: somebody answers for somebody else.")


def _sealing_keys(state: ClientState, others: Sequence[Advert], *, is_writer: bool) -> list[bytes]:
    """For each other client the key of one message: from this client to the other, or the other way round."""
    shared = agree(_secret(state, "sealing key"), (other.sealing_key for other in others))
    own = state.client_id
    ends = [(own, other.client_id) if is_writer else (other.client_id, own) for other in others]
    return [derive(k, "seal", state.digest + _IDS.pack(*pair)) for k, pair in zip(shared, ends, strict=True)]


def _open_delivery(state: ClientState, delivery: Delivery) -> dict[int, tuple[bytes, bytes]]:
    """{writer: its two shares}; refuses the whole delivery if one does not open."""
    writers = [writer for writer, _ in delivery.sealed]
    if len(set(writers)) != len(writers) or not set(writers) <= set(state.adverts) - {state.client_id}:
        raise ValueError("the delivery does not come from different other clients of the roster.")
    if len(writers) + 1 < state.config.threshold:
        raise ValueError(
            f"{len(writers) + 1} clients shared their secrets, the threshold is {state.config.threshold}: nothing sent."
        )
    keys = _sealing_keys(state, [state.adverts[writer] for writer in writers], is_writer=False)
    opened = [unseal(key, sealed) for key, (_, sealed) in zip(keys, delivery.sealed, strict=True)]
    if any(len(pair) != 2 * SHARE_BYTES for pair in opened):
        raise ValueError("a sealed message does not hold two shares.")
    return {w: (pair[:SHARE_BYTES], pair[SHARE_BYTES:]) for w, pair in zip(writers, opened, strict=True)}
