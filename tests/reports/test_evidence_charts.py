"""What a rule noticed, on a run's page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reading import Checker, text_of

from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.page import render_report
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.runs.run import RunOptions, run_recipe


def run(path: Path, **changes: Any) -> RunSummary:
    usual = {"data": "tiny", "n_clients": 10, "rounds": 20, "folds": [1], "clicks": "perfect", "eval_every": 5}
    run_recipe(change_recipe(NAMED["fpdgd"], {**usual, **changes}), RunOptions(out=path, engine="numba"))
    return from_directory(path)


def test_evidence_is_drawn_over_time(tmp_path: Path) -> None:
    lies = {"attack": "at-bound", "n_malicious": 2, "aggregation": "watchful"}
    page = render_report([run(tmp_path / "lies", **lies)])
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    for words in ("Evidence", "part of the liars", "most evidence of copies; 1 is enough"):
        assert words in text_of(page)


def test_in_peace_nothing_is_said_about_liars_and_without_a_rule_nothing_at_all(tmp_path: Path) -> None:
    peace = text_of(render_report([run(tmp_path / "peace", aggregation="watchful")]))
    assert "part of the honest updates that did not count" in peace and "part of the liars" not in peace
    assert "Evidence" not in text_of(render_report([run(tmp_path / "plain")]))
