"""Agreements: one JSON, one digest; what cannot be is refused; what is left out follows the recipes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suspicious_rule import NAME, Suspicious

from hushrank.aggregation.named import RULES, CheckedRule
from hushrank.keys import key
from hushrank.live.wire.agreement import (
    FIRST_KEYS,
    KEYS,
    Agreement,
    as_json,
    canonical,
    describe_agreement,
    make_agreement,
    parse_agreement,
)
from hushrank.live.wire.terms import exchange_of, forget_method_of, rule_of
from hushrank.privacy.renyi import Spend, composed_epsilon

SOUND: dict[str, Any] = {"privacy": "sound", "epsilon": 8, "n_clients": 20}
PAPER: dict[str, Any] = {"privacy": "paper", "epsilon": 1.2, "n_clients": 20}
CHOICES: list[dict[str, Any]] = [{}, {"method": "foltr-es"}, SOUND, PAPER, {"seed": 7, "rounds": None}]


def make(**settings: Any) -> Agreement:
    return make_agreement("library", **{"n_features": 46, **settings})


@pytest.mark.parametrize("settings", CHOICES)
def test_an_agreement_travels_as_json_and_keeps_its_name(settings: dict[str, Any]) -> None:
    agreement = make(**settings)
    again = parse_agreement(json.loads(json.dumps(as_json(agreement))))
    assert again == agreement and again.digest == agreement.digest and len(agreement.digest) == 64


def test_the_digest_is_that_of_version_1() -> None:
    """Golden: clients compare it with what they stored on joining, so that these bytes may never change."""
    text = (
        '{"activation":"sigmoid","antithetic":null,"clip_norm":null,"delta":null,"epsilon":null,"hidden":64,'
        '"interactions":4,"k":10,"learning_rate":0.1,"mechanism":null,"method":"fpdgd","n_clients":null,'
        '"n_features":46,"n_honest":null,"name":"library","noise_multiplier":null,"p":null,"placement":null,'
        '"privacy":"none","ranker":"linear","reward":null,"rounds":null,"seed":null,"sensitivity":null,'
        '"server_fade":false,"server_optimiser":"sgd","server_rate":1.0,"sigma":null}'
    )
    assert canonical(Agreement("library", 46)) == text.encode()
    assert Agreement("library", 46).digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("file", "digest", "values"),
    [
        (
            "agreement-1-sound.json",
            "48e407a51dcefd5ef86ea9ff020e7eebd8afba1e15b37e65d2aa502cccfc6c8e",
            {"method": "fpdgd", "noise_multiplier": 2.0, "placement": "clients", "n_honest": 10, "rounds": 100},
        ),
        (
            "agreement-1-foltr-es.json",
            "505eaf49a3fb4e51f26a7293e084d4acf408ced64e0dae6dbfa533616e3938f0",
            {"method": "foltr-es", "ranker": "mlp", "hidden": 10, "p": 0.9, "antithetic": True, "seed": None},
        ),
    ],
)
def test_an_agreement_that_was_kept_is_read_and_has_its_digest(file: str, digest: str, values: dict[str, Any]) -> None:
    """Golden: servers and clients have stored such lines; one of a later version is kept beside these."""
    line = (Path(__file__).parent / "kept" / file).read_bytes().rstrip()
    agreement = parse_agreement(json.loads(line))
    assert as_json(agreement).items() >= {"name": "library search", "n_features": 46, **values}.items()
    assert canonical(agreement) == line and agreement.digest == digest


@pytest.mark.parametrize("seed", [0, 128, 2**64 - 1])
def test_every_seed_of_64_bits_is_taken(seed: int) -> None:
    assert make(seed=seed).seed == seed


@pytest.mark.parametrize("change", [{"name": "other"}, {"learning_rate": 0.2}, {"rounds": 7}, {"seed": 0}])
def test_whatever_changes_the_digest_does(change: dict[str, Any]) -> None:
    assert replace(make(), **change).digest != make().digest


def test_whole_numbers_and_fractions_make_one_digest() -> None:
    assert make(learning_rate=1).digest == make(learning_rate=1.0).digest


def test_what_is_left_out_is_as_in_the_recipes() -> None:
    dense, evolution = make(), make(method="foltr-es")
    assert (dense.interactions, dense.rounds, dense.server_rate, dense.privacy) == (4, 100, 1.0, "none")
    assert (evolution.hidden, evolution.activation, evolution.server_optimiser) == (10, "relu", "adam")
    assert (evolution.server_rate, evolution.p, evolution.reward, evolution.antithetic) == (0.001, 0.9, "MaxRR", True)
    assert make(method="foltr-es", privacy="none").p == 1.0
    assert make(**PAPER).sensitivity == 3.0
    sound = make(**SOUND)
    assert (sound.mechanism, sound.clip_norm, sound.delta, sound.placement) == ("gaussian", 0.1, 1e-5, "server")


@given(st.floats(0.1, 50), st.integers(1, 500), st.sampled_from(["gaussian", "laplace"]))
def test_a_wanted_epsilon_is_kept_with_little_to_spare(epsilon: float, rounds: int, mechanism: str) -> None:
    agreement = make(**{**SOUND, "epsilon": epsilon, "rounds": rounds, "mechanism": mechanism})
    noise = agreement.noise_multiplier
    assert agreement.epsilon is None and noise is not None

    def spent(noise: float) -> float:
        return composed_epsilon([Spend(mechanism, 1 / noise)] * rounds, delta=agreement.delta)

    assert spent(noise) <= epsilon < spent(noise * 0.999)


def test_nobody_agrees_on_what_cannot_be_kept_live() -> None:
    """Who is asked nobody can vouch for, and silence is seen."""
    with pytest.raises(ValueError, match="adjacency is 'add-remove', must be zero-out or replace-one: in a live"):
        make(**SOUND, adjacency="add-remove")
    values = as_json(make(**SOUND)) | {"adjacency": "add-remove", "essential": ["adjacency"]}
    with pytest.raises(ValueError, match="nobody can vouch for who is asked"):
        parse_agreement(values)


def test_another_relation_is_agreed_and_the_default_leaves_old_digests() -> None:
    agreement = make(**SOUND, adjacency="replace-one")
    assert as_json(agreement)["essential"] == ["adjacency"] and "adjacency" not in as_json(make(**SOUND))
    noise = [made.noise_multiplier for made in (agreement, make(**SOUND))]
    assert noise[0] is not None and noise[1] is not None and noise[0] == pytest.approx(2 * noise[1], rel=1e-5)


@pytest.mark.parametrize("settings", CHOICES)
def test_only_some_methods_count_clients_alike(settings: dict[str, Any]) -> None:
    agreement = make(**settings)
    assert exchange_of(agreement).protection.counts_alike == (agreement.is_evolution or agreement.privacy != "none")
    assert agreement.is_seeded == ("seed" in settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_feature": 4}, "no key of an agreement is called 'n_feature'; did you mean 'n_features'"),
        ({"method": "krum"}, "method is 'krum', must be one of fpdgd, foltr-es"),
        ({"privacy": "much"}, "privacy is 'much', must be one of none, paper, sound"),
        ({"learning_rate": 0}, "learning_rate is 0.0, must be > 0"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast', must be a number"),
        ({"learning_rate": float("inf")}, "learning_rate is inf, must be a finite number"),
        ({"rounds": 0}, "rounds is 0, must be at least 1"),
        ({"rounds": None, "server_fade": True}, "server_fade lets the rate fall to zero in the last round"),
        ({"rounds": True}, "rounds is True, must be a whole number"),
        ({"clip_norm": 1.0}, "clip_norm is no matter of fpdgd with privacy=none: leave it out"),
        ({**SOUND, "noise_multiplier": 1.0}, "privacy=sound needs epsilon .* or noise_multiplier"),
        ({**SOUND, "epsilon": -1}, "epsilon is -1.0, must be above 0"),
        ({**SOUND, "rounds": None}, "rounds is None, must be at least 1"),
        ({**SOUND, "n_clients": None}, "fpdgd with privacy=sound needs n_clients"),
        ({**SOUND, "placement": "clients", "n_honest": 21}, "n_honest is 21, more than the 20 clients expected"),
        ({**PAPER, "rounds": None}, "privacy=paper is accounted over all rounds: rounds must be a number"),
        ({**PAPER, "epsilon": 3}, "epsilon is 3.0; Delta was published for"),
        ({"privacy": "paper", "n_clients": 3}, "fpdgd with privacy=paper needs epsilon"),
        ({"method": "foltr-es", "interactions": 3}, "interactions is 3, must be even"),
        ({"method": "foltr-es", "reward": "nDCG"}, "reward is 'nDCG', must be one of MaxRR, LastRR, click-through"),
        ({"method": "foltr-es", **SOUND}, "privacy=sound is for fpdgd"),
        ({"method": "foltr-es", "privacy": "none", "p": 0.9}, "p is 0.9, but privacy=none tells every reward"),
        ({"seed": -1}, "seed is -1, must be a whole number from 0"),
        ({"seed": 2**64}, f"seed is {2**64}, must be a whole number from 0"),
        ({"n_features": 10**8}, "the ranker would have more than 10,000,000 parameters"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_a_federation_needs_a_name_that_can_be_read() -> None:
    for name in ("", "x" * 101, "a\nb"):
        with pytest.raises(ValueError, match="name must have 1 to 100 printable characters"):
            Agreement(name, 46)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), json_values, max_size=4))
def test_whatever_a_server_sends_is_an_agreement_or_refused(change: dict[str, Any]) -> None:
    sent = {**as_json(make()), **change}
    try:
        agreement = parse_agreement(sent)
    except ValueError:
        return
    assert parse_agreement(as_json(agreement)) == agreement


KEPT = json.loads((Path(__file__).parent / "kept" / "agreements.json").read_text(encoding="utf-8"))  # of version 0.1


@pytest.mark.parametrize("kept", KEPT, ids=[kept["agreement"]["name"] for kept in KEPT])
def test_agreements_that_clients_have_joined_under_keep_their_digests(kept: dict[str, Any]) -> None:
    agreement = parse_agreement(kept["agreement"])
    assert agreement.digest == kept["digest"] and as_json(agreement) == kept["agreement"]
    assert LaterAgreement(**kept["agreement"]).digest == kept["digest"]


@dataclass(frozen=True)
class LaterAgreement(Agreement):
    """Of a version to come, which has two more keys."""

    masks: str | None = key(None, "who hides whose updates", choices=("pairs",))
    theme: str = key("light", "of the status page", is_essential=False)


def test_a_later_key_counts_where_it_is_not_the_default() -> None:
    today, later = Agreement("x", 1), LaterAgreement("x", 1)
    assert later.digest == today.digest and as_json(later) == as_json(today)
    assert as_json(LaterAgreement("x", 1, theme="dark")) == {**as_json(today), "theme": "dark"}
    said = as_json(LaterAgreement("x", 1, masks="pairs", theme="dark"))
    assert said == {**as_json(today), "masks": "pairs", "theme": "dark", "essential": ["masks"]}


def test_a_client_of_today_keeps_what_it_does_not_know_and_ignores_it() -> None:
    later = LaterAgreement("x", 1, theme="dark")
    known = parse_agreement(json.loads(canonical(later)))
    assert known.digest == later.digest != Agreement("x", 1).digest
    assert replace(known, others=()) == Agreement("x", 1)
    assert parse_agreement(json.loads(json.dumps(as_json(known)))) == known


def test_a_client_of_today_refuses_what_it_may_not_ignore() -> None:
    said = as_json(LaterAgreement("x", 1, masks="pairs"))
    with pytest.raises(ValueError, match="has agreed on 'masks', which this version of hushrank does not know"):
        parse_agreement(said)
    assert parse_agreement({**said, "essential": ["rounds"]}).others == (("masks", '"pairs"'),)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text().filter(lambda name: name not in (*KEYS, "essential")), json_trees, max_size=3))
def test_whatever_a_later_version_adds_has_one_digest(added: dict[str, Any]) -> None:
    sent = {**as_json(make()), **added}
    agreement = parse_agreement(sent)
    assert as_json(agreement) == sent and hash(agreement) == hash(parse_agreement(sent))
    assert canonical(agreement) == json.dumps(sent, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"privacy": "newer-mode"}, "privacy is 'newer-mode', must be one of none, paper, sound"),
        ({"method": "newer-method"}, "method is 'newer-method', must be one of"),
        ({"ranker": "newer-ranker"}, "ranker is 'newer-ranker'"),
        ({"k": [5, 10]}, "k is .*, must be a whole number"),
    ],
)
def test_a_later_value_of_a_known_key_is_refused_with_a_hint_to_update(change: dict[str, Any], why: str) -> None:
    values = {**as_json(make_agreement("library", n_features=3)), **change}
    with pytest.raises(ValueError, match=f"{why}.* If the server is newer, update hushrank to join"):
        parse_agreement(values)


@pytest.mark.parametrize("essential", [None, "masks", 7, {"masks": 1}, [1]])
def test_essential_is_a_list_of_names(essential: object) -> None:
    with pytest.raises(ValueError, match="essential must be a list of names"):
        parse_agreement({**as_json(make()), "essential": essential})


def test_numbers_that_json_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        parse_agreement({**as_json(make()), "more": float("nan")})


def test_none_takes_a_default_back_where_it_is_no_word_of_its_own() -> None:
    assert make(rounds="none").rounds is None and make(method="foltr-es", privacy="none").privacy == "none"


@pytest.fixture
def _with_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, NAME, Suspicious)


@pytest.mark.usefixtures("_with_rule")
def test_a_rule_and_its_settings_are_part_of_the_agreement() -> None:
    plain, set_ = make(aggregation=NAME), make(aggregation=NAME, patience=5)
    assert as_json(plain) == {**as_json(make()), "aggregation": NAME}
    assert as_json(set_) == {**as_json(plain), "patience": 5} and set_.digest != plain.digest
    assert parse_agreement(json.loads(canonical(set_))) == set_
    rules = [rule_of(parse_agreement(as_json(each))) for each in (make(), plain, set_)]
    assert rules == [None, CheckedRule(NAME, Suspicious(2)), CheckedRule(NAME, Suspicious(5))]
    assert make(aggregation="mean").digest == make().digest
    assert make(aggregation=NAME, patience=2).digest == plain.digest


@pytest.mark.usefixtures("_with_rule")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"aggregation": "trust-me"}, "aggregation is 'trust-me'; available: mean, .*suspicious"),
        ({"aggregation": 3}, "aggregation is 3"),
        ({"patience": 3}, "no key of an agreement is called 'patience'"),
        ({"aggregation": NAME, "patience": 0}, "patience is 0, must be at least 1"),
        ({"aggregation": NAME, "patience": "long"}, "patience is 'long', must be a whole number"),
        ({"aggregation": NAME, "method": "foltr-es"}, "suspicious compares updates, but recipe foltr-es sends a seed"),
        ({"aggregation": NAME, **SOUND}, "noise hides a client in a sum, and aggregation=suspicious is none"),
        ({"aggregation": NAME, **SOUND, "placement": "clients", "n_honest": 9}, "noise hides a client in a sum"),
        ({"aggregation": NAME, **PAPER}, "noise hides a client in a sum, and aggregation=suspicious is none"),
    ],
)
def test_a_rule_is_refused_where_it_cannot_work(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make(**settings)


def test_a_client_joins_under_a_rule_that_only_its_server_knows() -> None:
    said = {**as_json(make()), "aggregation": "of-tomorrow", "gentleness": 0.5}
    agreement = parse_agreement(said)
    assert agreement.aggregation == "of-tomorrow" and as_json(agreement) == said
    with pytest.raises(ValueError, match="aggregation is 'of-tomorrow'; available: mean"):
        rule_of(agreement)
    with pytest.raises(ValueError, match=r"aggregation is .*, must have 1 to 40 printable characters"):
        parse_agreement({**said, "aggregation": "a\nb"})


def test_the_description_names_every_key_and_requires_the_first() -> None:
    said = describe_agreement()
    assert set(said["required"]) == set(as_json(make())) == FIRST_KEYS
    assert set(said["properties"]) == {*KEYS, "essential"}
    assert said["properties"]["rounds"]["type"] == ["integer", "null"]


@pytest.mark.parametrize("values", [None, [], 7, {}, {"name": "x"}])
def test_json_of_another_form_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match="this is no agreement of a federation"):
        parse_agreement(values)


RESTING = {"privacy": "sound", "n_clients": 9, "epsilon": 8, "mechanism": "correlated", "separation": 3}


def test_forgetting_is_agreed_and_older_clients_may_join() -> None:
    agreed = as_json(make_agreement("library", n_features=3, keep_every=10))
    assert agreed["keep_every"] == 10 and "essential" not in agreed and "forget_method" not in agreed
    for settings, method in (
        ({}, "fresh"),
        ({"keep_every": 10}, "eraser"),
        ({"keep_every": 10, "forget_method": "fresh"}, "fresh"),
        ({"method": "foltr-es"}, None),
        (RESTING, None),
    ):
        assert forget_method_of(make_agreement("library", n_features=3, **settings)) == method


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"forget_method": "eraser"}, "forget_method=eraser needs keep_every"),
        ({"keep_every": 0}, "keep_every is 0, must be at least 1"),
        ({"method": "foltr-es", "keep_every": 5}, "keep_every is no matter of foltr-es"),
        ({"keep_every": 5, **RESTING}, "a federation whose clients rest .separation. cannot forget a client"),
    ],
)
def test_what_cannot_forget_does_not_agree_to(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make_agreement("library", n_features=3, **settings)
