"""kill -9 at random moments loses nothing: the run resumes to the same bits."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killed_processes import HEARING, saved_times, wait_for_news

RECIPE = (
    "run",
    "fpdgd",
    "--data",
    "mq2008-like",
    "--set",
    "n_clients=400",
    "--set",
    "rounds=8000",
    "--set",
    "folds=[1, 2]",
)
SEARCH = (
    *("run", "fedps", "--data", "personal-like:n_users=6,n_documents=1200,median_searches=20,seed=1"),
    *("--set", "word_dim=4", "--set", "cohort=3", "--set", "rounds=60", "--set", "eval_every=20"),
)
BELOW_PROXIES = (
    *("--set", "topology=proxy", "--set", "users_per_proxy=3", "--set", "clients_per_proxy=3"),
    *("--set", "stragglers=0.34", "--set", "dropout=0.2", "--set", "proxy_dropout=0.2"),
)
FILES = ("rankers.safetensors", "metrics.jsonl", "recipe.json")


def start(*words: str, cwd: Path, recipe: tuple[str, ...] = RECIPE) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HEARING, *recipe, *words, "-q"]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(*words: str, cwd: Path, recipe: tuple[str, ...] = RECIPE) -> None:
    process = start(*words, cwd=cwd, recipe=recipe)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors


@pytest.mark.slow
def test_a_run_killed_ten_times_at_random_moments_ends_bit_equal(tmp_path: Path) -> None:
    began = time.monotonic()
    finish("--out", "whole", cwd=tmp_path)
    whole_s = time.monotonic() - began
    moments, kills = random.Random(3), 0
    checkpoints, seen = tmp_path / "killed" / "checkpoints", set[int]()
    for attempt in range(10):
        process = start("--resume", "--out", "killed", "--checkpoint-every", "0.1", cwd=tmp_path)
        if attempt % 2:  # Why: half of the kills come at any moment of the start, half in the middle of training
            wait_for_news(process, checkpoints, seen)
        try:
            process.wait(timeout=moments.uniform(0.0, 1.0 if attempt % 2 else whole_s / 3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
        seen |= saved_times(checkpoints)
    assert kills >= 5 and len(seen) >= 3, "the run ended before it could be killed: make it longer"
    finish("--resume", "--out", "killed", cwd=tmp_path)
    assert_equal_files(tmp_path / "killed", tmp_path / "whole")


def assert_equal_files(killed: Path, whole: Path) -> None:
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert not list(killed.rglob(".unfinished-*"))


@pytest.mark.slow
@pytest.mark.parametrize("topology", [(), BELOW_PROXIES], ids=["flat", "proxy"])
def test_personalised_search_killed_at_several_moments_ends_bit_equal(
    topology: tuple[str, ...], tmp_path: Path
) -> None:
    recipe = (*SEARCH, *topology)
    finish("--out", "whole", cwd=tmp_path, recipe=recipe)
    moments, checkpoints, seen = random.Random(7), tmp_path / "killed" / "checkpoints", set[int]()
    for n_saved in (0, 1, 1, 2):  # checkpoints before each kill; 0: while it starts, reads and compiles
        process = start("--resume", "--out", "killed", "--checkpoint-every", "0", cwd=tmp_path, recipe=recipe)
        for _ in range(n_saved):
            wait_for_news(process, checkpoints, seen)
            seen |= saved_times(checkpoints)
        time.sleep(moments.uniform(0.0, 0.3 if n_saved else 5.0))
        assert process.poll() is None, "the run ended before it could be killed: make it longer"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        seen |= saved_times(checkpoints)
    finish("--resume", "--out", "killed", cwd=tmp_path, recipe=recipe)
    assert_equal_files(tmp_path / "killed", tmp_path / "whole")


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = ("--out", "stopped", "--checkpoint-every", "0.05", "--set", "rounds=100000", "--set", "eval_every=100")
    process = start(*words, cwd=tmp_path)
    wait_for_news(process, tmp_path / "stopped" / "checkpoints", set())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.decode().strip().splitlines()[-1].endswith("hushrank run --resume --out stopped")
