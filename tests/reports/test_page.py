"""The report page: what it says, and that it stands alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from fake_runs import make_run
from reading import Checker, text_of

from hushrank.look.numbers import format_spread
from hushrank.reports.curves import MAX_POINTS, CurvePoint, PublishedValue, drawn_runs, thin
from hushrank.reports.page import render_report, write_report
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.reports.wording import run_labels


@pytest.fixture
def three(tmp_path: Path) -> list[RunSummary]:
    return [
        from_directory(make_run(tmp_path / "pdgd", recipe="pdgd", top=0.69, n_clients=1)),
        from_directory(make_run(tmp_path / "fpdgd", top=0.70)),
        from_directory(make_run(tmp_path / "fpdgd-adam", server_optimiser="adam", privacy="Only sums, with noise.")),
    ]


def test_the_page_stands_alone_and_is_well_formed(three: list[RunSummary]) -> None:
    page = render_report(three)
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.fetched and all(address.startswith("data:") for address in checker.fetched)
    assert not re.search(r"https?://|url\(|@import", page)


def test_the_page_holds_the_numbers_and_names_the_metric(three: list[RunSummary]) -> None:
    text = text_of(render_report(three)).replace("\u2007", "").replace("&#x27;", "'")
    for run in three:
        for named in run.metrics.values():
            metric = named["offline/nDCG@10"]
            assert format_spread(metric.mean, metric.std) in text
    assert "nDCG(dcg='exp-log2')@10" in text and "skipped (220 here)" in text
    for words in ("5 folds × 2 repeats", "184 B", "3 min 12 s", "Only sums, with noise.", "b85f19f", "4 March 2026"):
        assert words in text


def test_differences_between_recipes_are_marked_with_a_sign(three: list[RunSummary]) -> None:
    page = render_report(three)
    assert '<td class="code differs" data-copy="adam">≠ adam</td>' in page
    assert "≠ linear" not in page
    assert page.index("≠ adam") < page.index("that all runs share")


def test_the_csv_behind_a_chart_holds_every_point(three: list[RunSummary]) -> None:
    links = re.findall(r'href="data:text/csv;charset=utf-8,([^"]+)"', render_report(three))
    tables = [unquote(link).split("\r\n") for link in links]
    assert len(tables) == 1 + 3 * 2  # the results, then two charts for each of three users
    assert tables[0][0] == "run,click,metric,fold,repeat,value"
    assert tables[1][0].startswith("run,click,metric,round,interactions,mean") and len(tables[1]) == 1 + 3 * 20


def test_names_from_outside_are_escaped(tmp_path: Path) -> None:
    path = make_run(tmp_path / "<img src=x onerror=alert(1)>", clicks=["<i>perfect"], ranker="<script>x")
    page = render_report([from_directory(path)])
    assert "<img" not in page and "<i>" not in page and "<script>x" not in page
    assert "&lt;script&gt;x" in page


def test_a_single_result_says_that_it_has_no_spread(tmp_path: Path) -> None:
    run = from_directory(make_run(tmp_path / "one", clicks="perfect", n_folds=1, n_repeats=1, n_evaluations=1))
    text = text_of(render_report([run]))
    assert "has no spread to show" in text and "nan" not in text.lower()
    assert not re.search(r"± ", text)


def test_a_run_without_curves_or_environment_says_what_is_missing(tmp_path: Path) -> None:
    path = make_run(tmp_path / "bare", clicks="perfect")
    (path / "metrics.jsonl").unlink()
    assert "Set eval_every in the recipe" in render_report([from_directory(path)])


def test_a_value_that_is_not_finite_is_a_dash_and_a_gap(tmp_path: Path) -> None:
    path = make_run(tmp_path / "diverged", clicks="perfect")
    result = json.loads((path / "result.json").read_text())
    result["metrics"]["vali/nDCG@10"] = {"mean": float("nan"), "std": None, "values": []}
    (path / "result.json").write_text(json.dumps(result))
    text = text_of(render_report([from_directory(path)]))
    assert "–" in text and "nan" not in text.lower()


def test_published_values_are_drawn_where_they_belong(three: list[RunSummary]) -> None:
    lines = [PublishedValue("a paper", 0.72, click="perfect"), PublishedValue("a sum", 54.0, metric="online/nDCG@10")]
    page = render_report(three, references=lines)
    assert page.count(">a paper</text>") == 2 and ">a sum</text>" not in page  # the wide drawing and the narrow one
    assert "Dotted lines are published values" in page and "sums over rounds and therefore not drawn" in page
    assert "published values" not in render_report(three)


def test_sixty_runs_draw_the_first_and_the_best_and_say_what_is_left_out(tmp_path: Path) -> None:
    options: dict[str, Any] = {"clicks": "perfect", "n_folds": 1, "n_repeats": 1, "n_evaluations": 2}
    runs = [
        from_directory(make_run(tmp_path / f"r{i:02}", top=0.5 + 0.005 * i, server_rate=i, **options))
        for i in range(60)
    ]
    assert drawn_runs(runs) == [0, *range(53, 60)]
    page = render_report(runs)
    labels = re.findall(r'<text class="label"[^>]*>(r\d\d)</text>', page)
    assert set(labels) == {runs[i].name for i in drawn_runs(runs)}
    text = text_of(page)
    assert "Of 60 runs 8 are drawn" in text and "52 runs that are not drawn r01 r02" in text
    assert "≠ 59" in text  # what differs stands below each other, a row for each run
    assert '<th scope="col">server_rate</th>' in page


def test_few_runs_are_all_drawn(three: list[RunSummary]) -> None:
    assert drawn_runs(three) == [0, 1, 2] and "are drawn" not in render_report(three)
    assert drawn_runs([]) == []


def test_runs_are_named_by_choice_or_by_what_differs(tmp_path: Path) -> None:
    paths = [
        make_run(tmp_path / f"fpdgd-20260304-10203{i}-ab12c{i}", n_folds=1, server_rate=rate)
        for i, rate in enumerate((1.0, 10.0))
    ]
    runs = [from_directory(path) for path in [*paths, make_run(tmp_path / "mine", n_folds=1)]]
    assert run_labels(runs[:2]) == ["fpdgd server_rate=1", "fpdgd server_rate=10"]
    assert run_labels([runs[0]]) == ["fpdgd"]
    assert run_labels([runs[2], runs[2]]) == ["mine (1)", "mine (2)"]


def test_long_curves_are_thinned_to_their_ends_and_even_steps() -> None:
    points = [CurvePoint(i, 10.0 * i, 0.5, None, 1) for i in range(5000)]
    kept = thin(points)
    assert len(kept) == MAX_POINTS and (kept[0].round, kept[-1].round) == (0, 4999)


def test_writing_replaces_the_file_at_once_and_leaves_nothing_behind(tmp_path: Path, three: list[RunSummary]) -> None:
    target = tmp_path / "out" / "report.html"
    assert write_report(three[:1], target) == target
    first = target.read_text(encoding="utf-8")
    write_report(three, target)
    assert target.read_text(encoding="utf-8") != first
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        render_report([])
