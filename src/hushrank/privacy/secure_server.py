"""The server's side of a secure sum: for each phase, add messages as they come, then close it. See `secure_sum.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hushrank.privacy.fixed_point import decode_sum
from hushrank.privacy.masks import KEY_BYTES, commit, derive, expand_mask, public_key
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
from hushrank.privacy.shamir import join_shares
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class SumServer:
    """What the server remembers between messages."""

    config: SumConfig
    total: Array = field(repr=False)  # [n_entries] uint32, of the masked values so far
    phase: SumPhase = SumPhase.ADVERTISE
    adverts: Mapping[int, Advert] = field(default_factory=dict)
    sealed: Mapping[int, Mapping[int, bytes]] = field(default_factory=dict)  # {writer: {reader: bytes}}
    survivors: frozenset[int] = frozenset()
    revealed: Mapping[int, Revealed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecureSum:
    """What the server learns."""

    total: Array  # [n_entries] float64, the sum over the survivors, each rounded to 1 / scale
    client_ids: tuple[int, ...]  # the survivors


def begin_server(config: SumConfig) -> SumServer:
    return SumServer(config, np.zeros(config.n_entries, np.uint32))


def add_advert(state: SumServer, advert: Advert) -> SumServer:
    expect_phase(state.phase, SumPhase.ADVERTISE)
    _refuse_second(advert.client_id, state.adverts)
    if len(state.adverts) == state.config.n_clients:
        raise ValueError(f"{state.config.n_clients} clients advertised already, no more may take part.")
    if {len(advert.sealing_key), len(advert.mask_key), len(advert.commitment)} != {KEY_BYTES}:
        raise ValueError(f"a key or commitment has not {KEY_BYTES} bytes.")
    return replace(state, adverts={**state.adverts, advert.client_id: advert})


def close_adverts(state: SumServer) -> tuple[SumServer, Roster]:
    expect_phase(state.phase, SumPhase.ADVERTISE)
    _need(len(state.adverts), state.config, "advertised")
    return replace(state, phase=SumPhase.SHARE), _roster_of(state)


def add_shares(state: SumServer, shares: SealedShares) -> SumServer:
    expect_phase(state.phase, SumPhase.SHARE)
    _refuse_second(shares.client_id, state.sealed)
    readers = [reader for reader, _ in shares.sealed]
    if shares.client_id not in state.adverts or sorted(readers) != sorted(set(state.adverts) - {shares.client_id}):
        raise ValueError("shares must come from a client of the roster, one for each other client.")
    return replace(state, sealed={**state.sealed, shares.client_id: dict(shares.sealed)})


def close_shares(state: SumServer) -> tuple[SumServer, dict[int, Delivery]]:
    """What is to be delivered to each client that shared its secrets."""
    expect_phase(state.phase, SumPhase.SHARE)
    _need(len(state.sealed), state.config, "shared their secrets")
    deliveries = {
        reader: Delivery(tuple((w, state.sealed[w][reader]) for w in sorted(state.sealed) if w != reader))
        for reader in state.sealed
    }
    forwarded: dict[int, Mapping[int, bytes]] = {writer: {} for writer in state.sealed}
    return replace(state, phase=SumPhase.MASK, sealed=forwarded), deliveries


def add_masked(state: SumServer, masked: MaskedValues) -> SumServer:
    """One vector is kept, whatever the number of clients."""
    expect_phase(state.phase, SumPhase.MASK)
    _refuse_second(masked.client_id, state.survivors)
    if masked.client_id not in state.sealed:
        raise ValueError(f"client {masked.client_id} did not share its secrets: its masks could not be removed.")
    if masked.words.shape != (state.config.n_entries,) or masked.words.dtype != np.uint32:
        raise ValueError(f"masked values are not {state.config.n_entries} 32-bit words.")
    return replace(state, total=state.total + masked.words, survivors=state.survivors | {masked.client_id})


def close_masked(state: SumServer) -> tuple[SumServer, Survivors]:
    expect_phase(state.phase, SumPhase.MASK)
    _need(len(state.survivors), state.config, "sent masked values")
    return replace(state, phase=SumPhase.REVEAL), Survivors(tuple(sorted(state.survivors)))


def add_revealed(state: SumServer, revealed: Revealed) -> SumServer:
    expect_phase(state.phase, SumPhase.REVEAL)
    _refuse_second(revealed.client_id, state.revealed)
    asked = ([i for i, _ in revealed.mask_shares], [i for i, _ in revealed.key_shares])
    if revealed.client_id not in state.survivors or asked != (sorted(state.survivors), _silent(state)):
        raise ValueError("shares must come from a survivor: of each survivor's mask and each silent client's key.")
    return replace(state, revealed={**state.revealed, revealed.client_id: revealed})


def finish_sum(state: SumServer) -> tuple[SumServer, SecureSum]:
    """Remove the masks that are left: own masks of survivors, pair masks of the silent with each survivor."""
    expect_phase(state.phase, SumPhase.REVEAL)
    _need(len(state.revealed), state.config, "revealed shares")
    roster, total, n = _roster_of(state), state.total, state.config.n_entries
    digest, places = digest_of(state.config, roster), {a.client_id: i + 1 for i, a in enumerate(roster.adverts)}
    of_masks = {places[i]: dict(r.mask_shares) for i, r in state.revealed.items()}
    of_keys = {places[i]: dict(r.key_shares) for i, r in state.revealed.items()}
    for survivor in sorted(state.survivors):
        seed = join_shares({x: held[survivor] for x, held in of_masks.items()}, threshold=state.config.threshold)
        _check_joined(commit(seed) == state.adverts[survivor].commitment, survivor)
        total = total - expand_mask(derive(seed, "own mask", digest), n)
    for silent in _silent(state):
        secret = join_shares({x: held[silent] for x, held in of_keys.items()}, threshold=state.config.threshold)
        _check_joined(public_key(secret) == state.adverts[silent].mask_key, silent)
        others = [state.adverts[survivor] for survivor in sorted(state.survivors)]
        for other, mask in zip(others, pair_masks(secret, others, digest, n), strict=True):
            total = apply_mask(total, mask, is_added=silent < other.client_id)  # the survivor did the opposite
    decoded = decode_sum(total, state.config.encoding, n_summed=len(state.survivors))
    return replace(state, phase=SumPhase.DONE, total=total), SecureSum(decoded, tuple(sorted(state.survivors)))


def _roster_of(state: SumServer) -> Roster:
    return Roster(tuple(state.adverts[i] for i in sorted(state.adverts)))


def _silent(state: SumServer) -> list[int]:
    """Clients whose pair masks are in the survivors' values, but who sent none."""
    return sorted(set(state.sealed) - state.survivors)


def _need(n: int, config: SumConfig, did: str) -> None:
    if n < config.threshold:
        raise ValueError(f"{n} clients {did}, the threshold is {config.threshold}: the sum is abandoned.")


def _refuse_second(client_id: int, known: Mapping[int, Any] | frozenset[int]) -> None:
    if client_id in known:
        raise ValueError(f"client {client_id} answered this phase already: the second message is refused.")


def _check_joined(fits: bool, client_id: int) -> None:
    if not fits:
        raise ValueError(f"the shares of client {client_id} do not fit what it advertised: the sum is abandoned.")
