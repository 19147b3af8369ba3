"""`hushrank forget` as a person uses it: tables, JSON, a record that is checked, errors of one line, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import hushrank
from killed_processes import HEARING, saved_times, wait_for_news

RUN = ("--data", "tiny", "--set", "n_clients=6", "--set", "rounds=6", "--set", "keep_every=2", "--seed", "7", "-q")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("work")
    done = hushrank("run", "fpdgd", *RUN, "--out", "one", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def test_a_person_sees_who_was_forgotten_and_how_well(place: Path) -> None:
    done = hushrank("forget", "one", "--clients", "1,3", "--compare", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 clients (1 and 3) were forgotten by method eraser; 4 clients stay.")
    assert "The method is approximate." in done.stdout and "Distance to the retrained ranker" in done.stdout
    assert "Record: one/forgotten/eraser-1-3/record.json" in done.stderr
    page = (place / "one" / "forgotten" / "eraser-1-3" / "report.html").read_text()
    assert "What was forgotten" in page and "by 4 clients on tiny" in page
    together = hushrank("report", "one", "one/forgotten/eraser-1-3", "one/forgotten/eraser-1-3/retrained", cwd=place)
    assert together.returncode == 0, together.stderr
    again = hushrank("evaluate", "one/forgotten/eraser-1-3", "--json", cwd=place)
    assert json.loads(again.stdout)["metrics"]["nDCG@10"]["mean"] > 0


def test_json_is_one_object_with_record_and_metrics_and_the_record_is_checked(place: Path) -> None:
    done = hushrank("forget", "one", "--clients", "2", "--method", "fresh", "--json", "--out", "fresh", cwd=place)
    found = json.loads(done.stdout)
    assert found["record"]["is_exact"] and "before/offline/nDCG@10" in found["metrics"]
    checked = hushrank("forget", "--verify", "fresh/record.json", cwd=place)
    assert checked.returncode == 0 and "The record is as it was signed by this account" in checked.stdout
    assert found["record"]["clients"][0] in checked.stdout
    key = found["record"]["public_key"]
    named = json.loads(hushrank("forget", "--verify", "fresh/record.json", "--key", key, "--json", cwd=place).stdout)
    assert named["record"] == found["record"] and named["signer"] == "this account"
    changed = (place / "fresh" / "record.json").read_text().replace("exact", "Exact", 1)
    (place / "changed.json").write_text(changed)
    refused = hushrank("forget", "--verify", "changed.json", cwd=place)
    assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "which run, and who leaves?"),
        (("one",), "which run, and who leaves?"),
        (("one", "--clients", "99"), "there is no client 99: this run has the clients 0 to 5."),
        (("one", "--clients", "0-5"), "nobody is left to train with"),
        (("one", "--clients", "3", "--method", "eras"), "no way to forget is called 'eras'; did you mean 'eraser'?"),
        (("one", "--clients", "3", "--method", "fresh", "--no-calibration"), "method fresh takes no --no-calibration"),
        (("nowhere", "--clients", "3"), "nowhere is not a directory"),
        (("--resume", "--out", "nowhere"), "nothing was being forgotten in nowhere"),
        (("one", "--clients", "3", "--out", "one"), "one exists"),
        (("--verify", "one/result.json"), "one/result.json is no erasure record"),
        (("--verify", "nowhere.json"), "nowhere.json: No such file"),
        (("one", "--clients", "3", "--key", "ab"), "--key is for --verify"),
        (("one", "--verify", "one/result.json"), "--verify only checks a record: leave RUN out."),
        (("--verify", "one/result.json", "--clients", "3"), "--verify only checks a record: leave --clients out."),
        (("--verify", "one/result.json", "--method", "eraser"), "--verify only checks a record: leave --method out."),
        (("one", "--clients", "3", "--every", "0"), "every must be at least 1"),
        (("one", "--clients", "3", "--method", "fresh", "--leap", "inf"), "leap finite and above 0"),
    ],
)
def test_a_mistake_is_one_line_and_no_directory(words: tuple[str, ...], message: str, place: Path) -> None:
    before = sorted(place.rglob("*"))
    done = hushrank("forget", *words, "-q", cwd=place)
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("hushrank: ") and message in line
    assert sorted(place.rglob("*")) == before


def test_killed_and_stopped_it_continues_to_the_same_bits(tmp_path: Path) -> None:
    size = ("--data", "mq2008-like", "--set", "n_clients=200", "--set", "rounds=1500", "--set", "folds=[1]", "-q")
    assert hushrank("run", "fpdgd", *size, "--set", "keep_every=500", "--out", "run", cwd=tmp_path).returncode == 0
    words = ("forget", "run", "--clients", "3", "--method", "retrain", "-q", "--checkpoint-every", "0.05")
    whole = hushrank(*words, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    checkpoints = tmp_path / "part" / "checkpoints"
    for number in (signal.SIGKILL, signal.SIGINT):
        resume = ("--resume",) if number == signal.SIGINT else ()
        command, before = [sys.executable, "-c", HEARING, *words, "--out", "part", *resume], saved_times(checkpoints)
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        wait_for_news(process, checkpoints, before)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
        assert process.returncode in (-9, 130), "it ended before it could be stopped: make the run longer"
    assert errors.decode().splitlines()[-1].endswith("Continue with: hushrank forget --resume --out part")
    again = hushrank("forget", "--resume", "--out", "part", "-q", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    for name in ("rankers.safetensors", "metrics.jsonl"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
