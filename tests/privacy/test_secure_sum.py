"""A secure sum is the sum over those who answered, whoever falls silent, and single uploads look uniform."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from hushrank.privacy.masks import agree, expand_mask, public_key, seal, unseal
from hushrank.privacy.secure_client import (
    ClientState,
    begin_client,
    mask_values,
    reveal_shares,
    share_secrets,
)
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
    count_sent_bytes,
    usual_threshold,
)
from hushrank.privacy.secure_server import (
    SumServer,
    add_advert,
    add_masked,
    add_revealed,
    add_shares,
    begin_server,
    close_adverts,
    close_masked,
    close_shares,
    finish_sum,
)
from hushrank.privacy.secure_sum import run_secure_sum
from hushrank.types import Array

SESSION = b"federation round 7"


def config_for(n_clients: int, n_entries: int = 5, threshold: int | None = None) -> SumConfig:
    return SumConfig(SESSION, n_clients, n_entries, 1.0, threshold or usual_threshold(n_clients))


def entropy_of(i: int) -> bytes:
    """Fixed, so that a failure can be repeated; on devices it comes from the operating system."""
    return hashlib.sha256(b"test %d" % i).digest()


def some_values(n_clients: int, n_entries: int = 5) -> dict[int, Array]:
    generator = np.random.default_rng(n_clients)
    return {10 * i: generator.uniform(-1, 1, n_entries) for i in range(n_clients)}


def run(values: dict[int, Array], config: SumConfig, **options: Any) -> Any:
    return run_secure_sum(values, config, entropy={i: entropy_of(i) for i in values}, **options)


def check_sum(found: Any, values: dict[int, Array], config: SumConfig) -> None:
    wanted = sum(values[i] for i in found.client_ids)
    assert np.all(np.abs(found.total - wanted) <= len(found.client_ids) / (2 * config.encoding.scale))


def test_multiples_of_a_step_add_up_exactly() -> None:
    config = config_for(3, n_entries=2)
    values = {1: np.array([0.5, -1.0]), 2: np.array([0.25, -1.0]), 3: np.array([-0.125, -1.0])}
    found = run(values, config)
    assert found.total.tolist() == [0.625, -3.0] and found.client_ids == (1, 2, 3)


@pytest.mark.parametrize(
    ("phase", "survives"),
    [(SumPhase.ADVERTISE, False), (SumPhase.SHARE, False), (SumPhase.MASK, False), (SumPhase.REVEAL, True)],
)
def test_clients_may_fall_silent_in_any_phase(phase: SumPhase, survives: bool) -> None:
    values, config = some_values(9), config_for(9)
    found = run(values, config, lost={0: phase, 40: phase})
    assert (0 in found.client_ids) is (40 in found.client_ids) is survives
    assert len(found.client_ids) == (9 if survives else 7)
    check_sum(found, values, config)


@given(st.lists(st.sampled_from(list(SumPhase)), min_size=4, max_size=7))
@settings(max_examples=25, deadline=None)
def test_the_sum_is_right_or_refused(phases: list[SumPhase]) -> None:
    values, config = some_values(len(phases), 2), config_for(len(phases), 2)
    lost = dict(zip(values, phases, strict=True))
    if sum(phase is SumPhase.DONE for phase in phases) < config.threshold:
        with pytest.raises(ValueError, match=f"the threshold is {config.threshold}: the sum is abandoned"):
            run(values, config, lost=lost)
    else:
        found = run(values, config, lost=lost)
        assert found.client_ids == tuple(i for i in values if lost[i] > SumPhase.MASK)
        check_sum(found, values, config)


def test_thirty_clients_with_six_silent_at_a_longer_vector() -> None:
    values, config = some_values(30, 1000), config_for(30, 1000)
    found = run(values, config, lost=dict.fromkeys(list(values)[::5], SumPhase.MASK))
    assert len(found.client_ids) == 24
    check_sum(found, values, config)


def test_noise_added_before_is_in_the_sum() -> None:
    values, config = some_values(5), config_for(5)
    noise = np.random.default_rng(1).normal(0, 0.01, (5, 5))
    noisy = {i: np.clip(v + e, -1, 1) for (i, v), e in zip(values.items(), noise, strict=True)}
    check_sum(run(noisy, config), noisy, config)


def test_a_million_entries() -> None:
    values, config = some_values(3, 10**6), config_for(3, 10**6)
    found = run(values, config, lost={})
    check_sum(found, values, config)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_upload_looks_uniform(value: float) -> None:
    config, seen = config_for(4, 20_000), []
    values = {i: np.full(20_000, value) for i in range(4)}
    run(values, config, watch=lambda _, message: seen.append(message))
    uploads = [message.words for message in seen if isinstance(message, MaskedValues)]
    for words in uploads:
        for place in range(4):  # every byte of a word
            counts = np.bincount(words.view(np.uint8)[place::4], minlength=256)
            assert chisquare(counts).pvalue > 1e-4
    both = (uploads[0] + uploads[1]).view(np.uint8)  # and the sum of two as well: own masks stay
    assert chisquare(np.bincount(both, minlength=256)).pvalue > 1e-4


def test_the_same_value_is_masked_differently_every_time() -> None:
    values = {i: np.zeros(50) for i in range(3)}
    words = []
    for session in (SESSION, SESSION + b"!"):
        config = replace(config_for(3, 50), session=session)
        run(values, config, watch=lambda _, m: words.append(m.words) if isinstance(m, MaskedValues) else None)
    assert len({w.tobytes() for w in words}) == 6


def test_two_clients_make_the_same_mask() -> None:
    secrets = [entropy_of(1), entropy_of(2)]
    publics = [public_key(secret) for secret in secrets]
    assert agree(secrets[0], [publics[1]]) == agree(secrets[1], [publics[0]])
    assert expand_mask(secrets[0], 7).tolist() == expand_mask(secrets[0], 9)[:7].tolist()


# One phase after the other, by hand.


@dataclass
class Table:
    """Four clients and a server at the end of a phase, and what the server said last."""

    server: SumServer
    clients: dict[int, ClientState]
    said: Any = None
    sent: dict[int, Any] = field(default_factory=dict)  # the clients' last messages


def at_the_end_of(phase: SumPhase, *, silent: tuple[int, ...] = ()) -> Table:
    """`silent` send no masked values."""
    config = config_for(4)
    table = Table(begin_server(config), {})
    for i in range(4):
        table.clients[i], table.sent[i] = begin_client(config, i, entropy=entropy_of(i))
        table.server = add_advert(table.server, table.sent[i])
    table.server, table.said = close_adverts(table.server)
    if phase is SumPhase.ADVERTISE:
        return table
    for i in range(4):
        table.clients[i], table.sent[i] = share_secrets(table.clients[i], table.said)
        table.server = add_shares(table.server, table.sent[i])
    table.server, table.said = close_shares(table.server)
    if phase is SumPhase.SHARE:
        return table
    for i in [i for i in range(4) if i not in silent]:
        table.clients[i], table.sent[i] = mask_values(table.clients[i], table.said[i], np.full(5, 0.25))
        table.server = add_masked(table.server, table.sent[i])
    table.server, table.said = close_masked(table.server)
    return table


def test_a_client_tells_one_share_of_each_other_client_and_never_the_second() -> None:
    table = at_the_end_of(SumPhase.MASK, silent=(2,))
    told = {i: reveal_shares(table.clients[i], table.said)[1] for i in (0, 1, 3)}
    for revealed in told.values():
        assert [i for i, _ in revealed.mask_shares] == [0, 1, 3] and [i for i, _ in revealed.key_shares] == [2]
        held = table.clients[revealed.client_id].shares
        assert dict(revealed.mask_shares) == {i: held[i][0] for i in (0, 1, 3)}
        assert dict(revealed.key_shares) == {2: held[2][1]}


def test_a_second_request_is_refused_and_everything_forgotten() -> None:
    table = at_the_end_of(SumPhase.MASK)
    after, _ = reveal_shares(table.clients[0], table.said)
    with pytest.raises(ValueError, match="the sum is in phase done, a message of phase reveal came"):
        reveal_shares(after, Survivors((0, 1, 2)))
    assert not after.shares and not after.entropy


@pytest.mark.parametrize(
    ("survivors", "message"),
    [
        ((0, 1), "2 clients survived, the threshold is 3: nothing revealed"),
        ((1, 2, 3), "this one among them"),
        ((0, 1, 1, 2), "not distinct"),
        ((0, 1, 9), "not distinct clients that shared their secrets"),
    ],
)
def test_a_client_refuses_survivors_that_cannot_be(survivors: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reveal_shares(at_the_end_of(SumPhase.MASK).clients[0], Survivors(survivors))


def change_delivery(delivery: Delivery, change: Callable[[list[tuple[int, bytes]]], None]) -> Delivery:
    sealed = list(delivery.sealed)
    change(sealed)
    return Delivery(tuple(sealed))


def flip_a_bit(sealed: list[tuple[int, bytes]]) -> None:
    sealed[0] = (sealed[0][0], bytes([sealed[0][1][0] ^ 1]) + sealed[0][1][1:])


def swap_writers(sealed: list[tuple[int, bytes]]) -> None:
    sealed[0], sealed[1] = (sealed[0][0], sealed[1][1]), (sealed[1][0], sealed[0][1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flip_a_bit, "a sealed share was changed, replayed or meant for somebody else"),
        (swap_writers, "a sealed share was changed, replayed or meant for somebody else"),
        (lambda sealed: sealed.append(sealed[0]), "different other clients"),
        (lambda sealed: sealed.append((0, sealed[0][1])), "different other clients"),
        (lambda sealed: sealed.append((7, sealed[0][1])), "different other clients"),
        (lambda sealed: sealed.clear(), "1 clients shared their secrets, the threshold is 3: nothing sent"),
    ],
)
def test_a_tampered_delivery_is_refused(change: Callable[[list[tuple[int, bytes]]], None], message: str) -> None:
    table = at_the_end_of(SumPhase.SHARE)
    with pytest.raises(ValueError, match=message):
        mask_values(table.clients[0], change_delivery(table.said[0], change), np.zeros(5))


def test_shares_of_another_session_or_for_another_reader_are_refused() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    other = replace(table.clients[0], digest=bytes(32))
    for client, delivery in ((other, table.said[0]), (table.clients[0], table.said[1])):
        renamed = Delivery(tuple((w or 1, sealed) for w, sealed in delivery.sealed))
        with pytest.raises(ValueError, match="changed, replayed or meant for somebody else"):
            mask_values(client, renamed, np.zeros(5))


def test_values_that_would_wrap_or_have_another_shape_are_refused() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    with pytest.raises(ValueError, match="1 of 5 values are beyond the bound of 1"):
        mask_values(table.clients[0], table.said[0], np.array([0, 0, 0, 0, 1.5]))
    with pytest.raises(ValueError, match="values have shape"):
        mask_values(table.clients[0], table.said[0], np.zeros(4))


def test_every_second_message_is_refused() -> None:
    adverts = at_the_end_of(SumPhase.ADVERTISE)
    server = replace(adverts.server, phase=SumPhase.ADVERTISE)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_advert(server, adverts.sent[1])
    _, shares = share_secrets(adverts.clients[1], adverts.said)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_shares(add_shares(adverts.server, shares), shares)
    table = at_the_end_of(SumPhase.MASK)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_masked(replace(table.server, phase=SumPhase.MASK), table.sent[1])
    _, revealed = reveal_shares(table.clients[1], table.said)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_revealed(add_revealed(table.server, revealed), revealed)


def test_a_late_message_is_refused() -> None:
    table = at_the_end_of(SumPhase.MASK, silent=(2,))
    _, late = mask_values(at_the_end_of(SumPhase.SHARE).clients[2], at_the_end_of(SumPhase.SHARE).said[2], np.zeros(5))
    with pytest.raises(ValueError, match="the sum is in phase reveal, a message of phase mask came"):
        add_masked(table.server, late)


@pytest.mark.parametrize("kind", ["mask_shares", "key_shares"])
def test_a_wrong_share_gives_an_error_and_no_wrong_sum(kind: str) -> None:
    table = at_the_end_of(SumPhase.MASK, silent=(2,))
    server = table.server
    for i in (0, 1, 3):
        _, revealed = reveal_shares(table.clients[i], table.said)
        if i == 1:
            (owner, share), *rest = getattr(revealed, kind)
            changes: dict[str, Any] = {kind: ((owner, bytes([share[0] ^ 1]) + share[1:]), *rest)}
            revealed = replace(revealed, **changes)
        server = add_revealed(server, revealed)
    with pytest.raises(ValueError, match=r"do not (fit what it advertised|belong together)"):
        finish_sum(server)


def test_the_server_refuses_strangers_and_other_shapes() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    with pytest.raises(ValueError, match="client 9 did not share its secrets"):
        add_masked(table.server, MaskedValues(9, np.zeros(5, np.uint32)))
    for words in (np.zeros(4, np.uint32), np.zeros(5)):
        with pytest.raises(ValueError, match="not 5 32-bit words"):
            add_masked(table.server, MaskedValues(1, words))
    end = at_the_end_of(SumPhase.MASK)
    with pytest.raises(ValueError, match="shares must come from a survivor"):
        add_revealed(end.server, Revealed(0, (), ()))
    start = at_the_end_of(SumPhase.ADVERTISE)
    with pytest.raises(ValueError, match="one for each other client"):
        add_shares(start.server, SealedShares(0, ((1, b""),)))


def test_a_roster_that_cannot_be_is_refused() -> None:
    table = at_the_end_of(SumPhase.ADVERTISE)
    adverts, client = table.said.adverts, table.clients[0]
    twin = Advert(3, adverts[1].sealing_key, adverts[3].mask_key, adverts[3].commitment)
    forged = replace(adverts[0], mask_key=adverts[1].mask_key)
    for roster, message in (
        (adverts[::-1], "ascending id"),
        (adverts[1:], "this one among them"),
        ((forged, *adverts[1:]), "this one among them as it wrote"),
        (adverts[:2], "2 clients are on the roster"),
        ((*adverts[:3], twin), "two keys of the roster are the same"),
        ((*adverts[:3], replace(adverts[3], sealing_key=bytes(32))), "public key is malformed"),
    ):
        with pytest.raises(ValueError, match=message):
            share_secrets(client, Roster(roster))


def test_too_many_or_malformed_adverts_are_refused() -> None:
    table = at_the_end_of(SumPhase.ADVERTISE)
    with pytest.raises(ValueError, match="4 clients advertised already"):
        add_advert(replace(table.server, phase=SumPhase.ADVERTISE), replace(table.sent[0], client_id=9))
    with pytest.raises(ValueError, match="has not 32 bytes"):
        add_advert(begin_server(config_for(4)), replace(table.sent[0], mask_key=b""))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": 2}, "threshold is 2 of 4 clients, must be at least 2, more than half"),
        ({"threshold": 5}, "threshold is 5 of 4"),
        ({"n_clients": 1, "threshold": 1}, "must be at least 2"),
        ({"session": b"short"}, "session has 5 bytes"),
        ({"n_entries": 0}, "n_entries is 0"),
        ({"bound": 0.0}, "bound is 0.0"),
    ],
)
def test_an_agreement_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(config_for(4), **changes)


def test_entropy_and_ids_are_checked() -> None:
    with pytest.raises(ValueError, match="16 bytes of entropy came"):
        begin_client(config_for(4), 0, entropy=bytes(16))
    with pytest.raises(ValueError, match="a client's id"):
        begin_client(config_for(4), -1, entropy=bytes(32))


def test_no_secret_is_printed() -> None:
    client = at_the_end_of(SumPhase.SHARE).clients[0]
    assert repr(client.entropy) not in repr(client) and repr(client.shares[0][0]) not in repr(client)


def test_a_seal_opens_with_its_key_only() -> None:
    key, other = entropy_of(1), entropy_of(2)
    assert unseal(key, seal(key, b"two shares")) == b"two shares"
    with pytest.raises(ValueError, match="refused"):
        unseal(other, seal(key, b"two shares"))


def test_the_bytes_that_a_client_sends_are_those_of_its_messages() -> None:
    """Ids 8, keys and commitment 32 each, sealed shares 82, words 4, shares 33."""
    sent: dict[int, int] = {}

    def count(value: Any) -> int:
        if isinstance(value, bytes):
            return len(value)
        if isinstance(value, np.ndarray):
            return int(value.nbytes)
        if isinstance(value, tuple):
            return sum(map(count, value))
        return 8 if isinstance(value, int) else sum(count(getattr(value, name)) for name in value.__slots__)

    def watch(_: SumPhase, message: Any) -> None:
        if hasattr(message, "client_id"):
            sent[message.client_id] = sent.get(message.client_id, 0) + count(message)

    values = {i: np.zeros(5) for i in range(6)}
    run_secure_sum(
        values, config_for(6), entropy={i: entropy_of(i) for i in values}, lost={2: SumPhase.MASK}, watch=watch
    )
    assert {sent[i] for i in sent if i != 2} == {count_sent_bytes(6, 5)}
