"""Runs that were given unequally much are compared where they had searched equally often."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runs import make_run
from reading import text_of
from rich.console import Console

from hushrank.reports.budgets import explain_budgets, find_footing, has_same_length, read_budget
from hushrank.reports.comparison import describe_comparison
from hushrank.reports.differences import find_differences, judge_differences
from hushrank.reports.page import default_page, render_report
from hushrank.reports.summary import Measurement, RunSummary, from_directory
from hushrank.reports.terminal import result_table, result_text
from hushrank.reports.wording import OFFLINE, ONLINE, PER_SEARCH, run_labels


@pytest.fixture
def unequal(tmp_path: Path) -> list[RunSummary]:
    """The first run has 780,000 searches and looks every 20,000; the second 380,000."""
    long = make_run(tmp_path / "long", rounds=195, n_evaluations=40, searches=780_000, top=0.65)
    short = make_run(tmp_path / "short", rounds=95, n_evaluations=20, searches=380_000)
    return [from_directory(long), from_directory(short)]


def curve(run: RunSummary, points: dict[int, tuple[float, float]]) -> RunSummary:
    """The run with one training, measured after some searches: {searches: (test, online since the look before)}."""
    rows = []
    for round, (searches, (test, online)) in enumerate(points.items()):
        who = ("perfect", 1, 1, round, float(searches))
        rows += [Measurement(*who, OFFLINE, test), *([Measurement(*who, ONLINE, online)] if round else [])]
    return replace(run, curve=tuple(rows))


def test_quality_is_read_at_the_last_look_that_is_not_after_the_common_number_of_searches(tmp_path: Path) -> None:
    one: dict[str, Any] = {"clicks": "perfect", "n_folds": 1, "n_repeats": 1}
    long = from_directory(make_run(tmp_path / "long", rounds=3, searches=900, **one))
    short = from_directory(make_run(tmp_path / "short", rounds=2, searches=500, **one))
    long = curve(long, {0: (0.1, 0), 300: (0.3, 0.2), 400: (0.4, 0.6), 900: (0.9, 0.9)})
    short = curve(short, {0: (0.1, 0), 100: (0.2, 0.4), 500: (0.5, 0.5)})
    footing = find_footing([long, short])
    assert footing is not None and footing.searches == 500 and footing.looks == (400, 500)
    cut = [run.metrics["perfect"] for run in footing.runs]
    assert [named[OFFLINE].mean for named in cut] == [0.4, 0.5]
    assert cut[0][PER_SEARCH].mean == pytest.approx((300 * 0.2 + 100 * 0.6) / 400)
    assert cut[1][PER_SEARCH].mean == pytest.approx((100 * 0.4 + 400 * 0.5) / 500)
    assert "long after 400" in " ".join(explain_budgets([long, short], ["long", "short"]))


def test_sums_of_different_lengths_are_not_tested_and_the_reason_is_given(unequal: list[RunSummary]) -> None:
    sums = find_differences(unequal, run_labels(unequal), metric=ONLINE)
    assert len(sums) == 3 and all(one.comparison is None for one in sums)
    assert "95 rounds (380,000 searches) and the first over 195 rounds (780,000 searches)" in sums[0].reason
    judged, refused = judge_differences(unequal, run_labels(unequal))
    assert {one.difference.metric for one in judged} == {OFFLINE, PER_SEARCH} and refused == sums
    assert all(one.verdict == "higher" for one in judged)  # the short run's, whose top is .70 and not .65


def test_the_page_says_first_that_budgets_are_unequal(unequal: list[RunSummary]) -> None:
    text = text_of(render_report(unequal))
    order = [text.index(words) for words in ("Budgets These", "Result up to 380,000", "Result where each", "Learning")]
    assert order == sorted(order)
    assert (
        "2 runs on mq2008-like of unequal length, compared up to 380,000 searches each. short has the highest" in text
    )
    assert "unequal budgets (rounds, searches and messages sent)" in text
    assert "Online is a sum over rounds" not in text and "searches by all clients together" in text


def test_the_terminal_the_page_and_the_json_give_the_same_numbers(unequal: list[RunSummary]) -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(result_table(unequal))
    plain, page = result_text(unequal), text_of(render_report(unequal)).replace("\u2007", " ")
    found = json.loads(json.dumps(describe_comparison(unequal)))
    assert not found["has_equal_budgets"] and found["at_equal_searches"]["searches"] == 380_000
    for sentence in found["about"]:
        assert sentence in plain and sentence in page
    assert "Up to 380,000 searches" in plain and "Up to 380,000 searches" in out.getvalue()
    shown = next(line.split() for line in plain.split("\n") if line.startswith("short") and "perfect" in line)
    row = next(row for row in found["at_equal_searches"]["rows"] if row["run"] == "short")
    assert float(shown[2]) == pytest.approx(row["metrics"][OFFLINE]["mean"], abs=5e-4)
    assert float(shown[8]) == pytest.approx(row["metrics"][PER_SEARCH]["mean"], abs=5e-4)
    assert shown[8] in page and found["tests"][0]["verdict"] == "higher" and "reason" in found["tests"][-1]


def test_equal_budgets_stay_as_they_were(tmp_path: Path) -> None:
    runs = [from_directory(make_run(tmp_path / name)) for name in ("a", "b")]
    assert find_footing(runs) is None and explain_budgets(runs, ["a", "b"]) == []
    text = text_of(render_report(runs))
    assert "Budgets" not in text and "Online is a sum over rounds" in text and "per search" not in text
    found = describe_comparison(runs)
    assert found is not None and found["has_equal_budgets"] and found["at_equal_searches"] is None
    assert describe_comparison(runs[:1]) is None


def test_central_training_with_as_many_searches_is_compared_as_it_is(tmp_path: Path) -> None:
    federated = from_directory(make_run(tmp_path / "fpdgd"))
    central = from_directory(make_run(tmp_path / "pdgd", recipe="pdgd", n_clients=1, interactions=4_000))
    central = replace(central, bytes_per_client_round=0.0)
    assert find_footing([federated, central]) is None and read_budget(central).messages == 0
    (said,) = explain_budgets([federated, central], ["a", "b"])
    assert "clients per round, searches per client and round and messages sent" in said and "as they are" in said
    assert all(d.comparison for d in find_differences([federated, central], ["a", "b"], metric=ONLINE))


def test_sampled_cohorts_of_one_plan_have_equal_budgets(tmp_path: Path) -> None:
    fixed = from_directory(make_run(tmp_path / "fixed", cohort=100, searches=40_000))
    sampled = from_directory(make_run(tmp_path / "sampled", cohort=100, sampling="poisson", searches=39_871))
    assert has_same_length([fixed, sampled]) and explain_budgets([fixed, sampled], ["a", "b"]) == []


def test_a_ranker_trained_on_labels_shortens_nobody(tmp_path: Path, unequal: list[RunSummary]) -> None:
    labels = from_directory(make_run(tmp_path / "mse", recipe="mse", searches=0, n_evaluations=1))
    assert find_footing([unequal[0], labels]) is None
    footing = find_footing([*unequal, labels])
    assert footing is not None and footing.searches == 380_000
    assert footing.runs[2].metrics["perfect"][OFFLINE] == labels.metrics["perfect"][OFFLINE]


def test_a_run_without_a_curve_is_named_instead_of_compared(unequal: list[RunSummary]) -> None:
    blind = replace(unequal[1], curve=())
    said = explain_budgets([unequal[0], blind], ["long", "blind"])
    assert "No curve was recorded for blind" in said[-1]
    assert judge_differences([unequal[0], blind], ["long", "blind"])[0] == []
    (only,) = explain_budgets([replace(unequal[0], curve=()), blind], ["long", "blind"])
    assert "no curves that show them" in only
    assert "without curves" in text_of(render_report([replace(unequal[0], curve=()), blind]))


def test_a_run_whose_first_look_came_later_is_named_instead_of_compared(tmp_path: Path) -> None:
    one: dict[str, Any] = {"clicks": "perfect", "n_folds": 1, "n_repeats": 1}
    long = from_directory(make_run(tmp_path / "long", rounds=3, searches=900, **one))
    short = from_directory(make_run(tmp_path / "short", rounds=2, searches=100, **one))
    long, short = curve(long, {0: (0.1, 0), 900: (0.9, 0.9)}), curve(short, {0: (0.1, 0), 100: (0.2, 0.4)})
    footing = find_footing([long, short])
    assert footing is not None and footing.looks == (None, 100) and footing.runs[0].metrics == {"perfect": {}}
    assert "first look came later in long: it is not compared" in explain_budgets([long, short], ["long", "short"])[-1]
    _, refused = judge_differences([long, short], ["long", "short"])
    assert refused[0].reason == "The first run has no such measure up to there."
    assert "long perfect –" in text_of(render_report([long, short]))


def test_a_report_of_several_runs_lies_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_page([Path("runs/a"), Path("runs/b")]) == Path("runs/report.html")
    assert default_page([Path("/some/where/run1"), Path("/some/where/run2")]) == Path("/some/where/report.html")
    assert default_page([Path("/some/one/run1"), Path("/some/two/run2")]) == Path("/some/report.html")
    assert default_page([Path("/here/run1"), Path("/there/run2")]) == Path("/here/report.html")  # not into /
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "grid.json").write_text("{}")
    assert default_page([Path("sweep/a"), Path("sweep/b")]) == Path("sweep/comparison.html")
