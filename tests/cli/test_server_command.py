"""`hushrank server`: init, token, status, export, and mistakes in one line. Running one is in tests/live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushrank.cli.main import app
from hushrank.live.wire.credentials import is_secret
from hushrank.rankers.named import read_ranker


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def fail(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code != 0
    return str(done.exception)


def read_status(directory: Path) -> Any:
    return json.loads(run("server", "status", directory, "--json"))


def test_init_founds_what_was_asked_for(tmp_path: Path) -> None:
    sets = [word for key in ("privacy=sound", "epsilon=8", "n_clients=20", "min_clients=7") for word in ("--set", key)]
    said = run("server", "init", tmp_path / "f", "--features", 5, "--tokens", 2, "--name", "town library", *sets)
    assert "town library" in said and "privacy: differential privacy of one client" in said
    status = read_status(tmp_path / "f")
    assert status["agreement"]["n_features"] == 5 and status["agreement"]["privacy"] == "sound"
    assert status["epsilon_total"] == pytest.approx(8, rel=1e-3) and status["epsilon_spent"] is None
    assert "min_clients = 7" in (tmp_path / "f" / "server.toml").read_text()
    assert len((tmp_path / "f" / "tokens.txt").read_text().split()) == 2
    said = run("server", "status", tmp_path / "f")
    assert "epsilon 0 of 8 (zero-out, delta 1e-05)" in said and "against readers of rankers, not the server" in said
    assert (status["adjacency"], status["against"]) == ("zero-out", "readers of rankers, not the server")


def test_a_seed_is_for_simulations_and_is_said(tmp_path: Path) -> None:
    assert "no privacy: seeded" in run("server", "init", tmp_path / "f", "--simulate", "--seed", 3)
    assert read_status(tmp_path / "f")["agreement"]["seed"] == 3
    sound = ("--set", "privacy=sound", "--set", "epsilon=8", "--set", "n_clients=2")
    said = run("server", "init", tmp_path / "s", "--simulate", "--seed", 3, *sound)
    said += run("server", "status", tmp_path / "s")
    assert said.count("its noise can be predicted and nothing is promised") == 2 and "epsilon" not in said
    status = read_status(tmp_path / "s")
    assert status["epsilon_total"] is status["epsilon_spent"] is status["adjacency"] is None
    assert "must be zero-out or replace-one" in fail(
        "server", "init", tmp_path / "a", *sound, "--set", "adjacency=add-remove"
    )
    assert "--seed and --simulate belong together" in fail("server", "init", tmp_path / "g", "--seed", 3)
    assert "--seed and --simulate belong together" in fail("server", "init", tmp_path / "g", "--simulate")


def test_mistakes_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    assert "no key of an agreement is called 'epsilom'" in fail("server", "init", tmp_path / "f", "--set", "epsilom=1")
    assert "privacy=sound needs epsilon" in fail("server", "init", tmp_path / "f", "--set", "privacy=sound")
    assert "does not exist. Create a federation with: hushrank server init" in fail("server", "status", tmp_path / "f")
    assert "does not exist. Create a federation with: hushrank server init" in fail("server", tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_none_takes_a_default_back(tmp_path: Path) -> None:
    run("server", "init", tmp_path / "f", "--set", "rounds=none")
    assert read_status(tmp_path / "f")["agreement"]["rounds"] is None


def test_further_tokens_are_printed(tmp_path: Path) -> None:
    run("server", "init", tmp_path / "f")
    tokens = run("server", "token", tmp_path / "f", "--count", 3).split()
    assert len(set(tokens)) == 3 and all(map(is_secret, tokens))


def test_the_newest_ranker_is_exported_for_the_other_commands(tmp_path: Path) -> None:
    run("server", "init", tmp_path / "f", "--features", 5, "--set", "ranker=mlp", "--set", "hidden=2")
    run("server", "export", tmp_path / "f", tmp_path / "out" / "r.safetensors")
    ranker, params, origin = read_ranker(tmp_path / "out" / "r.safetensors")
    assert ranker.n_features == 5 and len(params) == 5 * 2 + 2 + 2
    assert origin["federation"] == "f" and origin["rounds"] == 0


def test_init_sets_min_clients_and_says_when_one_client_is_enough(tmp_path: Path) -> None:
    words = ["server", "init", str(tmp_path / "f")]
    done = CliRunner().invoke(app, [*words, "--min-clients", "7"])
    assert "min_clients = 7" in (tmp_path / "f" / "server.toml").read_text()
    assert done.exit_code == 0 and "opens with the first client" not in done.stderr
    words[2] = str(tmp_path / "g")
    done = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(done.stdout)["directory"] == words[2]
    assert done.stderr.startswith("Round 1 opens with the first client that enrols. To wait for more, use init --min-c")
    assert "# min_clients =" in (tmp_path / "g" / "server.toml").read_text()
    words[2] = str(tmp_path / "h")
    done = CliRunner().invoke(app, [*words, "--set", "privacy=paper", "--set", "epsilon=4.5", "--set", "n_clients=9"])
    assert done.exit_code == 0 and "opens with the first client" not in done.stderr  # all nine must be awake
    assert "min_clients is given twice" in fail(*words[:2], "--min-clients", 2, "--set", "min_clients=3")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of another kind")
@pytest.mark.parametrize(("typed", "n_tokens", "written"), [("\n", 100, 5), ("\n", 6, 3), ("0\n12\n", 100, 12)])
def test_in_a_terminal_init_asks_how_many_clients_a_round_needs(
    tmp_path: Path, typed: str, n_tokens: int, written: int
) -> None:
    import pty

    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "hushrank", "server", "init", str(tmp_path / "f"), "--tokens", str(n_tokens)]
    os.write(mine, typed.encode())
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(mine)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert "How many clients must be awake before a round opens?" in done.stderr
    assert f"\nmin_clients = {written}\n" in (tmp_path / "f" / "server.toml").read_text()
