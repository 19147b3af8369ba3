"""The wheel that people install holds everything it needs, and runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_installs_and_trains(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=600)
    wheel = next(tmp_path.glob("hushrank-*.whl"))
    place = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=600)
    environment = {**os.environ, "PYTHONPATH": str(place)}
    where = [sys.executable, "-c", "import hushrank; print(hushrank.__file__)"]
    found = subprocess.run(where, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(place)
    words = [
        "run",
        "fpdgd",
        "--data",
        "tiny",
        "--set",
        "n_clients=6",
        "--set",
        "interactions=2",
        "--set",
        "rounds=3",
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "hushrank", *words, "--out", "run"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_interactions"] == 6 * 2 * 3 * 5
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
