"""What `run` and `report` leave on stderr: the engine, warnings, where the page is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RAW = "".join(f"{i % 3 % 2} qid:{i // 5} 1:{i % 7 / 1000} 2:{i % 5 * 1000} 3:7\n" for i in range(40))
SMALL = ("--set", "n_clients=4", "--set", "rounds=2", "--seed", "7")


def hushrank(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hushrank", *words]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, check=True
    )


def test_the_engine_and_warnings_are_said_and_quiet_keeps_the_warnings(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for role in ("train", "vali", "test"):
        (tmp_path / "raw" / f"{role}.txt").write_text(RAW)
    lines = hushrank("run", "fpdgd", "--data", "raw", *SMALL, "--out", "a", cwd=tmp_path).stderr.splitlines()
    assert "fpdgd: engine numba: the fastest for this ranker on a processor" in lines
    assert any(line.startswith("fpdgd: warning: Features have very different scales") for line in lines)
    assert any(line.startswith("fpdgd: note: 1 of 3 features has") for line in lines)
    quiet = hushrank("run", "fpdgd", "--data", "raw", *SMALL, "--out", "b", "--quiet", cwd=tmp_path).stderr
    assert "very different scales" in quiet and "engine" not in quiet and "note:" not in quiet

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = hushrank("report", str(tmp_path / "a"), str(tmp_path / "b"), cwd=elsewhere).stderr
    assert f"Report: {tmp_path / 'report.html'}" in said and "a: warning: Features have" in said
    assert (tmp_path / "report.html").is_file() and list(elsewhere.iterdir()) == []
