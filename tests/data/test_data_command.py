"""`hushrank data`: what its commands print and leave behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hushrank.cli.data import app
from hushrank.data.clicklog import read_click_log
from hushrank.data.load import load_dataset

Write = Callable[..., Path]
UNDER_A_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
from hushrank.cli.data import app
app()
"""


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def call_json(*words: str | Path) -> dict[str, Any]:
    result = call(*words, "--json")
    assert result.exit_code == 0
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def test_list_names_every_shape_and_public_set() -> None:
    listed = call_json("list")
    assert {"tiny", "mslr-like"} <= {row["name"] for row in listed["shapes"]}
    assert {"mq2007", "istella-s"} <= {row["name"] for row in listed["catalogue"]}
    assert "mslr-web30k" in call("list").stdout


def test_info_counts_each_split() -> None:
    about = call_json("info", "tiny")
    assert (about["name"], about["n_features"], about["n_grades"], len(about["splits"])) == ("tiny", 8, 3, 15)
    first = about["splits"][0]
    assert (first["fold"], first["split"], first["n_queries"]) == (1, "train", 36)
    assert sum(first["grade_shares"]) == pytest.approx(1, abs=1e-3)


def test_info_in_a_pipe_is_tab_separated() -> None:
    lines = call("info", "tiny").stdout.splitlines()
    assert lines[0].startswith("# tiny: 8 features") and lines[1].split("\t")[:3] == ["fold", "split", "n_queries"]


def test_check_reports_the_first_problem_of_each_file(write: Write) -> None:
    write("1 qid:1 0:1\n", "bad/train.txt")
    write("1 qid:1 1:1\n", "bad/vali.txt")
    place = write("9999 qid:1 1:1\n", "bad/test.txt").parent
    result = call("check", place)
    assert result.exit_code == 1 and len(result.stdout.splitlines()) == 2
    assert "train.txt, line 1: feature index 0" in result.stdout and "the grade is not a whole number" in result.stdout


def test_check_finds_nothing_wrong_with_mq2008(mq2008: Path) -> None:
    found = call_json("check", mq2008, "--as", "mq2008")
    (constant,) = found.pop("warnings")  # as published: normalised, with six features that never vary
    assert found == {"source": str(mq2008), "as": "mq2008", "problems": [], "notes": []}
    assert constant["kind"] == "note" and constant["sentence"].startswith("6 of 46 features have the same value")
    good, note = call("check", mq2008).stdout.splitlines()
    assert good == f"{mq2008}: no problems; the counts are those of mq2008." and note.startswith("note: 6 of 46")
    assert call("check", "tiny").stdout == "tiny: no problems.\n"


def test_check_names_every_deviation_and_fails(write: Write) -> None:
    for role in ("train", "vali", "test"):
        write("1 qid:1 1:1\n", f"mine/{role}.txt")
    result = call("check", write("", "mine/README").parent, "--as", "Yahoo", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1 and found["as"] == "yahoo" and len(found["problems"]) == 3 + 2 * 3
    assert "3 queries came, Yahoo! Learning to Rank Challenge, set 1 has 29,921." in found["problems"][1]
    assert found["notes"] == [
        "1 feature came, Yahoo! Learning to Rank Challenge, set 1 has 700. Sparse files may lack the last ones."
    ]


def test_list_says_what_is_on_this_machine(write: Write) -> None:
    place = write("", "data-root/MQ2007/README").parent
    found = {row["name"]: row["found"] for row in call_json("list")["catalogue"]}
    assert found == {**dict.fromkeys(found, None), "mq2007": str(place)}
    assert f"\nmq2007\t{place}\t" in call("list").stdout and "\nyahoo\t-\t" in call("list").stdout


def test_info_of_a_public_set_shows_its_licence(write: Write) -> None:
    for role in ("train", "vali", "test"):
        write("1 qid:1 1:1\n", f"data-root/istella-s/{role}.txt")
    assert "non-commercial use only" in call("info", "istella-s").stdout
    assert call_json("info", "istella-s")["catalogue"]["n_queries"] == 33_018
    assert call_json("info", "tiny")["catalogue"] is None


def test_make_writes_what_load_generates(tmp_path: Path) -> None:
    result = call("make", "tiny", tmp_path / "made", "--seed", "4", "--set", "n_queries=20", "--set", "noise=0.1")
    assert result.exit_code == 0 and result.stdout == f"{tmp_path / 'made'}\n"
    made, generated = load_dataset(str(tmp_path / "made")), load_dataset("tiny:n_queries=20,noise=0.1", seed=4)
    for fold, twin in zip(made.folds, generated.folds, strict=True):
        assert np.array_equal(fold.train.features, twin.train.features)
        assert np.array_equal(fold.test.grades, twin.test.grades)


def test_make_refuses_a_place_where_something_is(tmp_path: Path, write: Write) -> None:
    write("mine", "made/file")
    result = call("make", "tiny", tmp_path / "made")
    assert isinstance(result.exception, FileExistsError) and "exists already and is not empty" in str(result.exception)
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["file"]


def test_make_refuses_an_unknown_parameter_before_it_writes(tmp_path: Path) -> None:
    result = call("make", "tiny", tmp_path / "made", "--set", "n_query=3")
    assert isinstance(result.exception, ValueError) and "Did you mean n_queries" in str(result.exception)
    assert not (tmp_path / "made").exists()


def test_make_on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-c", UNDER_A_LIMIT, "make", "tiny", str(place / "made")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "File too large" in done.stderr and list(place.iterdir()) == []


def write_raw(write: Write) -> Path:
    for role in ("train", "vali", "test"):
        path = write("1 qid:1 1:2 #docid = A\n0 qid:1 1:4 #docid = B\n", f"raw/{role}.txt")
    return path.parent


def test_convert_writes_normalised_text_with_document_ids(write: Write, tmp_path: Path) -> None:
    result = call("convert", write_raw(write), "--out", tmp_path / "out", "--normalise", "query-minmax")
    assert result.exit_code == 0 and result.stdout == f"{tmp_path / 'out'}\n"
    text = (tmp_path / "out" / "Fold1" / "vali.txt").read_text()
    assert text == "1 qid:1 1:0.000000 #docid = A\n0 qid:1 1:1.000000 #docid = B\n"


def test_convert_writes_qrels_and_a_run_by_one_feature(write: Write, tmp_path: Path) -> None:
    files = call_json("convert", write_raw(write), "--to", "qrels", "--out", tmp_path / "qrels")["files"]
    assert files == ["Fold1/train.qrels", "Fold1/vali.qrels", "Fold1/test.qrels"]
    call("convert", tmp_path / "raw", "--to", "run", "--feature", "1", "--out", tmp_path / "run")
    assert (tmp_path / "qrels" / "Fold1" / "test.qrels").read_text() == "1 0 A 1\n1 0 B 0\n"
    assert (tmp_path / "run" / "Fold1" / "test.run").read_text() == "1 Q0 B 1 4 feature-1\n1 Q0 A 2 2 feature-1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "csv"), "the format is 'csv', must be one of letor, qrels, run"),
        (("--to", "run"), "a run ranks documents by one feature"),
        (("--to", "qrels", "--feature", "1"), "a run ranks documents by one feature"),
        (("--to", "run", "--feature", "2"), "feature is 2, raw has features 1 to 1"),
    ],
)
def test_convert_refuses_what_it_cannot_write(write: Write, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    result = call("convert", write_raw(write), *words, "--out", tmp_path / "out")
    assert isinstance(result.exception, ValueError) and said in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_log_writes_impressions_that_can_be_read(tmp_path: Path) -> None:
    words = ("log", "--data", "tiny", "--impressions", "50", "--clients", "4", "--seed", "2", "--out")
    about = call_json(*words, tmp_path / "log.jsonl")
    log = read_click_log(tmp_path / "log.jsonl", load_dataset("tiny").folds[0].train)
    assert (about["n_impressions"], about["n_clients"], about["clicks"]) == (50, 4, "navigational")
    assert log.n_impressions == 50 and log.n_clients == 4 and about["file"] == str(tmp_path / "log.jsonl")
    assert call(*words, tmp_path / "again").stdout.startswith(f"{tmp_path / 'again'}: 50 impressions of ")


def test_cache_shows_and_clears_its_entries(own_cache: Path, mq2008: Path) -> None:
    load_dataset(str(mq2008), folds=[1])
    shown = call_json("cache")
    assert shown["where"] == str(own_cache / "cache") and len(shown["entries"]) == 3 and shown["n_bytes"] > 0
    assert call_json("cache", "--clear")["n_bytes_freed"] == shown["n_bytes"]
    assert call_json("cache")["entries"] == [] and "0 entries" in call("cache").stdout
