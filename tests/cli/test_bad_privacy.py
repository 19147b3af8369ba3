"""Every setting of privacy that cannot hold is one line that says why, exit code 1, and nothing written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hushrank.cli.main import main
from hushrank.privacy.ledger import Budget, open_ledger, reserve_round
from hushrank.privacy.renyi import Spend

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_methods.py"
FPDGD = ("run", "fpdgd", "--data", "tiny", "-q")
GAUSSIAN = ("privacy", "epsilon", "--mechanism", "gaussian")
SOUND = ("privacy=sound", "epsilon=1")
SHARED = (*SOUND, "noise_at=clients", "n_honest=5")


def settings(*pairs: str) -> tuple[str, ...]:
    return tuple(word for pair in pairs for word in ("--set", pair))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        # a budget of nothing
        ((*FPDGD, *settings("privacy=sound", "epsilon=0")), "epsilon is 0.0, must be above 0"),
        ((*FPDGD, *settings("privacy=paper", "epsilon=0", "sensitivity=3")), "epsilon is 0.0, must be above 0"),
        ((*FPDGD, *settings(*SOUND, "delta=0")), "delta is 0.0, must be above 0"),
        ((*FPDGD, *settings(*SOUND, "delta=1")), "delta is 1.0, must be above 0 and below 1"),
        ((*GAUSSIAN, "--epsilon", "0", "--rounds", "5"), "epsilon is 0.0, must be above 0"),
        ((*GAUSSIAN, "--noise", "1", "--rounds", "5", "--delta", "0"), "delta is 0.0, must be above 0"),
        (("privacy", "epsilon", "--epsilon", "0"), "epsilon is 0.0, must be > 0: at 0 every answer is a coin toss"),
        # fewer clients than the noise is divided among
        ((*FPDGD, *settings(*SHARED, "n_clients=4")), "n_honest is 5, must be from 1 to 4, the clients in a round"),
        ((*FPDGD, *settings(*SHARED, "cohort=3")), "n_honest is 5, must be from 1 to 3, the clients in a round"),
        (
            (*FPDGD, *settings(*SHARED, "cohort=3", "sampling=poisson")),
            "n_honest is 5, must be from 1 to 3, the clients in a round",
        ),
        ((*FPDGD, *settings(*SOUND, "noise_at=clients")), "n_honest None"),
        ((*FPDGD, *settings("secure_sum=true", "n_clients=1")), "secure_sum with 1 client in a round hides nothing"),
        # what cannot work together
        ((*FPDGD, *settings("privacy=paper", "epsilon=4.5", "cohort=10")), "all must take part in every round"),
        ((*FPDGD, *settings("privacy=paper", "epsilon=4.5", "dropout=0.1")), "all must take part in every round"),
        ((*FPDGD, *settings(*SOUND, "secure_sum=true")), "set noise_at=clients and n_honest, or leave secure_sum out"),
        (
            (*FPDGD, *settings("secure_sum=true", "attack=sign-flip", "n_malicious=1")),
            "attack=sign-flip is made from all updates of a round, and a secure sum shows none",
        ),
        (("run", "pdgd", *settings(*SOUND)), "recipe pdgd is central"),
        (("run", "pdgd", *settings("secure_sum=true")), "recipe pdgd is central"),
        (("run", "foltr-es", *settings(*SOUND)), "privacy=sound is for fpdgd"),
        (("run", "foltr-es", *settings("secure_sum=true")), "recipe foltr-es sends a seed and rewards, not updates"),
        (
            ("run", "foltr-es", *settings("attack=sign-flip", "n_malicious=1")),
            "attack=sign-flip replaces updates, but recipe foltr-es sends a seed and rewards",
        ),
        ((*FPDGD, *settings(*SOUND, "sampling=poisson")), "sampling=poisson needs cohort"),
        (
            (*GAUSSIAN, "--noise", "1", "--rounds", "5", "--sampling", "0.1", "--scheme", "fixed"),
            "only where each client is drawn independently",
        ),
        ((*FPDGD, *settings("sum_bound=2")), "sum_bound is for secure_sum without noise"),
    ],
)
def test_it_is_refused_with_the_reason(
    words: tuple[str, ...],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["hushrank", *words])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    assert left.value.code == 1 and said.out == ""
    assert reason in said.err and len(said.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (("secure_sum=true",), "needs every update by itself, and a secure sum shows only their sum"),
        (SOUND, "noise hides a client in a sum, and aggregation=coordinate-median is none"),
    ],
)
def test_a_rule_over_all_updates_is_refused_where_only_a_sum_is_safe(
    pairs: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    """In a process of its own, because a plugin stays."""
    rule = settings(*pairs, "aggregation=coordinate-median")
    command = [sys.executable, "-m", "hushrank", *FPDGD, "--plugin", str(EXAMPLE), *rule]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert reason in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def make_ledger(path: Path, rounds: int) -> Path:
    open_ledger(path, Budget("library search", "client 7", 1.0, 1e-5, Spend("gaussian", 1 / 30)))
    for round in range(rounds):
        reserve_round(path, round=round)
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [line.replace(b'"round":1', b'"round":9') for line in lines], "line 3: its hash does not fit"),
        (lambda lines: [line.replace(b'"ratio":0.0', b'"ratio":0.00') for line in lines], "its hash does not fit"),
        (lambda lines: lines[:2] + lines[3:], "line 3: it does not follow the line before"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], "line 2: it does not follow the line before"),
        (lambda lines: lines[:-2], "the server has seen 3 updates of this client: the file was rolled back"),
        (lambda lines: [b"{}\n", *lines], "line 1: this is no line of a ledger"),
    ],
    ids=["a round edited", "a price edited", "a line cut out", "lines swapped", "rolled back", "something else"],
)
def test_a_ledger_that_was_touched_is_refused(
    change: object,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = make_ledger(tmp_path / "spent.jsonl", 3)
    lines = path.read_bytes().splitlines(keepends=True)
    assert callable(change) and len(lines) == 4
    path.write_bytes(b"".join(change(lines)))
    monkeypatch.setattr(sys, "argv", ["hushrank", "privacy", "ledger", str(path), "--accepted", "3"])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    assert left.value.code == 1 and said.out == ""
    assert reason in said.err and len(said.err.splitlines()) == 1


def test_rounds_with_too_few_answers_are_lost_and_counted(tmp_path: Path) -> None:
    """Noise for all six, of whom each falls silent with probability .5: a round keeps its noise once in 64."""
    pairs = settings(*SOUND, "n_clients=6", "noise_at=clients", "n_honest=6", "dropout=0.5", "rounds=4", "folds=[1]")
    command = [sys.executable, "-m", "hushrank", *FPDGD, *pairs, "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds_lost"] >= 3
