"""A sweep killed in the middle and resumed: the same table."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GRID = """
recipe = "fpdgd"
data = "tiny"
rounds = 150
n_clients = 30
[grid]
seed = [0, 1, 2, 3, 4]
server_rate = [1, 3, 10]
server_optimiser = ["sgd", "momentum"]
learning_rate = [0.05, 0.1]
"""


def start(*words: str, cwd: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hushrank", "sweep", *words, "--select", "vali", "-q"]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(*words: str, cwd: Path) -> None:
    process = start(*words, cwd=cwd)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors


def count_finished(sweep: Path) -> int:
    return len(list(sweep.glob("*/result.json")))


@pytest.mark.slow
def test_a_sweep_of_sixty_runs_killed_again_and_again_gives_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    (tmp_path / "grid.toml").write_text(GRID)
    finish("../grid.toml", "--out", "sweep", cwd=tmp_path / "whole")
    moments, sweep = random.Random(5), tmp_path / "killed" / "sweep"
    killed_at = []
    for goal in (5, 20, 40, 55):
        process = start("../grid.toml", "--out", "sweep", "--resume", cwd=tmp_path / "killed")
        while process.poll() is None and count_finished(sweep) < goal:
            time.sleep(0.05)
        time.sleep(moments.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed_at.append(count_finished(sweep))
    assert killed_at[0] < 60 and killed_at == sorted(killed_at)
    finish("--out", "sweep", "--resume", cwd=tmp_path / "killed")  # the grid is known by now
    for name in ("table.json", "report.html"):
        assert (sweep / name).read_bytes() == (tmp_path / "whole" / "sweep" / name).read_bytes()
