"""Every mistake is one line that says what to do, exit code 1 or 2, and nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "2 qid:1 1:0.5 2:0.1\n0 qid:1 1:0.1 2:0.9\n1 qid:2 1:0.3 2:0.2\n0 qid:2 1:0.2 2:0.2\n"
LIMITED = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execv(sys.executable, [sys.executable, "-m", "hushrank", *sys.argv[2:]])
"""
SMALL = ("--set", "n_clients=2", "--set", "interactions=1", "--set", "rounds=1")


def hushrank(*words: str, cwd: Path, largest_file: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hushrank", *words]
    if largest_file is not None:
        command = [sys.executable, "-c", LIMITED, str(largest_file), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def assert_one_line(done: subprocess.CompletedProcess[str], *fragments: str) -> None:
    assert done.returncode in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    for fragment in fragments:
        assert fragment in done.stderr, done.stderr


def write_fold(directory: Path, **texts: str) -> Path:
    fold = directory / "data" / "Fold1"
    fold.mkdir(parents=True)
    for split in ("train", "vali", "test"):
        (fold / f"{split}.txt").write_text(texts.get(split, GOOD))
    return fold.parent


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("2 qid:1 1:0.5 2:", ("train.txt", "line 1")),
        (GOOD + "1 qi", ("train.txt", "line 5")),
        ("1 qid:1 0:0.5\n", ("train.txt", "line 1", "feature")),
        ("1 qid:1 2:0.5 1:0.1\n", ("train.txt", "line 1", "feature")),
        ("1 qid:1 1:nan\n", ("train.txt", "line 1", "finite")),
        (GOOD + "1 qid:1 1:0.5\n", ("train.txt", "line 5", "qid")),
        ("", ("train.txt", "no rows")),
    ],
)
def test_a_malformed_file_is_named_with_its_line(tmp_path: Path, text: str, fragments: tuple[str, ...]) -> None:
    data = write_fold(tmp_path, train=text)
    assert_one_line(hushrank("run", "fpdgd", "--data", str(data), *SMALL, "-q", cwd=tmp_path), *fragments)
    assert not (tmp_path / "runs").exists()


def test_a_malformed_file_stops_a_run_before_anything_is_written(tmp_path: Path) -> None:
    data = write_fold(tmp_path, test=GOOD + "1 qid:9 1:x\n")
    assert_one_line(hushrank("run", "fpdgd", "--data", str(data), *SMALL, "-q", cwd=tmp_path), "test.txt", "line 5")
    assert not (tmp_path / "runs").exists()


def test_a_label_outside_the_click_table_is_named(tmp_path: Path) -> None:
    data = write_fold(tmp_path, train=GOOD.replace("2 qid:1", "7 qid:1"))
    done = hushrank("run", "fpdgd", "--data", str(data), *SMALL, "-q", cwd=tmp_path)
    assert_one_line(done, "grades go up to 7", "click_tables")


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (("run", "fpdgd", "--set", "folds=[3]"), ("fold 3",)),
        (("run", "fpdgd", "--data", "nowhere"), ("nowhere", "Known names")),
        (("run", "fpdgdd"), ("did you mean 'fpdgd'",)),
        (("run", "fpdgd", "--set", "n_client=3"), ("did you mean 'n_clients'",)),
        (("run", "fpdgd", "--set", "n_clients=-1"), ("n_clients is -1", "at least 1")),
        (("run", "fpdgd", "--set", "rounds=many"), ("rounds is 'many'", "whole number")),
        (("run", "fpdgd", "--set", "clicks=perfct"), ("did you mean 'perfect'",)),
        (("run", "fpdgd", "--set", "rounds"), ("key=value",)),
        (("run", "fpdgd", "--memory-limit", "lots"), ("500MB",)),
        (("run", "fpdgd", "--memory-limit", "10"), ("memory limit is 10",)),
        (("run", "fpdgd", "--workers", "0"), ("workers is 0",)),
        (("run", "fpdgd", "--set", "click_tables={a=3}"), ("click_tables is",)),
        (("run", "fpdgd", "--seed", "-1"), ("seed is -1",)),
        (("run", "missing.toml"), ("missing.toml does not exist",)),
        (("run",), ("which recipe",)),
        (("run", "fpdgd", "--device", "tpu"), ("device is 'tpu'",)),
        (("report", "."), ("not a run",)),
        (("export", "nowhere"), ("nowhere",)),
        (("evaluate", "nowhere.safetensors", "--data", "tiny"), ("nowhere.safetensors",)),
    ],
)
def test_a_wrong_word_is_one_line_and_writes_nothing(
    tmp_path: Path, words: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    data = write_fold(tmp_path)
    if words[0] == "run" and "--data" not in words:
        words = (*words, "--data", str(data))
    assert_one_line(hushrank(*words, *(["-q"] if words[0] == "run" else []), cwd=tmp_path), *fragments)
    assert not (tmp_path / "runs").exists()


def test_a_directory_that_holds_no_data_says_what_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_one_line(hushrank("run", "fpdgd", "--data", "empty", "-q", cwd=tmp_path), "empty", "FoldN")


def test_a_fold_that_lacks_a_file_names_it(tmp_path: Path) -> None:
    (write_fold(tmp_path) / "Fold1" / "vali.txt").unlink()
    assert_one_line(hushrank("run", "fpdgd", "--data", "data", *SMALL, "-q", cwd=tmp_path), "Fold1", "vali")


def test_an_output_directory_that_exists_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    done = hushrank("run", "fpdgd", "--data", "tiny", "--out", "mine", *SMALL, "-q", cwd=tmp_path)
    assert_one_line(done, "mine exists", "choose another --out")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_full_disk_leaves_no_half_written_file(tmp_path: Path) -> None:
    words = ("run", "fpdgd", "--data", "tiny", "--out", "run", *SMALL, "-q")
    assert hushrank(*words, "--out", "before", cwd=tmp_path).returncode == 0  # Why: the compiled loop is kept, too
    assert_one_line(hushrank(*words, cwd=tmp_path, largest_file=2000), "cannot be written", "Make room")
    left = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not [path for path in left if path.name.startswith(".")]
    assert not {"metrics.jsonl", "result.json", "report.html"} & {path.name for path in left}
    assert hushrank(*words, "--resume", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "result.json").exists()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    assert "Traceback" in hushrank("--debug", "run", "nothing", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (("reproduce", "fpdgd.figur4", "--quick"), ("no published result is called", "fpdgd.figure4")),
        (("reproduce", "fpdgd.figure4", "--data", "nowhere"), ("nowhere is not a directory",)),
        (("reproduce", "fpdgd.figure4", "--data", "."), ("has no mslr-web10k", "Visit https://")),
        (("reproduce", "fpdgd.figure4", "--set", "no_such_key=1"), ("no recipe key is called 'no_such_key'",)),
        (("run", "fpdgd.figure4"), ("rerun it with hushrank reproduce fpdgd.figure4",)),
        (("run", "fpdgd", "--plugin", "no_such_module"), ("plugin no_such_module cannot be imported",)),
        (("run", "fpdgd", "--plugin", "broken.py"), ("plugin broken.py cannot be imported: SyntaxError",)),
        (
            ("run", "fpdgd", "--set", "learner=mine"),
            ("learner is 'mine'; available: pdgd. Load your own",),
        ),
        (("run", "fpdgd", "--data", "mslr-web10k"), ("mslr-web10k is not here", "Visit https://")),
        (("sweep", "fpdgd", "--grid", "no_such_key=1,2"), ("no recipe key is called 'no_such_key'",)),
        (("sweep", "fpdgd", "--grid", "rounds=0,1"), ("rounds is 0, must be at least 1",)),
        (("sweep", "fpdgd"), ("fpdgd: nothing to sweep",)),
        (("sweep", "fpdgd", "--grid", "rounds=1,2", "--select", "test"), ("--select is 'test'",)),
        (("sweep", "fpdgd", "--grid", "rounds=1,2", "--on", "moon"), ("--on is 'moon', must be local",)),
        (("sweep",), ("which grid?",)),
        (("sweep", "gone.toml"), ("gone.toml does not exist",)),
        (("run", "gone.json"), ("gone.json is not the recipe of a run",)),
    ],
)
def test_the_lab_says_what_is_wrong_and_writes_nothing(
    tmp_path: Path, words: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    (tmp_path / "broken.py").write_text("def (\n")
    assert_one_line(hushrank(*words, cwd=tmp_path), *fragments)
    assert not (tmp_path / "runs").exists()


def test_a_run_of_a_newer_version_is_named_as_such(tmp_path: Path) -> None:
    assert hushrank("run", "fpdgd", "--data", "tiny", *SMALL, "--out", "r", "-q", cwd=tmp_path).returncode == 0
    for name in ("result.json", "recipe.json"):
        text = (tmp_path / "r" / name).read_text()
        (tmp_path / "r" / name).write_text(text.replace('"format": 1', '"format": 7'))
    assert_one_line(hushrank("report", "r", cwd=tmp_path), "written by a newer hushrank", "format 7")
    assert_one_line(hushrank("run", "--resume", "--out", "r", cwd=tmp_path), "written by a newer hushrank", "format 7")
