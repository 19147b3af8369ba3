"""A secure sum is the sum over those who answered, whoever falls silent, and single uploads look uniform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from sum_table import ENROLLED, SESSION, at_the_end_of, config_for, entropy_of, reveal

from benchmarks.lying_server import add_order_2
from hushrank.privacy.identities import Enrolment, identity_key, sign
from hushrank.privacy.masks import _LOW_ORDER, agree, expand_mask, is_sound_key, public_key, seal, unseal
from hushrank.privacy.secure_client import (
    begin_client,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import (
    ADVERT,
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
    count_sent_bytes,
    describe_advert,
    name_pair,
    name_session,
    pair_masks,
)
from hushrank.privacy.secure_server import (
    add_advert,
    add_masked,
    add_revealed,
    add_shares,
    add_signed,
    begin_server,
    close_adverts,
    finish_sum,
)
from hushrank.privacy.secure_sum import run_secure_sum
from hushrank.types import Array


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
    [
        (SumPhase.ADVERTISE, False),
        (SumPhase.SHARE, False),
        (SumPhase.MASK, False),
        (SumPhase.SIGN, True),
        (SumPhase.REVEAL, True),
    ],
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


def test_a_client_tells_one_share_of_each_other_client_and_never_the_second() -> None:
    table = at_the_end_of(SumPhase.SIGN, silent=(2,))
    told = {i: reveal(table, i)[1] for i in (0, 1, 3)}
    for revealed in told.values():
        assert [i for i, _ in revealed.mask_shares] == [0, 1, 3] and [i for i, _ in revealed.key_shares] == [2]
        held = table.clients[revealed.client_id].shares
        assert dict(revealed.mask_shares) == {i: held[i][0] for i in (0, 1, 3)}
        assert dict(revealed.key_shares) == {2: held[2][1]}


def test_a_second_request_is_refused_and_everything_forgotten() -> None:
    table = at_the_end_of(SumPhase.SIGN)
    after, _ = reveal(table, 0)
    with pytest.raises(ValueError, match="the sum is in phase done, a message of phase reveal came"):
        reveal_shares(after, table.said, enrolment=ENROLLED[0])
    assert not after.shares and not after.entropy


@pytest.mark.parametrize(
    ("survivors", "message"),
    [
        ((0, 1), "2 clients survived, at least 3 must: nothing signed"),
        ((1, 2, 3), "this one among them"),
        ((0, 1, 1, 2), "not distinct"),
        ((0, 2, 1), "not distinct"),
        ((0, 1, 9), "not distinct clients that shared their secrets"),
    ],
)
def test_a_client_refuses_survivors_that_cannot_be(survivors: tuple[int, ...], message: str) -> None:
    table = at_the_end_of(SumPhase.MASK)
    with pytest.raises(ValueError, match=message):
        sign_survivors(table.clients[0], replace(table.said[0], client_ids=survivors), enrolment=ENROLLED[0])


def test_a_client_signs_one_set_of_survivors_only() -> None:
    table = at_the_end_of(SumPhase.MASK)
    after, _ = sign_survivors(table.clients[0], table.said[0], enrolment=ENROLLED[0])
    with pytest.raises(ValueError, match="the sum is in phase reveal, a message of phase sign came"):
        sign_survivors(after, replace(table.said[0], client_ids=(0, 1, 2)), enrolment=ENROLLED[0])


def test_a_survivor_that_was_told_of_other_sharers_is_noticed() -> None:
    short = at_the_end_of(SumPhase.SHARE)
    told = Delivery((0, 1, 3), tuple(pair for pair in short.said[3].sealed if pair[0] != 2))
    _, lonely = mask_values(short.clients[3], told, np.zeros(5), enrolment=ENROLLED[3])
    table = at_the_end_of(SumPhase.MASK)
    uploads = tuple((i, lonely.signature if i == 3 else s) for i, s in table.said[0].uploads)
    with pytest.raises(ValueError, match="client 3 did not sign that it has the same roster and sharers"):
        sign_survivors(table.clients[0], replace(table.said[0], uploads=uploads), enrolment=ENROLLED[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pairs: pairs[:2], "2 clients signed, the threshold is 3: nothing revealed"),
        (lambda pairs: (*pairs[:2], pairs[1]), "the signatures do not come from different survivors"),
        (lambda pairs: (*pairs[:2], (2, pairs[0][1])), "client 2 did not sign the same survivors: nothing revealed"),
        (lambda pairs: (*pairs[:2], (9, pairs[2][1])), "the signatures do not come from different survivors"),
    ],
)
def test_a_client_reveals_on_enough_signatures_only(change: Callable[[Any], Any], message: str) -> None:
    table = at_the_end_of(SumPhase.SIGN)
    few = Confirmation(tuple(change(table.said.signatures)))
    with pytest.raises(ValueError, match=message):
        reveal_shares(table.clients[0], few, enrolment=ENROLLED[0])


def test_signatures_about_other_survivors_do_not_count() -> None:
    all_four, three = at_the_end_of(SumPhase.SIGN), at_the_end_of(SumPhase.SIGN, silent=(3,))
    with pytest.raises(ValueError, match="did not sign the same survivors: nothing revealed"):
        reveal_shares(all_four.clients[0], three.said, enrolment=ENROLLED[0])


def change_delivery(delivery: Delivery, change: Callable[[list[tuple[int, bytes]]], None]) -> Delivery:
    sealed = list(delivery.sealed)
    change(sealed)
    return replace(delivery, sealed=tuple(sealed))


def flip_a_bit(sealed: list[tuple[int, bytes]]) -> None:
    sealed[0] = (sealed[0][0], bytes([sealed[0][1][0] ^ 1]) + sealed[0][1][1:])


def swap_writers(sealed: list[tuple[int, bytes]]) -> None:
    sealed[0], sealed[1] = (sealed[0][0], sealed[1][1]), (sealed[1][0], sealed[0][1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flip_a_bit, "client 1: a sealed share was changed, replayed or meant for somebody else"),
        (swap_writers, "client 1: a sealed share was changed, replayed or meant for somebody else"),
        (lambda sealed: sealed.append(sealed[0]), "different other clients"),
        (lambda sealed: sealed.append((0, sealed[0][1])), "different other clients"),
        (lambda sealed: sealed.append((7, sealed[0][1])), "different other clients"),
        (lambda sealed: sealed.pop(), "leaves out shares of a client that is said to have shared: nothing sent"),
    ],
)
def test_a_tampered_delivery_is_refused(change: Callable[[list[tuple[int, bytes]]], None], message: str) -> None:
    table = at_the_end_of(SumPhase.SHARE)
    with pytest.raises(ValueError, match=message):
        mask_values(table.clients[0], change_delivery(table.said[0], change), np.zeros(5), enrolment=ENROLLED[0])


@pytest.mark.parametrize(
    ("sharers", "message"),
    [
        ((0, 1), "2 clients shared their secrets, at least 3 must: nothing sent"),
        ((1, 2, 3), "this one among them"),
        ((0, 2, 1), "by ascending id"),
        ((0, 1, 9), "different clients of the roster"),
    ],
)
def test_sharers_that_cannot_be_are_refused(sharers: tuple[int, ...], message: str) -> None:
    table = at_the_end_of(SumPhase.SHARE)
    sealed = tuple(pair for pair in table.said[0].sealed if pair[0] in sharers)
    with pytest.raises(ValueError, match=message):
        mask_values(table.clients[0], Delivery(sharers, sealed), np.zeros(5), enrolment=ENROLLED[0])


def test_shares_of_another_session_or_for_another_reader_are_refused() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    other = replace(table.clients[0], digest=bytes(32))
    for client, delivery in ((other, table.said[0]), (table.clients[0], table.said[1])):
        renamed = replace(delivery, sealed=tuple((w or 1, sealed) for w, sealed in delivery.sealed))
        with pytest.raises(ValueError, match="changed, replayed or meant for somebody else"):
            mask_values(client, renamed, np.zeros(5), enrolment=ENROLLED[0])


def test_values_that_would_wrap_or_have_another_shape_are_refused() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    with pytest.raises(ValueError, match="1 of 5 values are beyond the bound of 1"):
        mask_values(table.clients[0], table.said[0], np.array([0, 0, 0, 0, 1.5]), enrolment=ENROLLED[0])
    with pytest.raises(ValueError, match="values have shape"):
        mask_values(table.clients[0], table.said[0], np.zeros(4), enrolment=ENROLLED[0])


def test_every_second_message_is_refused() -> None:
    adverts = at_the_end_of(SumPhase.ADVERTISE)
    server = replace(adverts.server, phase=SumPhase.ADVERTISE)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_advert(server, adverts.sent[1])
    _, shares = share_secrets(adverts.clients[1], adverts.said, enrolment=ENROLLED[1])
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_shares(add_shares(adverts.server, shares), shares)
    table = at_the_end_of(SumPhase.MASK)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_masked(replace(table.server, phase=SumPhase.MASK), table.sent[1])
    signed = at_the_end_of(SumPhase.SIGN)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_signed(replace(signed.server, phase=SumPhase.SIGN), signed.sent[1])
    _, revealed = reveal(signed, 1)
    with pytest.raises(ValueError, match="client 1 answered this phase already"):
        add_revealed(add_revealed(signed.server, revealed), revealed)


def test_a_late_message_is_refused() -> None:
    table = at_the_end_of(SumPhase.MASK, silent=(2,))
    before = at_the_end_of(SumPhase.SHARE)
    _, late = mask_values(before.clients[2], before.said[2], np.zeros(5), enrolment=ENROLLED[2])
    with pytest.raises(ValueError, match="the sum is in phase sign, a message of phase mask came"):
        add_masked(table.server, late)


@pytest.mark.parametrize("kind", ["mask_shares", "key_shares"])
def test_a_wrong_share_gives_an_error_and_no_wrong_sum(kind: str) -> None:
    table = at_the_end_of(SumPhase.SIGN, silent=(2,))
    server = table.server
    for i in (0, 1, 3):
        _, revealed = reveal(table, i)
        if i == 1:
            (owner, share), *rest = getattr(revealed, kind)
            wrong = share[:1] + bytes([share[1] ^ 1]) + share[2:]  # Why the second byte: X25519 ignores three bits
            changes: dict[str, Any] = {kind: ((owner, wrong), *rest)}
            revealed = replace(revealed, **changes)
        server = add_revealed(server, revealed)
    with pytest.raises(ValueError, match=r"do not (fit what it advertised|belong together)"):
        finish_sum(server)


def test_the_server_refuses_strangers_and_other_shapes() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    with pytest.raises(ValueError, match="client 9 did not share its secrets"):
        add_masked(table.server, MaskedValues(9, np.zeros(5, np.uint32), b""))
    for words in (np.zeros(4, np.uint32), np.zeros(5)):
        with pytest.raises(ValueError, match="not 5 32-bit words"):
            add_masked(table.server, MaskedValues(1, words, b""))
    with pytest.raises(ValueError, match="the upload of client 1 is not signed by its identity"):
        add_masked(table.server, MaskedValues(1, np.zeros(5, np.uint32), bytes(64)))
    with pytest.raises(ValueError, match="client 9 is no survivor"):
        add_signed(at_the_end_of(SumPhase.MASK).server, SignedSurvivors(9, bytes(64)))
    end = at_the_end_of(SumPhase.SIGN)
    for i, message in ((9, "from a survivor that signed"), (0, "of each survivor's mask")):
        with pytest.raises(ValueError, match=message):
            add_revealed(end.server, Revealed(i, (), ()))
    start = at_the_end_of(SumPhase.ADVERTISE)
    with pytest.raises(ValueError, match="one for each of 3 others"):
        add_shares(start.server, SealedShares(0, ((1, b""),)))


def test_a_roster_that_cannot_be_is_refused() -> None:
    table = at_the_end_of(SumPhase.ADVERTISE)
    adverts, client = table.said.adverts, table.clients[0]
    twin = replace(adverts[3], sealing_key=adverts[1].sealing_key)
    forged = replace(adverts[0], mask_key=adverts[1].mask_key)
    for roster, message in (
        (adverts[::-1], "ascending id"),
        (adverts[1:], "this one among them"),
        ((forged, *adverts[1:]), "this one among them as it wrote"),
        (adverts[:2], "2 clients are on the roster"),
        ((*adverts[:3], twin), "two keys of the roster are the same"),
        (
            (*adverts[:3], replace(adverts[3], sealing_key=public_key(entropy_of(9)))),
            "client 3 are not signed by an identity",
        ),
        ((*adverts[:3], replace(adverts[3], sealing_key=bytes(31))), "has not 32 or 64 bytes"),
        ((*adverts[:3], replace(adverts[3], client_id=9)), "whose identity this client does not know"),
    ):
        with pytest.raises(ValueError, match=message):
            share_secrets(client, Roster(roster), enrolment=ENROLLED[0])


def sign_with(advert: Advert, **changes: Any) -> Advert:
    """The advert with other fields, signed by its client all the same."""
    changed = replace(advert, **changes)
    secret = ENROLLED[advert.client_id].secret
    return replace(changed, signature=sign(secret, ADVERT, describe_advert(config_for(4), changed)))


def improper_keys() -> list[bytes]:
    """Five numbers with which X25519 agrees on zeros, and second spellings of a key that is one."""
    prime = 2**255 - 19
    numbers = [*_LOW_ORDER, 9 + prime, prime, 9 + 2**255]
    return [number.to_bytes(32, "little") for number in numbers]


@pytest.mark.parametrize("key", improper_keys(), ids=bytes.hex)
@pytest.mark.parametrize("kind", ["sealing_key", "mask_key"])
def test_a_key_that_is_none_is_refused_by_all_though_it_is_signed(kind: str, key: bytes) -> None:
    table = at_the_end_of(SumPhase.ADVERTISE)
    none = sign_with(table.said.adverts[3], **{kind: key})
    with pytest.raises(ValueError, match="a public key of client 3 is malformed"):
        share_secrets(table.clients[0], Roster((*table.said.adverts[:3], none)), enrolment=ENROLLED[0])
    with pytest.raises(ValueError, match="a public key of client 3 is malformed"):
        add_advert(begin_server(config_for(4), ENROLLED[0].identities), none)


def test_keys_of_low_order_are_those_with_which_nothing_can_be_agreed() -> None:
    assert len(_LOW_ORDER) == 5
    for number in _LOW_ORDER:
        with pytest.raises(ValueError, match="malformed"):
            agree(entropy_of(1), [number.to_bytes(32, "little")])
    assert is_sound_key(public_key(entropy_of(1)))


@pytest.mark.parametrize("changes", [{"mask_key": bytes(32)}, {"sealing_key": "mask_key"}])
def test_a_sum_goes_on_without_a_client_whose_keys_are_none(changes: dict[str, Any]) -> None:
    """A key of low order, or one key for two purposes: refused at the door, so that nobody else has to refuse."""
    table = at_the_end_of(SumPhase.ADVERTISE)
    adverts, server = table.said.adverts, begin_server(config_for(4), ENROLLED[0].identities)
    keys = {kind: getattr(adverts[0], key) if isinstance(key, str) else key for kind, key in changes.items()}
    with pytest.raises(ValueError, match=r"a public key of client 0 (is malformed|was advertised before)"):
        add_advert(server, sign_with(adverts[0], **keys))
    for advert in adverts[1:]:
        server = add_advert(server, advert)
    _, roster = close_adverts(server)
    for i in (1, 2, 3):
        _, shares = share_secrets(table.clients[i], roster, enrolment=ENROLLED[i])
        assert len(shares.sealed) == 2


def test_the_masks_of_two_pairs_differ_though_their_keys_agree_on_the_same_secret() -> None:
    adverts, secret, view = at_the_end_of(SumPhase.ADVERTISE).said.adverts, entropy_of(8), bytes(32)
    copy = replace(adverts[2], mask_key=add_order_2(adverts[1].mask_key))
    assert agree(secret, [copy.mask_key]) == agree(secret, [adverts[1].mask_key])
    masks = list(pair_masks(secret, adverts[0], [adverts[1], copy], view, 4))
    assert masks[0].tolist() != masks[1].tolist()


def test_a_pair_has_one_name_whoever_says_it() -> None:
    one, other = at_the_end_of(SumPhase.ADVERTISE).said.adverts[:2]
    assert name_pair(one, other, bytes(32)) == name_pair(other, one, bytes(32))
    renamed = (replace(other, client_id=9), replace(other, mask_key=bytes(32)))
    assert len({name_pair(one, each, bytes(32)) for each in (other, *renamed)}) == 3


def test_keys_of_another_session_or_somebody_elses_are_refused() -> None:
    table = at_the_end_of(SumPhase.ADVERTISE)
    other = replace(config_for(4), session=name_session(bytes(32), 8, bytes(32)))
    _, replayed = begin_client(other, 3, enrolment=ENROLLED[3], entropy=entropy_of(3))
    _, forged = begin_client(config_for(4), 3, enrolment=ENROLLED[2], entropy=entropy_of(9))
    for advert in (replayed, forged):
        with pytest.raises(ValueError, match="the keys of client 3 are not signed by an identity"):
            share_secrets(table.clients[0], Roster((*table.said.adverts[:3], advert)), enrolment=ENROLLED[0])
        with pytest.raises(ValueError, match="the advert of client 3 is not signed by its identity"):
            add_advert(begin_server(config_for(4), ENROLLED[0].identities), advert)


def test_one_identity_does_not_count_as_two() -> None:
    key = identity_key(entropy_of(1))
    with pytest.raises(ValueError, match="two clients have the same identity key"):
        Enrolment(entropy_of(1), {1: key, 2: key})


def test_a_session_names_agreement_round_and_ranker() -> None:
    names = {name_session(bytes([a]) * 32, r, bytes([k]) * 32) for a in (0, 1) for r in (1, 2) for k in (0, 1)}
    assert len(names) == 8 and {len(name) for name in names} == {32}
    with pytest.raises(ValueError, match="32 bytes each"):
        name_session(b"", 1, bytes(32))


def test_too_many_or_malformed_adverts_are_refused() -> None:
    table = at_the_end_of(SumPhase.ADVERTISE)
    with pytest.raises(ValueError, match="4 clients advertised already"):
        add_advert(replace(table.server, phase=SumPhase.ADVERTISE), replace(table.sent[0], client_id=9))
    with pytest.raises(ValueError, match="has not 32 or 64 bytes"):
        add_advert(begin_server(config_for(4), {}), replace(table.sent[0], mask_key=b""))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": 2}, "threshold is 2 of 4 clients, must be at least 2, more than two thirds"),
        ({"n_clients": 100, "threshold": 61}, "threshold is 61 of 100 clients"),
        ({"n_clients": 100, "threshold": 66}, "threshold is 66 of 100 clients"),
        ({"least_honest": 4}, "least_honest is 4, must be from 1 to 3: a third of 4 clients may collude"),
        ({"least_honest": 0}, "least_honest is 0"),
        ({"silent_share": 0.4}, "silent_share is 0.4"),
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
        begin_client(config_for(4), 0, enrolment=ENROLLED[0], entropy=bytes(16))
    with pytest.raises(ValueError, match="a client's id"):
        begin_client(config_for(4), -1, enrolment=ENROLLED[0], entropy=bytes(32))


def test_the_least_roster_holds_the_honest_clients_and_all_that_may_collude() -> None:
    usual = config_for(9)
    assert (usual.threshold, usual.n_colluding, usual.honest_in_sum, usual.least_roster) == (7, 3, 4, 7)
    config = replace(usual, least_honest=5)
    assert (config.threshold, config.n_colluding, config.least_roster) == (7, 3, 8)
    values = some_values(9)
    with pytest.raises(ValueError, match="7 clients sent masked values, the threshold is 8"):
        run(values, config, lost={0: SumPhase.MASK, 40: SumPhase.MASK})
    check_sum(run(values, config, lost={0: SumPhase.MASK}), values, config)


def test_no_secret_is_printed() -> None:
    client = at_the_end_of(SumPhase.SHARE).clients[0]
    assert repr(client.entropy) not in repr(client) and repr(client.shares[0][0]) not in repr(client)


def test_a_seal_opens_with_its_key_only() -> None:
    key, other = entropy_of(1), entropy_of(2)
    assert unseal(key, seal(key, b"two shares")) == b"two shares"
    with pytest.raises(ValueError, match="refused"):
        unseal(other, seal(key, b"two shares"))


def test_the_bytes_that_a_client_sends_are_those_of_its_messages() -> None:
    """Ids 8, keys and commitment 32 each, signatures 64, sealed shares 82, words 4, shares 33."""
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
