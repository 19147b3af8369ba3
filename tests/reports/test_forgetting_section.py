"""What was forgotten, in sentences and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fake_runs import make_run

from hushrank.reports.cost import bytes_up
from hushrank.reports.forgetting import forgetting_blocks, forgetting_section, forgetting_sentences
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.reports.terminal import block_text
from hushrank.reports.wording import summary_sentences

WORK = {name: {"run": 100.0, "forgetting": 8.0, "ratio": 12.5} for name in ("searches", "rounds", "bytes", "seconds")}
RECORD = {
    "clients": ["ab" * 8],
    "when": "2026-01-31T12:00:00Z",
    "from": "f" * 64,
    "to": "e" * 64,
    "public_key": "d" * 64,
}


def forgotten(path: Path, *, clients: list[int], newly: list[int], spent: dict[str, Any] | None = None) -> RunSummary:
    run = make_run(path, clicks="perfect", n_folds=1, n_repeats=1, n_clients=10)
    result = json.loads((run / "result.json").read_text())
    about = {"clients": clients, "newly": newly, "method": "fresh"}
    record = {**RECORD, "statement": "The method is exact."}
    result |= {"forgetting": about, "work": WORK, "privacy_spent": spent, "record": record}
    result["metrics"]["before/offline/nDCG@10"] = {"mean": 0.6123, "std": None, "values": []}
    (run / "result.json").write_text(json.dumps(result))
    return from_directory(run)


def test_who_left_is_said_and_who_stays_is_counted(tmp_path: Path) -> None:
    one = forgotten(tmp_path / "one", clients=[1, 3], newly=[3])
    assert forgetting_sentences(one) == (
        "Client 3 was forgotten by method fresh; 8 clients stay. The method is exact.",
    )
    many = forgotten(tmp_path / "many", clients=list(range(9)), newly=list(range(9)))
    assert forgetting_sentences(many)[0].startswith("9 clients (0, 1, 2, 3, 4 and 4 more) were forgotten")
    assert "; 1 client stays." in forgetting_sentences(many)[0]
    assert "by 8 clients" in summary_sentences([one], ["one"]) and bytes_up(one) == 8.0


def test_what_privacy_it_spent_is_said_of_both(tmp_path: Path) -> None:
    trainings = ["the run", "fresh without client 3"]
    spent = {"run_epsilon": 5.0, "epsilon": 5.5621, "rounds": [1000, 100], "trainings": trainings}
    _, charged = forgetting_sentences(forgotten(tmp_path / "one", clients=[3], newly=[3], spent=spent))
    assert charged == (
        "Privacy of those who stay: epsilon 5 for the run alone, 5.562 for 1,000 + 100 rounds together (the run, fresh "
        "without client 3)."
    )


def test_tables_have_quality_and_work_and_distances_only_where_they_were_measured(tmp_path: Path) -> None:
    run = forgotten(tmp_path / "one", clients=[3], newly=[3])
    text = block_text(forgetting_blocks(run))
    assert "before  after" in text and ".612" in text and "12.5×" in text and "Distance" not in text
    page = forgetting_section([run], ["one"])
    assert "<h3>Work</h3>" in page and "ab" * 8 in page and "Distance" not in page
    assert forgetting_section([from_directory(make_run(tmp_path / "usual"))], ["usual"]) == ""
