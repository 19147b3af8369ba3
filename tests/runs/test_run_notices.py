"""What can spoil an experiment in silence is said, on the screen, in result.json and on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushrank
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.summary import from_directory
from hushrank.reports.terminal import warning_lines
from hushrank.runs.notices import (
    notice_clicks,
    notice_fall,
    notice_logged_clicks,
    notice_scores,
    notice_unmoved,
    share_of_fixed_lists,
)
from hushrank.runs.run import Run, RunOptions, run_recipe
from hushrank.types import Array, Notice, QuerySet

DEAF = {"deaf": {"click": [0.0, 0.0, 0.0], "stop": [0.0, 0.0, 0.0]}}  # clicks on nothing


def small_run(out: Path, *, recipe: str = "fpdgd", **changes: Any) -> tuple[Run, list[Notice]]:
    """A finished run, and what was said about it."""
    heard: list[Notice] = []
    small = {"data": "tiny", "folds": [1], "n_clients": 5, "rounds": 4, **changes}
    return run_recipe(change_recipe(NAMED[recipe], small), RunOptions(out=out, note=heard.append)), heard


def queries_of(*lengths: int) -> QuerySet:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    n = int(starts[-1])
    return QuerySet(np.zeros((n, 1), np.float32), np.zeros(n, np.uint8), starts, tuple(map(str, range(len(lengths)))))


def test_a_usual_run_is_not_warned_about(tmp_path: Path) -> None:
    done, heard = small_run(tmp_path / "r")
    assert heard == [] and done.result["warnings"] == []


def test_people_who_never_click_are_named_before_the_run_and_its_ranker_after_it(tmp_path: Path) -> None:
    done, heard = small_run(tmp_path / "r", clicks="deaf", click_tables=DEAF)
    assert [notice.name for notice in heard] == ["no-clicks", "ranker-still"]
    assert "0 under deaf" in heard[0].sentence and "in every training" in heard[1].sentence
    assert [one["name"] for one in done.result["warnings"]] == ["no-clicks", "ranker-still"]
    page = (done.directory / "report.html").read_text()
    assert "Warnings and notes" in page and heard[0].sentence in page and heard[1].advice in page
    assert warning_lines([from_directory(done.directory)])[0] == f"r: {heard[0].line}"


def test_an_old_run_without_warnings_and_engine_still_reads(tmp_path: Path) -> None:
    done, _ = small_run(tmp_path / "r", clicks="deaf", click_tables=DEAF)
    for name, missing in (("result.json", ["warnings"]), ("environment.json", ["engine", "engine_reason"])):
        path = done.directory / name
        kept = {key: value for key, value in json.loads(path.read_text()).items() if key not in missing}
        path.write_text(json.dumps(kept))
    assert from_directory(done.directory).warnings == ()
    assert "Warnings" not in hushrank.report(done.directory).read_text()
    assert hushrank.load_run(done.directory).metrics["value"].size > 0


def test_scores_that_leave_nothing_to_sample_are_named(tmp_path: Path) -> None:
    _, heard = small_run(tmp_path / "r", learning_rate=1e6)
    assert "fixed-lists" in [notice.name for notice in heard]
    _, heard = small_run(tmp_path / "es", recipe="foltr-es", server_rate=1e6)  # whose lists are sorted, not sampled
    assert "fixed-lists" not in [notice.name for notice in heard]


def test_a_list_is_fixed_when_its_first_place_is_as_good_as_certain() -> None:
    # gaps of 8, 6, 8 with a tie at the top; 1 / (1 + e^-8) = .9997, 1 / (1 + e^-6) = .9975, 2 / (2 + e^-8) > .999
    scores = np.array([8.0, 0, 6, 0, 8, 8, 0])
    assert share_of_fixed_lists(queries_of(2, 2, 3), scores) == pytest.approx(2 / 3)
    assert share_of_fixed_lists(queries_of(2, 1), np.array([1e30, -1e30, 5.0])) == 1.0  # a list of one says nothing
    assert share_of_fixed_lists(queries_of(2), np.zeros(2)) == 0.0


def test_only_mostly_fixed_lists_are_worth_a_warning() -> None:
    assert notice_scores([0.89, 0.5], 10.0) == []
    (found,) = notice_scores([0.95, 0.5], 2e9)
    assert "in 1 of 2 trainings" in found.sentence and "2e+09" in found.sentence


def test_a_user_is_silent_below_one_click_in_a_hundred_searches() -> None:
    assert notice_clicks({"perfect": 0.01}, n_searches=200) == []
    (found,) = notice_clicks({"perfect": 0.3, "shy": 0.005}, n_searches=200)
    assert "1 under shy" in found.sentence and "perfect" not in found.sentence
    assert notice_logged_clicks(0.5, n_impressions=10) == []
    assert "0 were clicked on" in notice_logged_clicks(0.0, n_impressions=10)[0].sentence


def test_a_ranker_that_moved_to_the_same_quality_is_another_finding() -> None:
    assert notice_unmoved([True, True], [True, True]) == []
    assert [n.name for n in notice_unmoved([True, False], [False, False])] == ["ranker-still", "quality-still"]


@pytest.mark.parametrize(
    ("looks", "falls"),
    [
        ([[0.3, 0.5, 0.49, 0.48, 0.47, 0.46]], True),  # .04 below its best, .01 from look to look
        ([[0.3, 0.5, 0.495, 0.49, 0.489, 0.485]], False),  # .015: not worth a word
        ([[0.3, 0.5, 0.46, 0.5, 0.46, 0.46]], False),  # .04, as often before
        ([[0.3, 0.5, 0.51, 0.52, 0.53, 0.54]], False),
        (
            [[0.3, 0.5, 0.5, 0.5, 0.5, 0.3], [0.3, 0.5, 0.5, 0.5, 0.5, 0.6]],
            False,
        ),  # .05 on the mean, standard error .15
        (
            [[0.3, 0.5, 0.5, 0.5, 0.5, 0.44], [0.3, 0.5, 0.5, 0.5, 0.5, 0.46]],
            True,
        ),  # .05 on the mean, standard error .01
        ([[0.3]], False),
    ],
)
def test_quality_that_clearly_fell_is_named(looks: list[list[float]], falls: bool) -> None:
    curves: dict[str, Array] = {"perfect": np.array(looks)}
    assert [n.name for n in notice_fall(curves)] == (["quality-fell"] if falls else [])


def test_a_plateau_with_noise_is_hardly_ever_called_a_fall() -> None:
    """The best of fifty noisy looks is high by chance; a collapse seen at few looks is none."""
    noise = np.random.default_rng(7).normal(0.6, 0.02, (200, 1, 50))
    assert sum(bool(notice_fall({"perfect": looks})) for looks in noise) <= 10
    for looks in ([0.6, 0.3], [0.6, 0.6, 0.3], [0.3, 0.6, 0.1]):
        assert notice_fall({"perfect": np.array([looks])})
