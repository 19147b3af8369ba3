"""server.toml: what is written reads back, what cannot be or would break the agreement is refused."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hushrank.live.server.config import FILE, KEYS, ServerConfig, make_config, read_config, rules_of, write_config
from hushrank.live.server.rounds import RoundRules, Rounds
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.terms import guarantee_of

SOUND: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 2.0, "n_clients": 21}


def rules(agreed: dict[str, Any], **config: Any) -> RoundRules:
    return rules_of(make_agreement("library", n_features=3, **agreed), make_config(config))


def test_one_client_can_decide_whether_there_is_a_step_and_what_is_promised_says_so() -> None:
    """A round opens with half of those expected, and a server may ask for answers: silence is not hidden."""
    agreement = make_agreement("library", n_features=3, privacy="sound", noise_multiplier=2.0, n_clients=4)
    rounds = Rounds(rules_of(agreement, make_config({})))
    rounds.join(1, 0.0)
    assert not rounds.may_open(0.0)
    rounds.join(2, 0.0)
    assert rounds.may_open(0.0) and rules_of(agreement, make_config({"quorum": 3})).quorum == 3
    assert "Whether the client takes part, and when it is silent, is not hidden" in guarantee_of(agreement)


@pytest.mark.parametrize(
    "config",
    [ServerConfig(), ServerConfig(host='odd "name\\', port=1, cohort=3, keep_updates=True, max_norm=1e-9, quorum=2)],
)
def test_what_is_written_reads_back(tmp_path: Path, config: ServerConfig) -> None:
    (tmp_path / FILE).write_text(write_config(config, heading="a\nb"))
    assert read_config(tmp_path) == config


def test_every_key_is_explained_in_the_file() -> None:
    text = write_config(ServerConfig(), heading="x")
    assert all(f"{key} =" in text for key in KEYS) and text.count("\n# ") >= len(KEYS)
    assert set(tomllib.loads(text)) == {f.name for f in fields(ServerConfig) if f.default is not None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "no key of a server is called 'prot'; did you mean 'port'"),
        ("port = 70000", "port is 70000, must be from 0 to 65535"),
        ('port = "x"', "port is 'x', must be a whole number"),
        ("keep_updates = 1", "keep_updates is 1, must be true or false"),
        ("deadline_s = 0", "deadline_s is 0.0, must be > 0"),
        ("max_norm = inf", "max_norm is inf, must be a finite number"),
        ("pause_s = nan", "pause_s is nan, must be a finite number"),
        ("asleep_after_s = 60", "asleep_after_s is 60.0, must be above 60"),
        ('tls_key = "k"', "tls_certificate and tls_key belong together"),
        ("port =", "is not a TOML file"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_config(tmp_path)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not exist\. Create a federation with: hushrank server init"):
        read_config(tmp_path)


def test_rounds_follow_the_agreement_unless_said_otherwise() -> None:
    assert rules({}) == RoundRules(quorum=1, min_clients=1, cohort=None, rounds=100)
    paper = {"privacy": "paper", "epsilon": 1.2, "n_clients": 9}
    assert rules(paper) == RoundRules(9, 9, 9, rounds=100, counts_replays=True)
    assert rules(SOUND) == RoundRules(0, 11, 21, rounds=100, counts_replays=True)
    assert rules({**SOUND, "placement": "clients", "n_honest": 7}).quorum == 7
    assert rules({**SOUND, "noise_multiplier": 0}).quorum == 1
    assert rules({}, quorum=3, min_clients=4, cohort=5, deadline_s=6, pause_s=7, asleep_after_s=80) == RoundRules(
        3, 4, 5, 6, 7, 80, 100
    )


def test_a_server_cannot_break_what_was_agreed() -> None:
    with pytest.raises(ValueError, match="quorum is 6, but the agreement needs 7 answers"):
        rules({**SOUND, "placement": "clients", "n_honest": 7}, quorum=6)
    with pytest.raises(ValueError, match="quorum is 8, but the agreement needs 9 answers"):
        rules({"privacy": "paper", "epsilon": 1.2, "n_clients": 9}, quorum=8)
    with pytest.raises(ValueError, match="cohort is 5, but the agreement says n_clients=21"):
        rules(SOUND, cohort=5)


def test_a_config_is_a_value() -> None:
    assert replace(ServerConfig(), port=1) == make_config({"port": 1}) != ServerConfig()
