"""Is the difference real? Tests against the first run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runs import make_run

from hushrank.metrics.significance import paired_t_test
from hushrank.reports.differences import compare_with_first, find_differences
from hushrank.reports.summary import Metric, RunSummary, Value, from_directory
from hushrank.reports.wording import OFFLINE, ONLINE, VALI, run_labels


def metric(*values: float) -> Metric:
    return Metric(sum(values) / len(values), 0.1, tuple(Value(i + 1, 1, value) for i, value in enumerate(values)))


def run_with(path: Path, offline: Metric, online: Metric) -> RunSummary:
    run = from_directory(make_run(path, clicks="perfect", n_folds=1, n_repeats=1, n_evaluations=1))
    return replace(run, metrics={"perfect": {OFFLINE: offline, ONLINE: online, VALI: offline}})


@pytest.fixture
def three(tmp_path: Path) -> list[RunSummary]:
    options: dict[str, Any] = {"n_evaluations": 2}
    return [
        from_directory(make_run(tmp_path / "pdgd", recipe="pdgd", top=0.69, **options)),
        from_directory(make_run(tmp_path / "fpdgd", top=0.70, **options)),
        from_directory(make_run(tmp_path / "fpdgd-adam", top=0.71, **options)),
    ]


def test_p_is_corrected_for_the_offline_and_online_tests_together(tmp_path: Path) -> None:
    first = run_with(tmp_path / "a", metric(0.50, 0.60, 0.70), metric(50, 60, 70))
    second = run_with(tmp_path / "b", metric(0.51, 0.62, 0.73), metric(50, 61, 69))
    p = paired_t_test([0.51, 0.62, 0.73], [0.50, 0.60, 0.70]).p  # differences .01, .02, .03: t = 2 sqrt(3)
    html = compare_with_first([first, second], ["a", "b"])
    assert html.count("<tr>") == 1 + 2  # headings, test and online; validation is not tested
    assert f'data-value="{p}"' in html and f'data-value="{2 * p}"' in html
    assert "all 2 tests of this page" in html and "Validation is not tested" in html


def test_paired_tests_only_where_folds_repeats_and_data_match(three: list[RunSummary], tmp_path: Path) -> None:
    found = find_differences(three, run_labels(three))
    assert len(found) == 2 * 3 and all(d.comparison is not None and d.comparison.n == 10 for d in found)
    other = from_directory(make_run(tmp_path / "other", n_repeats=3, n_evaluations=2))
    (only, *_) = find_differences([three[0], other], ["a", "b"])
    assert only.comparison is None and "folds and repeats" in only.reason
    elsewhere = replace(three[1], data={"fingerprint": "another"})
    assert "used other data" in compare_with_first([three[0], elsewhere], ["a", "b"])


def test_many_runs_that_cannot_be_tested_are_named_briefly(three: list[RunSummary]) -> None:
    others = [replace(three[1], data={"fingerprint": str(i)}) for i in range(30)]
    html = compare_with_first([three[0], *others], ["first", *(f"run {i}" for i in range(30))])
    assert "and 85 more. The first run used other data." in html  # 30 runs x 3 users, of which five are named


@pytest.mark.parametrize(("shift", "verdict"), [(0.01, "higher"), (-0.01, "lower"), (1e-6, "higher"), (-1e-6, "lower")])
def test_a_real_difference_is_named_by_its_direction_however_small(tmp_path: Path, shift: float, verdict: str) -> None:
    # differences .9, 1 and 1.1 times the shift: |t| = 1 / (.1 / sqrt(3)) = 17, beyond every usual limit
    later = metric(0.50 + 0.9 * shift, 0.60 + shift, 0.70 + 1.1 * shift)
    first, second = (run_with(tmp_path / name, of, of) for name, of in (("a", metric(0.5, 0.6, 0.7)), ("b", later)))
    shown = re.findall(r"<td>(higher|lower|no difference shown)</td>", compare_with_first([first, second], ["a", "b"]))
    assert shown == [verdict] * 2  # test and online


def test_equal_runs_show_no_difference(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", metric(0.5, 0.6), metric(50, 60))
    assert compare_with_first([run, run], ["a", "b"]).count("no difference shown") == 2


def test_names_are_escaped(three: list[RunSummary]) -> None:
    assert "<b>" not in compare_with_first(three, ["<b>first", "<b>second", "<b>third"])
