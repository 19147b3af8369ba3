"""The box *Who learns what*: one for each statement, escaped, whole, and short where there are many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fake_runs import make_run
from reading import text_of

from hushrank.reports.page import render_report
from hushrank.reports.summary import RunSummary, from_directory

LINES = [
    {"who": "the server", "learns": "Sums <only>, except with probability 1e-05."},
    {"who": "everybody else", "learns": "The new ranker."},
]


def run(path: Path, lines: list[dict[str, str]] | None = None, **options: Any) -> RunSummary:
    place = make_run(path, n_folds=1, n_repeats=1, n_evaluations=2, **options)
    result = json.loads((place / "result.json").read_text())
    (place / "result.json").write_text(json.dumps(result | {"who_learns_what": lines} if lines else result))
    return from_directory(place)


def test_the_promise_comes_first_and_then_who_sees_what(tmp_path: Path) -> None:
    page = render_report([run(tmp_path / "one", LINES, privacy="Protected, epsilon 1 (delta 1e-05).")])
    text = text_of(page)
    assert "Who learns what Protected, epsilon 1 (delta 1e\u20115)." in text  # no line ends inside a number
    assert "the server Sums &lt;only&gt;, except with probability 1e\u20115. everybody else The new ranker." in text
    assert "<h3>one</h3>" not in page


def test_runs_that_tell_the_same_share_a_box(tmp_path: Path) -> None:
    runs = [run(tmp_path / name, LINES, privacy="Same.") for name in ("a", "b")]
    assert text_of(render_report(runs)).count("Sums &lt;only&gt;") == 1
    page = render_report([*runs, run(tmp_path / "c", LINES, privacy="Other.")])
    assert "<h3>a and b</h3>" in page and "<h3>c</h3>" in page and "Who sees what" not in page


def test_many_boxes_show_the_promise_and_the_rest_on_demand(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"r{i}", LINES, privacy=f"Epsilon {i}.") for i in range(5)]
    page = render_report(runs)
    assert page.count("<summary>Who sees what</summary>") == 5 and "Epsilon 4." in text_of(page)


def test_an_older_run_has_its_sentence_or_the_worst_is_assumed(tmp_path: Path) -> None:
    assert "One sentence." in text_of(render_report([run(tmp_path / "old", privacy="One sentence.")]))
    assert "Assume that the server sees every" in text_of(render_report([run(tmp_path / "none", privacy=None)]))
