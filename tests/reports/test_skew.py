"""How clients differ, in a run's JSON, on its page and in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_runs import make_run
from reading import Checker, text_of

from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.budgets import read_budget
from hushrank.reports.page import render_report
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.reports.terminal import result_text
from hushrank.runs.run import RunOptions, run_recipe


def run_partition(path: Path, partition: str, n_clients: int, **changes: Any) -> RunSummary:
    usual = {"data": "tiny", "n_clients": n_clients, "rounds": 3, "folds": [1, 2], "partition": partition}
    run_recipe(change_recipe(NAMED["fpdgd"], {**usual, **changes}), RunOptions(out=path, engine="numba"))
    return from_directory(path)


def test_a_run_writes_its_skew_and_shows_it_on_its_page(tmp_path: Path) -> None:
    run = run_partition(tmp_path / "run", "labels-1+quantity", 3)
    written = json.loads((tmp_path / "run" / "result.json").read_text())
    assert [skew["name"] for skew in written["skew"]] == ["labels-1", "quantity"]
    assert written["skew"][0]["rows"][1] == {
        "clients": "labels-1",
        "values": {"grade 0": 0, "grade 1": 1, "grade 2": 0},
    }
    assert written["skew"][1]["value"] == pytest.approx(8 / 27)  # Gini of 1, 3, 5: mean difference 16/9, mean 3
    assert written["searches_per_client_round"] == [1, 3, 5] and read_budget(run).each == "1, 3, 5"
    page = render_report([run])
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and page.count("<rect") > 6
    text = text_of(page)
    assert "How clients differ" in text and "Partition quantity: the skew is .296 (0 is all clients alike" in text


def test_a_value_is_the_mean_over_folds(tmp_path: Path) -> None:
    both = run_partition(tmp_path / "both", "dirichlet", 2)
    alone = [run_partition(tmp_path / str(fold), "dirichlet", 2, folds=[fold]) for fold in (1, 2)]
    assert both.skews[0].value == pytest.approx(sum(run.skews[0].value for run in alone) / 2)


def test_the_terminal_has_one_line_for_each_part(tmp_path: Path) -> None:
    one, control = run_partition(tmp_path / "a", "clicks", 3), run_partition(tmp_path / "b", "clicks", 3, control=True)
    assert result_text([one]).splitlines()[0].startswith("Clients differ by partition clicks: skew .")
    together = result_text([one, control])
    assert "a: Clients differ by partition clicks" in together
    assert "b: Clients: control of partition clicks, all alike (skew 0)" in together
    assert "The control of partition clicks: all clients draw from the same distribution" in text_of(
        render_report([control])
    )


def test_a_run_without_a_partition_says_nothing_about_it(tmp_path: Path) -> None:
    run = run_partition(tmp_path / "run", "iid", 3)
    assert run.skews == () and "How clients differ" not in render_report([run])
    assert from_directory(make_run(tmp_path / "old")).skews == ()  # written before there were partitions


def test_a_page_of_several_runs_says_whose_clients_differ(tmp_path: Path) -> None:
    divided, alike = run_partition(tmp_path / "divided", "quantity", 5), run_partition(tmp_path / "alike", "iid", 5)
    assert "<h3>divided</h3><p>Partition quantity" in render_report([alike, divided])
    assert "<h3>" not in render_report([divided]).split("How clients differ")[1].split("</section>")[0]


def test_many_clients_are_counted_and_not_all_drawn_or_listed(tmp_path: Path) -> None:
    run = run_partition(tmp_path / "run", "dirichlet", 25, data="mq2008-like", concentration=5.0)
    page = render_report([run])
    assert "The first 20 of 25 groups of clients." in text_of(page)
    assert any(name.endswith("/client-25") for name in run.metrics["navigational"])
    assert "nDCG@10/client-25" not in text_of(page).split("How clients differ")[0]
