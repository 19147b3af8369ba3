"""A server that lies in a secure sum, with a third of the clients on its side, gets nothing that it must not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seeds import pick_seed
from sum_table import entropy_of

import hushrank.privacy.secure_client as secure_client
import hushrank.privacy.secure_messages as secure_messages
from benchmarks.lying_server import ALTERED, add_order_2, alter_both, flip_top_bit, make_lies, run_lies
from benchmarks.opened_sums import fuzz, judge
from benchmarks.secure_sum_fuzz import BROKEN, ODD, main
from hushrank.privacy.fixed_point import decode_sum
from hushrank.privacy.identities import is_signed, sign
from hushrank.privacy.masks import agree, public_key, seal
from hushrank.privacy.secure_client import (
    ClientState,
    _secret,
    begin_client,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import (
    ADVERT,
    SURVIVORS,
    UPLOAD,
    Confirmation,
    Delivery,
    MaskedValues,
    Roster,
    SealedShares,
    SumConfig,
    SumPhase,
    Survivors,
    apply_mask,
    describe_advert,
    describe_survivors,
    digest_of,
    own_mask,
    pair_masks,
    view_of,
)
from hushrank.privacy.secure_state import STATE, decode_state
from hushrank.privacy.secure_sum import enrol_clients
from hushrank.privacy.shamir import SHARE_BYTES, join_shares
from hushrank.types import Array

N, THRESHOLD, BAD, VICTIM = 10, 7, frozenset({0, 1, 2}), 9
PARTNERS = tuple(range(THRESHOLD - 1))  # all that the victim hears of: three on the server's side, three honest ones
CONFIG = SumConfig(b"federation round 7", N, 3, 1.0, THRESHOLD)
ENROLLED = enrol_clients({i: entropy_of(i) for i in range(N)})
VALUES = np.random.default_rng(1).uniform(-1, 1, (N, 3))


class Found:
    """Shares of seeds and of keys: {owner: {point: share}}."""

    def __init__(self) -> None:
        self.seeds: dict[int, dict[int, bytes]] = {i: {} for i in range(N)}
        self.keys: dict[int, dict[int, bytes]] = {i: {} for i in range(N)}


def mask_all() -> tuple[Roster, dict[int, ClientState], dict[int, MaskedValues]]:
    """Everybody hears of everybody, but for the victim, which hears of as few as it accepts."""
    begun = {i: begin_client(CONFIG, i, enrolment=ENROLLED[i], entropy=entropy_of(i)) for i in range(N)}
    roster = Roster(tuple(advert for _, advert in begun.values()))
    shared = {i: share_secrets(state, roster, enrolment=ENROLLED[i]) for i, (state, _) in begun.items()}
    sealed = {i: dict(message.sealed) for i, (_, message) in shared.items()}
    masked = {}
    for i, (state, _) in shared.items():
        sharers = (*PARTNERS, VICTIM) if i == VICTIM else tuple(range(N))
        delivery = Delivery(sharers, tuple((w, sealed[w][i]) for w in sharers if w != i))
        masked[i] = mask_values(state, delivery, VALUES[i], enrolment=ENROLLED[i])
    return roster, {i: s for i, (s, _) in masked.items()}, {i: m for i, (_, m) in masked.items()}


def call_silent() -> dict[int, set[int]]:
    """{honest client: the three whom it is told are silent}: of each honest partner's key four shares must come."""
    silent: dict[int, set[int]] = {i: set() for i in range(N) if i not in BAD}
    for partner in [p for p in PARTNERS if p not in BAD]:
        ready = [i for i in silent if i not in (partner, VICTIM) and len(silent[i]) < N - THRESHOLD]
        for i in sorted(ready, key=lambda i: len(silent[i]))[: THRESHOLD - len(BAD)]:
            silent[i].add(partner)
    return silent


def tell_each_its_own(states: dict[int, ClientState], uploads: dict[int, MaskedValues]) -> Found:
    """The rest of the protocol with different survivors for different clients."""
    found, signed = Found(), {}
    for i, silent in call_silent().items():
        alive = tuple(j for j in states[i].sharers if j not in silent)
        told = Survivors(alive, tuple((j, uploads[j].signature) for j in alive))
        try:
            signed[i] = sign_survivors(states[i], told, enrolment=ENROLLED[i])
        except ValueError:
            continue
    for i, (state, _) in signed.items():
        confirmation = Confirmation(tuple((j, m.signature) for j, (_, m) in signed.items() if j in state.survivors))
        try:
            _, revealed = reveal_shares(state, confirmation, enrolment=ENROLLED[i])
        except ValueError:
            continue
        for j, share in revealed.mask_shares:
            found.seeds[j][i + 1] = share
        for j, share in revealed.key_shares:
            found.keys[j][i + 1] = share
    for i in BAD:
        for j, (of_seed, of_key) in states[i].shares.items():
            found.seeds[j][i + 1], found.keys[j][i + 1] = of_seed, of_key
    return found


def open_victim() -> Array:
    """[3] the victim's values, of its masked ones; or the error of the share that is missing."""
    roster, states, uploads = mask_all()
    found = tell_each_its_own(states, uploads)
    view, words = view_of(states[VICTIM].digest, states[VICTIM].sharers), uploads[VICTIM].words
    words = words - own_mask(join_shares(found.seeds[VICTIM], threshold=THRESHOLD), view, 3)
    for partner in PARTNERS:
        begun = ClientState(CONFIG, partner, SumPhase.SHARE, entropy_of(partner))
        shares = found.keys[partner]
        key = _secret(begun, "mask key") if partner in BAD else join_shares(shares, threshold=THRESHOLD)
        (mask,) = pair_masks(key, roster.adverts[partner], [roster.adverts[VICTIM]], view, 3)
        words = apply_mask(words, mask, is_added=partner < VICTIM)
    return decode_sum(words, CONFIG.encoding, n_summed=1)


def test_different_survivors_and_few_sharers_open_nothing() -> None:
    with pytest.raises(ValueError, match="the secret stays unknown"):
        open_victim()


def trust_all_but(*purposes: str) -> Callable[..., bool]:
    return lambda public, purpose, *rest: purpose not in purposes or is_signed(public, purpose, *rest)


def test_the_same_lies_opened_an_update_exactly_where_nobody_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack itself works: clients that check keys alone, as before there were signatures, give the update away."""
    monkeypatch.setattr(secure_client, "is_signed", trust_all_but(ADVERT))
    monkeypatch.setattr(secure_client, "_check_confirmation", lambda *_: None)
    np.testing.assert_allclose(open_victim(), VALUES[VICTIM], atol=1 / CONFIG.encoding.scale)


# Copied keys: each client of the server's advertises an honest one's mask key in other bytes.

COPIES, LONELY, SILENT = {0: 4, 1: 5, 2: 6}, 3, {7, 8, 9}  # 0 to 2 are below the lonely one, 4 to 6 above


def advertise_copies(alter: Callable[[bytes], bytes]) -> tuple[Roster, dict[int, ClientState]]:
    begun = {i: begin_client(CONFIG, i, enrolment=ENROLLED[i], entropy=entropy_of(i)) for i in range(N)}
    adverts = {i: advert for i, (_, advert) in begun.items()}
    for i, owner in COPIES.items():
        copy = replace(adverts[i], mask_key=alter(adverts[owner].mask_key))
        adverts[i] = replace(copy, signature=sign(ENROLLED[i].secret, ADVERT, describe_advert(CONFIG, copy)))
    return Roster(tuple(adverts.values())), {i: state for i, (state, _) in begun.items()}


def seal_zeros(state: ClientState, roster: Roster) -> SealedShares:
    """What a client of the server's sends as its shares."""
    state = replace(state, digest=digest_of(CONFIG, roster))
    others = [a for a in roster.adverts if a.client_id != state.client_id]
    keys = secure_client._sealing_keys(state, others, is_writer=True)
    sealed = [(a.client_id, seal(key, bytes(2 * SHARE_BYTES))) for a, key in zip(others, keys, strict=True)]
    return SealedShares(state.client_id, tuple(sealed))


def open_lonely(alter: Callable[[bytes], bytes]) -> Array:
    """[3] what is left of the lonely client's upload without its own mask and those that it has with silent ones."""
    roster, begun = advertise_copies(alter)
    honest = [i for i in range(N) if i not in BAD]
    shared = {i: share_secrets(begun[i], roster, enrolment=ENROLLED[i]) for i in honest}
    sealed = {i: dict(seal_zeros(begun[i], roster).sealed) for i in BAD} | {
        i: dict(message.sealed) for i, (_, message) in shared.items()
    }
    deliveries = {i: Delivery(tuple(range(N)), tuple((w, sealed[w][i]) for w in range(N) if w != i)) for i in range(N)}
    masked = {i: mask_values(shared[i][0], deliveries[i], VALUES[i], enrolment=ENROLLED[i]) for i in honest}
    view = view_of(digest_of(CONFIG, roster), range(N))
    held = {i: open_all(begun[i], roster, deliveries[i]) for i in BAD}
    held |= reveal_to_liars({i: state for i, (state, _) in masked.items()}, view)
    words = masked[LONELY][1].words - own_mask(join_held(held, LONELY, 0), view, 3)
    for i in SILENT:
        key = join_held(held, i, 1)
        (mask,) = pair_masks(key, roster.adverts[i], [roster.adverts[LONELY]], view, 3)
        words = apply_mask(words, mask, is_added=i < LONELY)
    return decode_sum(words, CONFIG.encoding, n_summed=1)


Held = dict[int, tuple[bytes | None, bytes | None]]  # {owner: (share of the seed, share of the key)}


def open_all(state: ClientState, roster: Roster, delivery: Delivery) -> Held:
    """All shares that were sealed for a client of the server's by honest ones."""
    adverts = {a.client_id: a for a in roster.adverts}
    sealed = tuple((w, s) for w, s in delivery.sealed if w not in BAD)
    reader = replace(state, adverts=adverts, digest=digest_of(CONFIG, roster))
    return dict(secure_client._open_delivery(reader, replace(delivery, sealed=sealed)))


def reveal_to_liars(states: dict[int, ClientState], view: bytes) -> dict[int, Held]:
    """Everybody is told the same survivors, truthfully but for those called silent."""
    alive = tuple(i for i in range(N) if i not in SILENT)
    told = Survivors(alive, tuple((i, sign(ENROLLED[i].secret, UPLOAD, view)) for i in alive))
    signed = {i: sign_survivors(states[i], told, enrolment=ENROLLED[i]) for i in alive if i not in BAD}
    said = describe_survivors(view, alive)
    confirmation = Confirmation(tuple((i, sign(ENROLLED[i].secret, SURVIVORS, said)) for i in alive))
    held: dict[int, Held] = {}
    for i, (state, _) in signed.items():
        _, revealed = reveal_shares(state, confirmation, enrolment=ENROLLED[i])
        held[i] = {j: (s, None) for j, s in revealed.mask_shares} | {j: (None, s) for j, s in revealed.key_shares}
    return held


def join_held(held: dict[int, Held], owner: int, kind: int) -> bytes:
    shares = {i + 1: share for i, of in held.items() if (share := of[owner][kind]) is not None}
    return join_shares(shares, threshold=THRESHOLD)


@pytest.mark.parametrize("alter", ALTERED)
def test_copied_keys_opened_an_update_exactly_where_masks_did_not_name_their_pair(
    alter: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack itself works: clients that neither look at keys nor name the pair give the update away."""
    monkeypatch.setattr(secure_client, "check_advert", lambda _: None)
    monkeypatch.setattr(secure_messages, "name_pair", lambda _, __, view: view)
    np.testing.assert_allclose(open_lonely(alter), VALUES[LONELY], atol=1 / CONFIG.encoding.scale)


@pytest.mark.parametrize("alter", ALTERED)
def test_copied_keys_open_nothing_even_where_nobody_looks_at_keys(
    alter: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secure_client, "check_advert", lambda _: None)
    with pytest.raises(ValueError, match="a mask was not removed"):
        open_lonely(alter)


@pytest.mark.parametrize("alter", [flip_top_bit, alter_both])
def test_a_roster_with_another_spelling_of_a_key_is_refused(alter: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match="a public key of client 0 is malformed"):
        open_lonely(alter)


def test_a_copy_that_looks_like_any_key_opens_nothing() -> None:
    with pytest.raises(ValueError, match="a mask was not removed"):
        open_lonely(add_order_2)


@pytest.mark.parametrize("alter", ALTERED)
def test_altered_copies_agree_on_the_same_secrets(alter: Callable[[bytes], bytes]) -> None:
    key = public_key(entropy_of(1))
    assert alter(key) != key and agree(entropy_of(2), [alter(key)]) == agree(entropy_of(2), [key])


# At random.


def fuzz_many(n_runs: int, usual_seed: int) -> Counter[str]:
    seed = pick_seed(usual_seed)
    return sum((fuzz(seed + i) for i in range(n_runs)), Counter[str]())


@pytest.mark.randomised
@pytest.mark.parametrize("part", range(3))
def test_fuzzed_servers_get_no_clients_secrets_and_no_small_sum(part: int) -> None:
    found = fuzz_many(100, 1000 + 100 * part)
    assert {name: found[name] for name in (*BROKEN, *ODD)} == dict.fromkeys((*BROKEN, *ODD), 0)
    assert found["sums"] > 5 and found["refused"] > 500  # neither the clients nor the lies are all of one kind


@pytest.mark.randomised
def test_fuzzed_servers_get_nothing_where_clients_have_neighbours() -> None:
    seed = pick_seed(3)
    found = sum((fuzz(seed + i, is_large=True) for i in range(6)), Counter[str]())
    assert not any(found[name] for name in (*BROKEN, *ODD))
    assert found["answered"] > 6 * 40  # not adverts alone: one run in five ends there


def test_without_lies_the_sum_is_that_of_all_honest_survivors() -> None:
    lies = make_lies(5, None)
    lies.rate, lies.plan, lies.copies, lies.is_split, lies.is_forging = 0.0, frozenset(), {}, False, False
    run_lies(lies)
    found = judge(lies)
    assert found["sums"] == 1 and not any(found[name] for name in (*BROKEN, *ODD))


def read_any(folder: Path) -> ClientState:
    return decode_state((folder / STATE).read_bytes())


@pytest.mark.parametrize(
    ("target", "planted", "expected"),
    [
        ("hushrank.privacy.secure_client._check_confirmation", lambda *_: None, "sums too small"),
        ("hushrank.privacy.secure_client.is_signed", lambda *_: True, "both secrets"),
        ("hushrank.privacy.secure_client.is_signed", trust_all_but("upload", "survivors"), "both secrets"),
        ("hushrank.privacy.secure_client.is_signed", trust_all_but(ADVERT, "upload"), "sums too small"),
        ("hushrank.privacy.secure_messages.name_pair", lambda _, __, view: view, "opened by combining"),
        ("benchmarks.lying_server.load_state", read_any, "older state accepted"),
    ],
    ids=[
        "no threshold of signatures",
        "no signatures",
        "keys unsigned",
        "survivors unsigned",
        "pairs unnamed",
        "older state",
    ],
)
def test_the_fuzzer_finds_what_was_planted(
    target: str, planted: Any, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, planted)
    assert any(fuzz(seed)[expected] for seed in range(60))


def test_the_command_counts_and_exits_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "2", "--seed", "0"]) == 0
    assert '"runs": 2' in capsys.readouterr().out
