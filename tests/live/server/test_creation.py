"""A federation is created whole or not at all, and its secrets are its owner's."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hushrank.cli.main import app
from hushrank.live.server import store
from hushrank.live.server.config import ServerConfig, read_config
from hushrank.live.server.creation import create_federation, lock_federation, make_tokens, read_keys
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.credentials import is_secret

AGREEMENT = make_agreement("library", n_features=3)


def test_a_federation_has_its_files_and_only_its_owner_reads_the_secrets(tmp_path: Path) -> None:
    hosts = ["::1", "example.org"]
    create_federation(tmp_path / "a" / "f", AGREEMENT, ServerConfig(port=1), n_tokens=3, tls_hosts=hosts)
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a" / "f").iterdir()}
    assert stat.S_IMODE((tmp_path / "a" / "f").stat().st_mode) == 0o700
    assert {name for name, mode in files.items() if mode == 0o600} == {"keys", "tokens.txt", store.FILE, "tls-key.pem"}
    assert set(files) - {"keys", "tokens.txt", store.FILE, "tls-key.pem"} == {"server.toml", "tls-certificate.pem"}
    config, keys = read_config(tmp_path / "a" / "f"), read_keys(tmp_path / "a" / "f")
    assert config.port == 1 and config.tls_key == "tls-key.pem"
    assert len(keys.digest_key) == 32 and is_secret(keys.operator_token)
    tokens = (tmp_path / "a" / "f" / "tokens.txt").read_text().split()
    assert len(set(tokens)) == 3 and all(map(is_secret, tokens))
    with store.open_store(tmp_path / "a" / "f" / store.FILE).begin() as connection:
        assert store.enrol_client(connection, store.hash_secret(tokens[0]), b"c", now=0.0).id == 1


def test_a_federation_is_created_once(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", AGREEMENT, ServerConfig(), n_tokens=1)
    before = (tmp_path / "f" / "tokens.txt").read_bytes()
    with pytest.raises(ValueError, match="f exists: a federation is created once"):
        create_federation(tmp_path / "f", AGREEMENT, ServerConfig(), n_tokens=1)
    assert (tmp_path / "f" / "tokens.txt").read_bytes() == before


def test_what_cannot_be_created_leaves_nothing_behind(tmp_path: Path) -> None:
    refused = make_agreement("x", n_features=3, privacy="sound", noise_multiplier=1.0, n_clients=2, placement="clients")
    with pytest.raises(ValueError, match="n_honest is None"):
        create_federation(tmp_path / "f", refused, ServerConfig(), n_tokens=1)
    with pytest.raises(ValueError, match="0 tokens for 30 days"):
        create_federation(tmp_path / "f", AGREEMENT, ServerConfig(), n_tokens=0)
    assert list(tmp_path.iterdir()) == []


def test_tokens_can_be_made_later_and_expire(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", AGREEMENT, ServerConfig(), n_tokens=1)
    (token,) = make_tokens(tmp_path / "f", 1, days=1e-9)
    with store.open_store(tmp_path / "f" / store.FILE).begin() as connection:
        expires = connection.exec_driver_sql("SELECT min(expires_at) FROM tokens").scalar_one()
        with pytest.raises(ValueError, match="this token cannot be used"):
            store.enrol_client(connection, store.hash_secret(token), b"c", now=expires)


def test_other_keys_are_refused(tmp_path: Path) -> None:
    for text in ("", "[]", '{"digest_key": "x", "operator_token": "y"}'):
        (tmp_path / "keys").write_text(text)
        with pytest.raises(ValueError, match="does not hold the server's keys"):
            read_keys(tmp_path)


def test_one_process_at_a_time_works_in_a_directory(tmp_path: Path) -> None:
    other = lock_federation(tmp_path)
    with lock_federation(tmp_path), pytest.raises(ValueError, match="another server is at work in"):
        other.__enter__()
    with lock_federation(tmp_path):
        pass


@pytest.mark.parametrize(
    ("words", "host", "said"),
    [
        (["--tls", "search.example.org"], "0.0.0.0", "https://0.0.0.0:8765, on every address of this machine"),
        (["--tls", "127.0.0.1", "--tls", "10.0.0.7"], "0.0.0.0", "https://0.0.0.0:8765, on every address"),
        (["--tls", "fd00::7"], "::", "https://[::]:8765, on every address of this machine"),
        (["--tls", "127.0.0.1"], "127.0.0.1", "https://127.0.0.1:8765, on this machine only"),
        (["--tls", "a.org", "--set", "host=10.0.0.7"], "10.0.0.7", "https://10.0.0.7:8765, on that address"),
        ([], "127.0.0.1", "http://127.0.0.1:8765, on this machine only"),
    ],
)
def test_with_a_certificate_for_others_it_listens_for_others_and_says_so(
    words: list[str], host: str, said: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, ["server", "init", str(tmp_path / "f"), "--features", "3", *words])
    assert done.exit_code == 0, done.output
    assert read_config(tmp_path / "f").host == host and said in done.output
