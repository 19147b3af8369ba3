"""docs/performance.md follows from the measurements beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shown_blocks import ROOT

from benchmarks.rules import COPIES, NAIVE, draw_copies, measure, name_row

DATA = ROOT / "docs" / "benchmarks"


def run_page(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.page", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the measurements."""
    return Path(shutil.copytree(DATA, tmp_path / "benchmarks"))


def test_the_performance_page_follows_from_its_measurements() -> None:
    done = run_page("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_stale_when_a_number_changes(data: Path) -> None:
    found = json.loads((data / "processor.json").read_text())
    found["benchmarks"][0]["interactions_per_cpu_second"] += 1
    (data / "processor.json").write_text(json.dumps(found))
    done = run_page("--check", "--data", data)
    assert done.returncode == 1 and "performance.md is stale" in done.stdout


def test_a_gpu_has_its_tables_and_may_be_missing(data: Path, tmp_path: Path) -> None:
    (data / "h200.json").unlink(missing_ok=True)
    assert run_page("--data", data, "--page", tmp_path / "without.md").returncode == 0
    assert "No measurement on a GPU" in (tmp_path / "without.md").read_text()
    row = json.loads((data / "processor.json").read_text())["benchmarks"][0]
    row |= {"interactions_per_second": 43_000_000, "device": "gpu (NVIDIA H200)", "engine": "xla"}
    (data / "h200.json").write_text(json.dumps({"benchmarks": [row]}))
    assert run_page("--data", data, "--page", tmp_path / "with.md").returncode == 0
    text = (tmp_path / "with.md").read_text()
    # 43 million x 69623 / 1692 documents x 46 features x 4 bytes = 326 GB per second, of 4.3 TB
    assert "gpu (NVIDIA H200)" in text and "| 43,000,000 | 568 million | 7.6 % |" in text


def test_the_table_of_sizes_keeps_its_promise() -> None:
    rows = json.loads((DATA / "scale.json").read_text())["scale"]
    assert {row["n_clients"] for row in rows} == {10**3, 10**4, 10**5, 10**6}
    assert max(row["peak_memory_mb"] for row in rows) < 4000


def test_the_page_on_aggregation_has_the_measured_speed_of_a_rule() -> None:
    rows = json.loads((ROOT / "docs" / "benchmarks" / "gathered.json").read_text(encoding="utf-8"))["benchmarks"]
    text = (ROOT / "docs" / "aggregation.md").read_text(encoding="utf-8")
    found = [row["interactions_per_cpu_second"] for row in rows if row["rule"] == "median"]
    assert len(found) == 2 and all(f"{speed:,}" in text for speed in found)


def test_rules_are_measured_beside_a_naive_version_and_hold_no_cube() -> None:
    rows = json.loads((DATA / "rules.json").read_text(encoding="utf-8"))["rules"]
    assert {name_row(row) for row in rows} == {*NAIVE, COPIES} and all(row["gap_to_naive"] < 1e-5 for row in rows)
    small = {row["rule"]: row["cpu_seconds"] for row in rows if row["n_clients"] == 10}
    assert all(small[rule] < 100e-6 for rule in ("krum", "multi-krum", "trimmed-mean", "median"))
    large = {row["rule"]: row["peak_bytes"] for row in rows if row["n_clients"] == 10_000}
    assert max(large["krum"], large["multi-krum"]) < 4 * 10_000**2  # not even all distances
    assert max(large.values()) < 12 * 10_000**2  # 1.2 GB; [n, n, p] would be 400 GB


def test_the_worst_case_of_copies_is_one() -> None:
    """Each is near the copied update and near no other copy; together they are no majority, which would be forgiven."""
    x = draw_copies(40, 200).updates[-19:].astype(float)
    x /= np.linalg.norm(x, axis=1)[:, None]
    cosines = x @ x.T - np.eye(19)
    assert (cosines[-1, :-1] > 0.95).all() and (cosines[:-1, :-1] < 0.95).all()
    assert measure(COPIES, 10, 5)["case"] == "copies" and "case" not in measure("watchful", 10, 5)
