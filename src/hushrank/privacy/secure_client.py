"""The client's side of a secure sum: five steps, each (state, input) -> (state, message). See `secure_sum.py`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hushrank.privacy.fixed_point import encode_values
from hushrank.privacy.identities import Enrolment, is_signed, sign
from hushrank.privacy.masks import KEY_BYTES, agree, commit, derive, public_key, seal, unseal
from hushrank.privacy.neighbours import Neighbours, choose_neighbours
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
from hushrank.privacy.shamir import SHARE_BYTES, split_secret
from hushrank.types import Array

_IDS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class ClientState:
    """What a client remembers between phases. It holds secrets: keep it where the raw update is kept."""

    config: SumConfig
    client_id: int
    phase: SumPhase
    entropy: bytes = field(repr=False)  # 32, all its secrets are derived of it; forgotten once the values are masked
    adverts: Mapping[int, Advert] = field(default_factory=dict)  # of all on the roster, until the values are masked
    digest: bytes = b""  # 32, names this sum and its roster
    neighbours: tuple[int, ...] = ()  # that it shared its secrets with, by ascending id
    sharers: tuple[int, ...] = ()  # all that shared their secrets, as this client was told
    survivors: tuple[int, ...] = ()  # that it signed
    shares: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)
    # {client: (share of its own mask's seed, share of its mask key's secret)}: only its own until the others' arrive


def begin_client(
    config: SumConfig, client_id: int, *, enrolment: Enrolment, entropy: bytes
) -> tuple[ClientState, Advert]:
    """SumPhase 1. `entropy`: 32 bytes from the operating system, never used before."""
    if len(entropy) != KEY_BYTES:
        raise ValueError(f"{len(entropy)} bytes of entropy came, must be {KEY_BYTES} from the operating system.")
    if not 0 <= client_id < 2**64:
        raise ValueError("a client's id must be a whole number from 0 to 2^64 - 1.")
    state = ClientState(config, client_id, SumPhase.SHARE, entropy)
    advert = _advert_of(state)
    return state, replace(advert, signature=sign(enrolment.secret, ADVERT, describe_advert(config, advert)))


def share_secrets(state: ClientState, roster: Roster, *, enrolment: Enrolment) -> tuple[ClientState, SealedShares]:
    """SumPhase 2: split the two secrets among neighbours that the client draws itself, or all on a small roster."""
    expect_phase(state.phase, SumPhase.SHARE)
    _check_roster(state, roster, enrolment)
    adverts, digest = {a.client_id: a for a in roster.adverts}, digest_of(state.config, roster)
    sharing = state.config.sharing(len(adverts))
    drawn = choose_neighbours(
        derive(state.entropy, "neighbours", digest), set(adverts) - {state.client_id}, sharing.degree
    )
    _check_adverts(state.config, [adverts[i] for i in drawn], enrolment)
    state = replace(state, phase=SumPhase.MASK, adverts=adverts, digest=digest, neighbours=tuple(drawn))
    readers = sorted({*drawn, state.client_id})
    of_mask, of_key = (_split(state, name, readers, sharing) for name in ("own mask", "mask key"))
    shares = dict(zip(readers, zip(of_mask, of_key, strict=True), strict=True))
    keys = _sealing_keys(state, [adverts[i] for i in drawn], is_writer=True)
    sealed = tuple((i, seal(key, b"".join(shares[i]))) for i, key in zip(drawn, keys, strict=True))
    return replace(state, shares={state.client_id: shares[state.client_id]}), SealedShares(state.client_id, sealed)


def mask_values(
    state: ClientState, delivery: Delivery, values: Array, *, enrolment: Enrolment
) -> tuple[ClientState, MaskedValues]:
    """SumPhase 3: open what the others sealed, and add every mask to the values [n_entries], noise included.

    y_u = x_u + PRG(b_u) + sum over v > u of PRG(s_uv) - sum over v < u of PRG(s_uv) mod 2^32 [bonawitz2017, Figure 4].
    """
    expect_phase(state.phase, SumPhase.MASK)
    n = state.config.n_entries
    if np.shape(values) != (n,):
        raise ValueError(f"values have shape {np.shape(values)}, all agreed on ({n},).")
    words = encode_values(values, state.config.encoding)
    _check_sharers(state, delivery)
    _check_adverts(state.config, _new_writers(state, delivery), enrolment)
    shares = {**state.shares, **_open_delivery(state, delivery)}
    view = view_of(state.digest, delivery.sharers)
    words = words + own_mask(_secret(state, "own mask"), view, n)
    own, others = state.adverts[state.client_id], [state.adverts[i] for i in find_partners(state, delivery)]
    masks = pair_masks(_secret(state, "mask key"), own, others, view, n)
    for other, mask in zip(others, masks, strict=True):
        words = apply_mask(words, mask, is_added=state.client_id < other.client_id)
    state = replace(state, phase=SumPhase.SIGN, shares=shares, sharers=delivery.sharers, adverts={}, entropy=b"")
    return state, MaskedValues(state.client_id, words, sign(enrolment.secret, UPLOAD, view))


def sign_survivors(
    state: ClientState, survivors: Survivors, *, enrolment: Enrolment
) -> tuple[ClientState, SignedSurvivors]:
    """SumPhase 4, once: sign what the server says, so that it cannot say different things to different clients."""
    expect_phase(state.phase, SumPhase.SIGN)
    alive = survivors.client_ids
    if list(alive) != sorted({*alive, state.client_id}) or not set(alive) <= set(state.sharers):
        raise ValueError("the survivors are not distinct clients that shared their secrets, this one among them.")
    if len(alive) < state.config.least_roster:
        raise ValueError(f"{len(alive)} clients survived, at least {state.config.least_roster} must: nothing signed.")
    view, uploads = view_of(state.digest, state.sharers), dict(survivors.uploads)
    for i in (set(alive) & set(state.shares)) - {state.client_id}:
        if not is_signed(enrolment.identities.get(i), UPLOAD, view, uploads.get(i, b"")):
            raise ValueError(f"client {i} did not sign that it has the same roster and sharers: nothing signed.")
    signature = sign(enrolment.secret, SURVIVORS, describe_survivors(view, alive))
    return replace(state, phase=SumPhase.REVEAL, survivors=alive), SignedSurvivors(state.client_id, signature)


def reveal_shares(
    state: ClientState, confirmation: Confirmation, *, enrolment: Enrolment
) -> tuple[ClientState, Revealed]:
    """SumPhase 5, once: of each client one share or the other, never both. Afterwards every secret is forgotten."""
    expect_phase(state.phase, SumPhase.REVEAL)
    _check_confirmation(state, confirmation, enrolment)
    alive = set(state.survivors)
    mask_shares = tuple((i, state.shares[i][0]) for i in sorted(set(state.shares) & alive))
    key_shares = tuple((i, state.shares[i][1]) for i in sorted(set(state.shares) - alive))
    return replace(state, phase=SumPhase.DONE, shares={}), Revealed(state.client_id, mask_shares, key_shares)


def find_partners(state: ClientState, delivery: Delivery) -> list[int]:
    """With whom the client has pair masks: neighbours that shared their secrets, and all who shared with it."""
    drawn = set(state.neighbours) & set(delivery.sharers)
    return sorted(drawn | {writer for writer, _ in delivery.sealed})


def _secret(state: ClientState, name: str) -> bytes:
    """One of the client's 32-byte secrets: "sealing key", "mask key" or "own mask"."""
    return derive(state.entropy, name, state.config.session + _IDS.pack(state.client_id, 0))


def _advert_of(state: ClientState) -> Advert:
    """Not signed."""
    sealing_key, mask_key = (public_key(_secret(state, name)) for name in ("sealing key", "mask key"))
    return Advert(state.client_id, sealing_key, mask_key, commit(_secret(state, "own mask")), b"")


def _split(state: ClientState, name: str, readers: Sequence[int], sharing: Neighbours) -> list[bytes]:
    """One share of a secret for each reader; its point is the reader's place on the roster, from 1."""
    entropy = derive(state.entropy, f"shares of {name}", state.digest)
    places = {i: place + 1 for place, i in enumerate(state.adverts)}
    points = [places[i] for i in readers]
    return split_secret(_secret(state, name), points, threshold=sharing.threshold, entropy=entropy)


def _check_roster(state: ClientState, roster: Roster, enrolment: Enrolment) -> None:
    ids = [advert.client_id for advert in roster.adverts]
    unsigned = [replace(a, signature=b"") for a in roster.adverts if a.client_id == state.client_id]
    if ids != sorted(set(ids)) or unsigned != [_advert_of(state)]:
        raise ValueError("the roster must list different clients by ascending id, this one among them as it wrote.")
    if not state.config.least_roster <= len(ids) <= state.config.n_clients:
        raise ValueError(
            f"{len(ids)} clients are on the roster, must be from {state.config.least_roster}, the least agreed on, to "
            f"{state.config.n_clients}."
        )
    if not set(ids) <= enrolment.identities.keys():
        raise ValueError("somebody is on the roster whose identity this client does not know: refused.")
    for advert in roster.adverts:
        check_advert(advert)
    if is_repeated(roster.adverts):
        raise ValueError("two keys of the roster are the same: somebody answers for somebody else.")


def _check_adverts(config: SumConfig, adverts: Sequence[Advert], enrolment: Enrolment) -> None:
    for advert in adverts:
        public = enrolment.identities.get(advert.client_id)
        if not is_signed(public, ADVERT, describe_advert(config, advert), advert.signature):
            raise ValueError(
                f"the keys of client {advert.client_id} are not signed by an identity that this client knows: refused."
            )


def _sealing_keys(state: ClientState, others: Sequence[Advert], *, is_writer: bool) -> list[bytes]:
    """For each other client the key of one message: from this client to the other, or the other way round."""
    shared = agree(_secret(state, "sealing key"), (other.sealing_key for other in others))
    own = state.client_id
    ends = [(own, other.client_id) if is_writer else (other.client_id, own) for other in others]
    return [derive(k, "seal", state.digest + _IDS.pack(*pair)) for k, pair in zip(shared, ends, strict=True)]


def _check_sharers(state: ClientState, delivery: Delivery) -> None:
    sharers, writers = set(delivery.sharers), [writer for writer, _ in delivery.sealed]
    if list(delivery.sharers) != sorted(sharers) or not {state.client_id} <= sharers <= set(state.adverts):
        raise ValueError("the sharers must be different clients of the roster by ascending id, this one among them.")
    if len(set(writers)) != len(writers) or not set(writers) <= sharers - {state.client_id}:
        raise ValueError("the delivery does not come from different other clients that shared their secrets.")
    if len(sharers) < state.config.least_roster:
        raise ValueError(
            f"{len(sharers)} clients shared their secrets, at least {state.config.least_roster} must: nothing sent."
        )
    is_full = len(state.neighbours) == len(state.adverts) - 1
    if is_full and set(writers) != sharers - {state.client_id}:
        raise ValueError("the delivery leaves out shares of a client that is said to have shared: nothing sent.")


def _new_writers(state: ClientState, delivery: Delivery) -> list[Advert]:
    """Those that drew this client without being drawn by it: their adverts have not been checked yet."""
    known = set(state.neighbours)
    return [state.adverts[writer] for writer, _ in delivery.sealed if writer not in known]


def _open_delivery(state: ClientState, delivery: Delivery) -> dict[int, tuple[bytes, bytes]]:
    """{writer: its two shares}; refuses the whole delivery if one does not open, and names its writer."""
    keys = _sealing_keys(state, [state.adverts[writer] for writer, _ in delivery.sealed], is_writer=False)
    opened = {}
    for key, (writer, sealed) in zip(keys, delivery.sealed, strict=True):
        try:
            pair = unseal(key, sealed)
        except ValueError as error:
            raise ValueError(f"client {writer}: {error}") from error
        if len(pair) != 2 * SHARE_BYTES:
            raise ValueError(f"client {writer}: a sealed message does not hold two shares.")
        opened[writer] = (pair[:SHARE_BYTES], pair[SHARE_BYTES:])
    return opened


def _check_confirmation(state: ClientState, confirmation: Confirmation, enrolment: Enrolment) -> None:
    """As many as the threshold signed the very same survivors, sharers, roster and session."""
    signers = [signer for signer, _ in confirmation.signatures]
    if len(set(signers)) != len(signers) or not set(signers) <= set(state.survivors):
        raise ValueError("the signatures do not come from different survivors.")
    if len(signers) < state.config.threshold:
        raise ValueError(f"{len(signers)} clients signed, the threshold is {state.config.threshold}: nothing revealed.")
    signed = describe_survivors(view_of(state.digest, state.sharers), state.survivors)
    for signer, signature in confirmation.signatures:
        if not is_signed(enrolment.identities.get(signer), SURVIVORS, signed, signature):
            raise ValueError(f"client {signer} did not sign the same survivors: nothing revealed.")
