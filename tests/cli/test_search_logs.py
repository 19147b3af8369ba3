"""Logs of users on the command line: read into a directory, described, checked; no word of them is printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hushrank.cli.main import main

WORDS = ("nachtkerze", "zwergmispel")  # one of the queries, one of a title
DAYS = [f"2006-{month:02}-{day:02}" for month in (3, 4, 5) for day in range(1, 29)]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a log of two users and a file of titles."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{user}\t{WORDS[0]} thing\t{day} 10:00:00\t1\thttp://s{user}.test" for user in (1, 2) for day in DAYS]
    header = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL"
    Path("log.txt").write_text("\n".join([header, *rows, f"3\t{WORDS[0]}"]) + "\n", encoding="utf-8")
    titles = "".join(f"http://s{n}.test\t{WORDS[1]} thing {n}\n" for n in range(3))
    Path("titles.tsv").write_text(titles, encoding="utf-8")
    return tmp_path


def call(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr, in which no word of anybody is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hushrank", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
    out, err = capsys.readouterr()
    assert not any(word in out + err for word in WORDS)
    return int(stopped.value.code or 0), out, err


IMPORT = ("data", "import-aol", "log.txt", "--titles", "titles.tsv", "--out", "logs/aol")


@pytest.mark.usefixtures("logs")
def test_a_log_is_read_described_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(*IMPORT, capsys=capsys)
    assert code == 0 and out.startswith("logs/aol: 2 users, 168 searches\n") and "bad lines 1" in out
    assert "log.txt, line 170: expected" in err and "hushrank run fedps --data logs/aol" in err
    _, out, _ = call("data", "info", "logs/aol", capsys=capsys)
    said = "2 users of the AOL log, 168 searches with a click, 3 documents, 2006-03-01 10:00:00 to 2006-05-28 10:00:00"
    assert out.splitlines()[0] == f"# logs/aol: {said}"
    assert [line.split("\t")[0] for line in out.splitlines()[2:]] == ["background", "train", "validation", "test"]
    code, out, _ = call("data", "check", "logs/aol", capsys=capsys)
    assert code == 0 and out == f"logs/aol: no problems; {said}.\n"


@pytest.mark.usefixtures("logs")
def test_all_of_it_is_json_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(*IMPORT, "--json", capsys=capsys)
    assert {"out": "logs/aol", "n_users": 2, "n_searches": 168, "n_bad_lines": 1}.items() <= json.loads(out).items()
    found = json.loads(call("data", "info", "logs/aol", "--json", capsys=capsys)[1])
    assert (found["n_users"], found["n_documents"], found["counts"]["n_lines"]) == (2, 3, 169)
    assert [row["period"] for row in found["periods"]] == ["background", "train", "validation", "test"]
    checked = json.loads(call("data", "check", "logs/aol", "--json", capsys=capsys)[1])
    assert checked["problems"] == [] and checked["log"]["n_searches"] == 168


def test_a_log_that_changed_is_a_problem(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(*IMPORT, capsys=capsys)
    times = logs / "logs/aol/times.bin"
    times.write_bytes(times.read_bytes()[::-1])
    code, out, _ = call("data", "check", "logs/aol", capsys=capsys)
    assert code == 1 and "logs/aol: a file has changed since the log was read" in out
    times.unlink()
    code, out, _ = call("data", "check", "logs/aol", capsys=capsys)
    assert code == 1 and out == "logs/aol/times.bin is missing.\n"
    assert "leave it out" in call("data", "check", "logs/aol", "--as", "mq2008", capsys=capsys)[2]


@pytest.mark.usefixtures("logs")
def test_what_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(*IMPORT[:2], "gone.txt", *IMPORT[3:], capsys=capsys)
    assert (code, out) == (1, "") and err.startswith("hushrank: gone.txt does not exist. Name the files of the log")
    code, out, err = call(*IMPORT, "--least-train", "99", capsys=capsys)
    assert (code, out) == (1, "") and "no user is left of 2: at least 5 background and 99 training" in err


@pytest.mark.usefixtures("logs")
def test_aol4foltr_is_read_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    head = "qid,user_id,timestamp,query,target_doc_id,candidate_doc_ids"
    listed = "['http://s1.test', 'http://s2.test']"
    rows = [f'{n},7,{day} 10:00:00,{WORDS[0]},http://s1.test,"{listed}"' for n, day in enumerate(DAYS)]
    Path("metadata.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
    words = ("metadata.csv", "--titles", "titles.tsv", "--out", "logs/foltr")
    code, out, _ = call("data", "import-aol4foltr", *words, capsys=capsys)
    assert code == 0 and out.startswith("logs/foltr: 1 users, 84 searches\n")
    assert "1 users of AOL4FOLTR, 84 searches" in call("data", "info", "logs/foltr", capsys=capsys)[1]
