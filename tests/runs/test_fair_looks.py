"""Runs of unequal length are compared where all of them were looked at, and rounds count by their searches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushrank.engine.simulate import CellResult
from hushrank.federation.seen import ONLINE, SEARCHES
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.differences import judge_differences
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.runs.result import curve_rows
from hushrank.runs.run import RunOptions, run_recipe


def train(place: Path, **changes: object) -> RunSummary:
    small = {"data": "tiny", "n_clients": 20, "clicks": ["perfect"], **changes}
    run_recipe(change_recipe(NAMED["fpdgd"], small), RunOptions(out=place))
    return from_directory(place)


def test_the_same_training_stopped_earlier_is_no_worse(tmp_path: Path) -> None:
    """Both share every draw. The last look that both have is after 16 rounds, and nothing differs there."""
    short = train(tmp_path / "short", rounds=20, eval_every=4)
    long = train(tmp_path / "long", rounds=50, eval_every=8)
    judged, _ = judge_differences([short, long], ["short", "long"])
    assert judged and all(one.comparison.mean_difference == 0 for one in judged)


def test_without_a_shared_look_nothing_is_tested(tmp_path: Path) -> None:
    short = train(tmp_path / "short", rounds=20, eval_every=11)
    long = train(tmp_path / "long", rounds=50, eval_every=13)
    judged, not_tested = judge_differences([short, long], ["short", "long"])
    assert not judged and any("Choose eval_every so that both" in one.reason for one in not_tested)


def test_a_round_without_searches_does_not_lower_what_a_search_showed() -> None:
    shown = {ONLINE: np.array([0.5, 0.0, 0.7, 0.0]), SEARCHES: np.array([1, 0, 3, 0])}
    looks = {"round": np.array([0, 3, 4]), "offline/nDCG@10": np.array([0.1, 0.2, 0.3])}
    result = CellResult("perfect", 1, 0, np.zeros(2), shown, looks)
    rows = [row for row in curve_rows(result) if row["name"].startswith("online")]
    assert [(row["round"], row["value"]) for row in rows] == [(3, pytest.approx((0.5 + 3 * 0.7) / 4))]
