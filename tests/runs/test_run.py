"""A run is refused before anything is written, by the plan that it would follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hushrank.recipes.plugin import load_plugins
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.run import RunOptions, run_recipe


def test_more_devices_than_there_are_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    recipe = change_recipe(NAMED["fpdgd"], {"data": "tiny", "n_clients": 4, "rounds": 1})
    with pytest.raises(ValueError, match="devices is 9, must be from 1 to 1, the number that JAX sees"):
        run_recipe(recipe, RunOptions(out=tmp_path / "run", devices=9))
    assert not (tmp_path / "run").exists()


def test_the_engine_and_its_reason_are_said_and_kept(tmp_path: Path) -> None:
    said: list[str] = []
    recipe = change_recipe(NAMED["fpdgd"], {"data": "tiny", "folds": [1], "n_clients": 4, "rounds": 2})
    done = run_recipe(recipe, RunOptions(out=tmp_path / "run", say=said.append))
    assert said == ["engine numba: the fastest for this ranker on a processor"]
    known = json.loads((done.directory / "environment.json").read_text())
    assert f"engine {known['engine']}: {known['engine_reason']}" == said[0]
    assert "the fastest for this ranker on a processor" in (done.directory / "report.html").read_text()


def test_a_fall_to_the_plain_engine_is_estimated_before_it_begins(tmp_path: Path) -> None:
    heard: list[str] = []
    (tmp_path / "mine.py").write_text(PLUGIN)
    load_plugins([str(tmp_path / "mine.py")])
    small = {"data": "tiny", "folds": [1], "n_clients": 4, "rounds": 2, "learner": "own-and-slow"}
    recipe = change_recipe(NAMED["fpdgd"], small)
    run_recipe(
        recipe,
        RunOptions(
            out=tmp_path / "run",
            say=heard.append,
            note=lambda notice: heard.append(notice.line),
            report=lambda _: heard.append("trains"),
        ),
    )
    assert heard[0] == "engine plain: the fast engines do not do learner=own-and-slow"
    assert heard[1].startswith("warning: The plain engine is slow: 32 searches, about ")  # 4 clients x 4 x 2 rounds
    assert "estimated" in heard[1] and "pull" in heard[1] and heard.index("trains") > 1
    asked: list[str] = []
    again = RunOptions(out=tmp_path / "asked", engine="plain", note=lambda notice: asked.append(notice.name))
    run_recipe(change_recipe(recipe, {"learner": "pdgd"}), again)
    assert "plain-engine" not in asked


PLUGIN = """
import hushrank

@hushrank.learner("own-and-slow")
def own_and_slow(ranker, params, features, scores, ranking, is_clicked):
    return ranker.score_gradient(params, features[ranking], is_clicked.astype(scores.dtype))
"""
