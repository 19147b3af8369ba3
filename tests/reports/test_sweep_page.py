"""The page of a sweep, and its table for the terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from fake_results import make_sweep
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import Checker, text_of
from rich.console import Console

from hushrank.reports.sweep import render_sweep, sweep_table, sweep_text, write_sweep
from hushrank.reports.sweep_chart import axis_line, find_axis
from hushrank.reports.sweep_summary import chosen_text, outcome, read_sweep
from hushrank.reports.wording import OFFLINE

GRID: dict[str, list[Any]] = {"server_rate": [1, 10], "ranker": ["linear", "mlp"]}


def unfinished() -> dict[str, Any]:
    sweep = make_sweep({"server_rate": [1, 10, 100]}, users=("perfect",), select=False)
    sweep["runs"][0] |= {"state": "failed", "error": "ValueError: <b>no</b>\nmemory", "metrics": None}
    sweep["runs"][2] |= {"state": "waiting", "metrics": None}
    return sweep


def test_the_page_says_what_was_chosen_and_why_fold_by_fold() -> None:
    text = text_of(render_sweep(make_sweep(users=("perfect",))))
    assert "5 runs finished; with settings chosen on validation queries the test nDCG@10 is .700" in text
    assert "server_rate=10 (4 folds), server_rate=1 (1 fold)" in text
    assert "another fold&#x27;s test queries, so choosing on the mean would look at test" in text


def test_without_a_choice_the_page_warns_of_the_highest_on_test() -> None:
    text = text_of(render_sweep(make_sweep(select=False)))
    assert "server_rate=10 has the highest test nDCG@10: .700" in text
    assert "flatters itself" in text and "--select vali" in text


def test_the_page_stands_alone_and_links_only_to_its_runs() -> None:
    checker = Checker()
    checker.feed(render_sweep(make_sweep(GRID)))
    assert checker.open == []
    links = {address for address in checker.fetched if not address.startswith("data:")}
    assert len(links) == 4 and all(re.fullmatch(r"\./[\w%.-]+/report\.html", link) for link in links)


def test_one_axis_is_named_by_the_run_and_several_have_columns() -> None:
    assert '<th scope="col">server_rate</th>' not in render_sweep(make_sweep())
    page = render_sweep(make_sweep(GRID))
    assert '<th scope="col">server_rate</th><th scope="col">ranker</th><th scope="col">user</th>' in page
    assert 'data-copy="server_rate=1 ranker=linear"><a href="./' in page


def test_failed_runs_have_their_error_in_a_line_and_waiting_ones_are_counted() -> None:
    page = render_sweep(unfinished())
    assert "ValueError: &lt;b&gt;no&lt;/b&gt; memory" in page
    text = text_of(page)
    assert "Of 3 runs 1 finished, 1 failed and 1 is waiting" in text
    assert "1 run failed and 1 run has not begun. Run them with: hushrank sweep --resume" in text
    assert page.count('href="./') == 1  # only the finished run has a report


def test_a_sweep_of_which_nothing_has_finished_says_so() -> None:
    sweep = make_sweep({"server_rate": [1, 10]})
    for run in sweep["runs"]:
        run |= {"state": "waiting", "metrics": None}
    text = text_of(render_sweep(sweep | {"selected": None}))
    assert "None of 2 runs has finished yet: 2 are waiting." in text
    assert "settings are chosen when runs have finished" in text and "Quality against" not in text


def test_an_empty_sweep_says_what_would_be_there() -> None:
    text = text_of(render_sweep(make_sweep({})))
    assert "This sweep has no runs" in text and "would be listed here" in text


@pytest.mark.parametrize(
    ("axes", "key", "is_log"),
    [
        ({"server_rate": [1, 10]}, "server_rate", False),  # a decade, not more
        ({"server_rate": [1, 11]}, "server_rate", True),
        ({"server_rate": [0, 100]}, "server_rate", False),  # 0 has no logarithm
        ({"ranker": ["linear", "mlp"], "n_clients": [1, 2]}, "n_clients", False),
        ({"rounds": [1, 2], "n_clients": [1, 2, 3]}, "n_clients", False),  # the one with more values
    ],
)
def test_the_chart_runs_along_the_numeric_axis_with_most_values(axes: dict[str, Any], key: str, is_log: bool) -> None:
    runs = [{"settings": {name: v}} for name, values in axes.items() for v in values]
    rows = [
        {"label": str(i), "directory": "d", "state": "waiting", "error": None, "metrics": None, **run}
        for i, run in enumerate(runs)
    ]
    axis = find_axis(read_sweep({"name": "s", "axes": axes, "runs": rows}))
    assert axis is not None and (axis.key, axis.is_log) == (key, is_log)


def test_words_and_switches_are_no_axis() -> None:
    sweep = make_sweep({"ranker": ["linear", "mlp"], "fast": [True, False]})
    assert find_axis(read_sweep(sweep)) is None and "Quality against" not in render_sweep(sweep)


def test_a_run_without_a_result_leaves_a_gap_in_its_line() -> None:
    sweep = read_sweep(unfinished())
    axis = find_axis(sweep)
    assert axis is not None
    line = axis_line(axis, "fpdgd", sweep.runs, OFFLINE, click="perfect")
    assert line.x == (1, 10, 100) and line.y[1] == 0.7 and line.y[0] != line.y[0] and line.y[2] != line.y[2]


def test_at_most_eight_combinations_are_drawn_and_the_others_named() -> None:
    sweep = make_sweep({"server_rate": [1, 10], "name": [f"n{'x' * i}" for i in range(10)]}, users=("perfect",))
    text = text_of(render_sweep(sweep))
    assert "Of 10 combinations 8 are drawn" in text
    assert "2 that are not drawn name=nxxxxxxxx name=nxxxxxxxxx" in text  # the longer a name, the lower its quality


def test_the_terminal_has_a_line_for_each_run_and_user_and_for_what_was_chosen() -> None:
    lines = sweep_text(make_sweep({"server_rate": [1, 10]}, users=("perfect", "navigational"))).split("\n")
    assert len(lines) == 1 + 2 * 2 + 2
    assert lines[0].split()[:4] == ["run", "user", "test", "nDCG@10"] and "state" not in lines[0]
    assert lines[-1].startswith("chosen on validation  navigational")
    assert len({line.index("±") for line in lines[1:]}) == 1


def test_the_terminal_tells_failed_from_waiting() -> None:
    lines = sweep_text(unfinished()).split("\n")
    assert lines[1].endswith("failed: ValueError: <b>no</b> memory") and lines[3].endswith("waiting")
    out = io.StringIO()
    Console(file=out, width=200).print(sweep_table(unfinished()))
    assert "failed: ValueError: <b>no</b> memory" in out.getvalue()


def test_names_from_outside_are_escaped() -> None:
    sweep = make_sweep({"<i>rate": [1, 10]}, users=("<u>user",)) | {"name": "<script>name"}
    page = render_sweep(sweep)
    assert "<i>" not in page and "<u>" not in page and "<script>name" not in page


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(["finished", "failed", "waiting"]), max_size=6), st.booleans())
def test_any_mixture_of_states_makes_a_page_whose_outcome_is_one_sentence(states: list[str], select: bool) -> None:
    sweep = make_sweep({"server_rate": [1, 10, 30, 100, 200, 300][: len(states)]} if states else {}, select=select)
    for run, state in zip(sweep["runs"], states, strict=True):
        run |= {"state": state} if state == "finished" else {"state": state, "metrics": None}
    checker = Checker()
    checker.feed(render_sweep(sweep))
    assert checker.open == [] and outcome(read_sweep(sweep)).endswith(".")
    assert sweep_text(sweep).count("\n") >= len(states)


def test_the_most_frequent_choice_comes_first_and_a_single_one_needs_no_count() -> None:
    (selected,) = read_sweep(make_sweep(users=("perfect",))).selected
    assert chosen_text(selected).startswith("server_rate=10 (4")
    (alone,) = read_sweep(make_sweep({"server_rate": [1]}, users=("perfect",))).selected
    assert chosen_text(alone) == "server_rate=1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "newer hushrank"),
        ({"runs": [{"label": "a"}]}, "is damaged"),
        ({"runs": [{"label": "a", "directory": "d", "state": "asleep"}]}, "must be one of finished, failed, waiting"),
    ],
)
def test_a_damaged_sweep_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        render_sweep(make_sweep() | change)
    assert "\n" not in str(caught.value)


def test_writing_makes_the_folder_and_says_where_the_page_is(tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    assert write_sweep(make_sweep(), target) == target and target.read_text().startswith("<!doctype html>")
