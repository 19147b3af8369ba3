"""The server's side of a secure sum: for each phase, add messages as they come, then close it. See `secure_sum.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hushrank.privacy.fixed_point import decode_sum
from hushrank.privacy.identities import is_signed
from hushrank.privacy.masks import commit, public_key
from hushrank.privacy.secure_messages import (
    ADVERT,
    SURVIVORS,
    UPLOAD,
    Advert,
    Confirmation,
    Delivery,
    MaskedValues,
    Revealed,
    Roster,
    SealedShares,
    SignedSurvivors,
    SumConfig,
    SumPhase,
    Survivors,
    apply_mask,
    check_advert,
    describe_advert,
    describe_survivors,
    digest_of,
    expect_phase,
    is_repeated,
    own_mask,
    pair_masks,
    view_of,
)
from hushrank.privacy.shamir import join_shares
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class SumServer:
    """What the server remembers between messages."""

    config: SumConfig
    identities: Mapping[int, bytes] = field(repr=False)  # {client: its identity's public key}
    total: Array = field(repr=False)  # [n_entries] uint32, of the masked values so far
    phase: SumPhase = SumPhase.ADVERTISE
    adverts: Mapping[int, Advert] = field(default_factory=dict)
    view: bytes = b""  # 32, names session, roster and sharers
    sealed: Mapping[int, Mapping[int, bytes]] = field(
        default_factory=dict
    )  # {writer: {reader: bytes}}, until delivered
    readers: Mapping[int, frozenset[int]] = field(default_factory=dict)  # {sharer: its neighbours and itself}
    uploads: Mapping[int, bytes] = field(default_factory=dict)  # {survivor: the signature of its masked values}
    signatures: Mapping[int, bytes] = field(default_factory=dict)  # {survivor: its signature of the survivors}
    revealed: Mapping[int, Revealed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecureSum:
    """What the server learns."""

    total: Array  # [n_entries] float64, the sum over the survivors, each rounded to 1 / scale
    client_ids: tuple[int, ...]  # the survivors


def begin_server(config: SumConfig, identities: Mapping[int, bytes]) -> SumServer:
    return SumServer(config, identities, np.zeros(config.n_entries, np.uint32))


def add_advert(state: SumServer, advert: Advert) -> SumServer:
    expect_phase(state.phase, SumPhase.ADVERTISE)
    _refuse_second(advert.client_id, state.adverts)
    if len(state.adverts) == state.config.n_clients:
        raise ValueError(f"{state.config.n_clients} clients advertised already, no more may take part.")
    check_advert(advert)
    _check_signature(state, advert.client_id, ADVERT, describe_advert(state.config, advert), advert.signature)
    adverts = {**state.adverts, advert.client_id: advert}
    if is_repeated(adverts.values()):
        raise ValueError(f"a public key of client {advert.client_id} was advertised before: refused.")
    return replace(state, adverts=adverts)


def close_adverts(state: SumServer) -> tuple[SumServer, Roster]:
    expect_phase(state.phase, SumPhase.ADVERTISE)
    _need(len(state.adverts), state.config.least_roster, "advertised")
    return replace(state, phase=SumPhase.SHARE), _roster_of(state)


def add_shares(state: SumServer, shares: SealedShares) -> SumServer:
    expect_phase(state.phase, SumPhase.SHARE)
    _refuse_second(shares.client_id, state.sealed)
    readers, writer = {reader for reader, _ in shares.sealed}, shares.client_id
    degree = state.config.sharing(len(state.adverts)).degree
    is_whole = len(shares.sealed) == len(readers) == degree
    if writer not in state.adverts or not is_whole or not readers <= set(state.adverts) - {writer}:
        raise ValueError(f"shares must come from a client of the roster, one for each of {degree} others.")
    return replace(state, sealed={**state.sealed, writer: dict(shares.sealed)})


def close_shares(state: SumServer) -> tuple[SumServer, dict[int, Delivery]]:
    """What is to be delivered to each client that shared its secrets."""
    expect_phase(state.phase, SumPhase.SHARE)
    _need(len(state.sealed), state.config.least_roster, "shared their secrets")
    sharers = tuple(sorted(state.sealed))
    sealed_for: dict[int, list[tuple[int, bytes]]] = {i: [] for i in sharers}
    for writer in sharers:
        for reader in state.sealed[writer].keys() & sealed_for.keys():
            sealed_for[reader].append((writer, state.sealed[writer][reader]))
    deliveries = {i: Delivery(sharers, tuple(sealed_for[i])) for i in sharers}
    readers = {writer: frozenset(state.sealed[writer]) | {writer} for writer in sharers}
    view = view_of(digest_of(state.config, _roster_of(state)), sharers)
    return replace(state, phase=SumPhase.MASK, sealed={}, readers=readers, view=view), deliveries


def add_masked(state: SumServer, masked: MaskedValues) -> SumServer:
    """One vector is kept, whatever the number of clients."""
    expect_phase(state.phase, SumPhase.MASK)
    _refuse_second(masked.client_id, state.uploads)
    if masked.client_id not in state.readers:
        raise ValueError(f"client {masked.client_id} did not share its secrets: its masks could not be removed.")
    if masked.words.shape != (state.config.n_entries,) or masked.words.dtype != np.uint32:
        raise ValueError(f"masked values are not {state.config.n_entries} 32-bit words.")
    _check_signature(state, masked.client_id, UPLOAD, state.view, masked.signature)
    return replace(
        state, total=state.total + masked.words, uploads={**state.uploads, masked.client_id: masked.signature}
    )


def close_masked(state: SumServer) -> tuple[SumServer, dict[int, Survivors]]:
    """What each survivor is told."""
    expect_phase(state.phase, SumPhase.MASK)
    _need(len(state.uploads), state.config.least_roster, "sent masked values")
    alive, held = tuple(sorted(state.uploads)), _shares_held(state)
    told = {i: Survivors(alive, tuple((w, state.uploads[w]) for w in held[i] if w in state.uploads)) for i in alive}
    return replace(state, phase=SumPhase.SIGN), told


def add_signed(state: SumServer, signed: SignedSurvivors) -> SumServer:
    expect_phase(state.phase, SumPhase.SIGN)
    _refuse_second(signed.client_id, state.signatures)
    if signed.client_id not in state.uploads:
        raise ValueError(f"client {signed.client_id} is no survivor: its signature does not count.")
    message = describe_survivors(state.view, sorted(state.uploads))
    _check_signature(state, signed.client_id, SURVIVORS, message, signed.signature)
    return replace(state, signatures={**state.signatures, signed.client_id: signed.signature})


def close_signed(state: SumServer) -> tuple[SumServer, Confirmation]:
    """As many signatures as the threshold, which are enough."""
    expect_phase(state.phase, SumPhase.SIGN)
    _need(len(state.signatures), state.config.threshold, "signed")
    chosen = sorted(state.signatures)[: state.config.threshold]
    return replace(state, phase=SumPhase.REVEAL), Confirmation(tuple((i, state.signatures[i]) for i in chosen))


def add_revealed(state: SumServer, revealed: Revealed) -> SumServer:
    expect_phase(state.phase, SumPhase.REVEAL)
    _refuse_second(revealed.client_id, state.revealed)
    if revealed.client_id not in state.signatures:
        raise ValueError("shares must come from a survivor that signed who survived.")
    held = [i for i in state.readers if revealed.client_id in state.readers[i]]
    wanted = ([i for i in held if i in state.uploads], [i for i in held if i not in state.uploads])
    if ([i for i, _ in revealed.mask_shares], [i for i, _ in revealed.key_shares]) != wanted:
        raise ValueError("shares must be of each survivor's mask and each silent client's key.")
    return replace(state, revealed={**state.revealed, revealed.client_id: revealed})


def finish_sum(state: SumServer) -> tuple[SumServer, SecureSum]:
    """Remove the masks that are left: own masks of survivors, pair masks of the silent with each survivor."""
    expect_phase(state.phase, SumPhase.REVEAL)
    _need(len(state.revealed), state.config.threshold, "revealed shares")
    total, n, alive = state.total, state.config.n_entries, tuple(sorted(state.uploads))
    of_masks = {i: dict(revealed.mask_shares) for i, revealed in state.revealed.items()}
    of_keys = {i: dict(revealed.key_shares) for i, revealed in state.revealed.items()}
    join = _make_join(state)
    for survivor in alive:
        seed = join(survivor, of_masks)
        _check_joined(commit(seed) == state.adverts[survivor].commitment, survivor)
        total = total - own_mask(seed, state.view, n)
    for silent in [i for i in state.readers if i not in state.uploads]:
        secret = join(silent, of_keys)
        _check_joined(public_key(secret) == state.adverts[silent].mask_key, silent)
        others = [state.adverts[i] for i in alive if i in state.readers[silent] or silent in state.readers[i]]
        masks = pair_masks(secret, state.adverts[silent], others, state.view, n)
        for other, mask in zip(others, masks, strict=True):
            total = apply_mask(total, mask, is_added=silent < other.client_id)  # the survivor did the opposite
    decoded = decode_sum(total, state.config.encoding, n_summed=len(alive))
    return replace(state, phase=SumPhase.DONE, total=total), SecureSum(decoded, alive)


def _make_join(state: SumServer) -> Callable[[int, Mapping[int, Mapping[int, bytes]]], bytes]:
    """A function (owner, {who revealed: {owner: share}}) -> the owner's secret."""
    places = {i: place + 1 for place, i in enumerate(sorted(state.adverts))}
    threshold = state.config.sharing(len(places)).threshold

    def join(owner: int, held: Mapping[int, Mapping[int, bytes]]) -> bytes:
        helpers = state.readers[owner] & state.revealed.keys()
        return join_shares({places[i]: held[i][owner] for i in helpers}, threshold=threshold)

    return join


def _roster_of(state: SumServer) -> Roster:
    return Roster(tuple(state.adverts[i] for i in sorted(state.adverts)))


def _shares_held(state: SumServer) -> dict[int, list[int]]:
    """{sharer: the others whose shares it holds}"""
    held: dict[int, list[int]] = {i: [] for i in state.readers}
    for writer, readers in state.readers.items():
        for reader in readers & held.keys() - {writer}:
            held[reader].append(writer)
    return held


def _check_signature(state: SumServer, client_id: int, purpose: str, message: bytes, signature: bytes) -> None:
    if not is_signed(state.identities.get(client_id), purpose, message, signature):
        raise ValueError(f"the {purpose} of client {client_id} is not signed by its identity: refused.")


def _need(n: int, least: int, did: str) -> None:
    if n < least:
        raise ValueError(f"{n} clients {did}, the threshold is {least}: the sum is abandoned.")


def _refuse_second(client_id: int, known: Collection[int]) -> None:
    if client_id in known:
        raise ValueError(f"client {client_id} answered this phase already: the second message is refused.")


def _check_joined(fits: bool, client_id: int) -> None:
    if not fits:
        raise ValueError(f"the shares of client {client_id} do not fit what it advertised: the sum is abandoned.")
