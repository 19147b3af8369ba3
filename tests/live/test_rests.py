"""Correlated noise in a federation of real processes: clients rest, a server that was killed goes on, budgets hold."""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from pathlib import Path

from live_processes import create_federation, run, serving

from hushrank.live.device.account import LEDGER
from hushrank.live.server import store
from hushrank.live.server.status import read_status
from hushrank.privacy.ledger import read_ledger

SEPARATION, ROUNDS = 3, 9


def test_clients_rest_and_the_budget_is_that_of_their_answers(tmp_path: Path) -> None:
    sound = {"privacy": "sound", "mechanism": "correlated", "epsilon": 8, "n_clients": 2, "separation": SEPARATION}
    create_federation(tmp_path / "f", "--features", 8, rounds=ROUNDS, min_clients=6, **sound)
    with serving(tmp_path / "f") as server:
        people = ("--simulate", "tiny", "--users", "6", "--tokens", str(tmp_path / "f" / "tokens.txt"))
        run("client", server.url, *people, "--home", tmp_path / "homes")
        status = run("server", "status", tmp_path / "f")
    assert f"of which it answers at most one in {SEPARATION}, 3 in all" in status
    said = read_status(tmp_path / "f")
    assert said["state"] == "finished" and said["epsilon_spent"] <= said["epsilon_total"] + 1e-9  # 9 rounds, 3 answers
    ledgers = [read_ledger(path) for path in sorted((tmp_path / "homes").rglob(LEDGER))]
    assert len(ledgers) == 6
    for ledger in ledgers:
        rounds = [entry.round or 0 for entry in ledger.entries]
        assert rounds and min((b - a for a, b in pairwise(rounds)), default=SEPARATION) >= SEPARATION
        assert ledger.epsilon_spent <= ledger.budget.epsilon <= 8.0 + 1e-6
    with sqlite3.connect(tmp_path / "f" / store.FILE) as file:
        assert file.execute("SELECT COUNT(*) FROM rounds WHERE state = 'closed'").fetchone() == (ROUNDS,)
    file.close()
