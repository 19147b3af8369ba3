"""A family of models that is no ranker of features uses the same runs: directories, checkpoints, resuming, reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hushrank.engine.simulate import CellResult, Options, drive_tasks
from hushrank.files import Json
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.runs.experiment import RunPlacement
from hushrank.runs.families import FAMILIES
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.types import NamedArrays, Notice


@dataclass(frozen=True)
class Histories:
    """A `Task`: remembers as many searches as there were rounds, and ranks better with each."""

    rounds: int
    eval_every: int = 2
    most_rounds: int = 3

    def start(self) -> NamedArrays:
        return {"history": np.zeros(self.rounds), "params": np.zeros(1)}

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        history, here = state["history"].copy(), np.arange(first - 1, first + n - 1)
        history[here] = here + 1
        seen = {"online": (here + 1) / 100, "searches": np.full(n, 5)}
        return {**state, "history": history, "params": state["params"] + n}, seen

    def examine(self, state: NamedArrays) -> NamedArrays:
        known = np.asarray(np.count_nonzero(state["history"]) / 100)
        return {"offline/MAP": known, "offline/nDCG@10": known, "vali/nDCG@10": known}


@dataclass(frozen=True)
class Personalised:
    """An `Experiment` of one task."""

    recipe: Recipe
    identity: str = "histories"

    def check(self, options: Options) -> RunPlacement:
        del options
        return RunPlacement("cpu", "histories", "there is no other")

    def estimate(self, placed: RunPlacement) -> None:
        del placed

    def foresee(self) -> list[Notice]:
        return [Notice("short", "Histories are short.", "Wait.")]

    def review(self, results: list[CellResult]) -> list[Notice]:
        return [Notice("few", f"There was {len(results)} training.", "Repeat it.")]

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        (done,) = drive_tasks([Histories(self.recipe.rounds)], options, workers=1)
        user = self.recipe.users[0]
        return [CellResult(user, 1, 0, done.state["params"], done.shown, done.looks)], "cpu"

    def measure(self, result: CellResult) -> dict[str, float]:
        return {name: float(values[-1]) for name, values in result.looks.items() if name != "round"}

    def describe(self) -> Json:
        known = {"name": "histories", "normalise": "none", "fingerprint": "", "n_features": 0}
        counts = {"n_test_queries": 1, "n_queries_skipped": 0}
        words: Json = {"privacy": "None.", "who_learns_what": [], "guarantee": None, "nDCG@10": "as it is"}
        return {"data": {**known, **counts}, "bytes_per_client_round": 4, "rounds_lost": 0, **words}


def personalise(recipe: Recipe, tell: Callable[[str], None], start: Path | None) -> Personalised:
    del tell, start
    return Personalised(recipe)


def test_another_family_runs_stops_resumes_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "fpdgd", personalise)
    recipe, out = change_recipe(NAMED["fpdgd"], {"rounds": 7}), tmp_path / "r"
    done = run_recipe(recipe, RunOptions(out=out)).result
    assert done["metrics"]["offline/MAP"]["mean"] == 0.07 and done["n_interactions"] == 35
    curve = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    maps = [row["value"] for row in curve if row["name"] == "offline/MAP"]
    assert maps == [0.0, 0.02, 0.04, 0.06, 0.07]  # after rounds 0, 2, 4, 6 and 7
    assert [one["name"] for one in done["warnings"]] == ["short", "few"]
    assert "Histories are short. Wait." in (out / "report.html").read_text()
    assert json.loads((out / "environment.json").read_text())["engine"] == "histories"
    assert "report.html" in {path.name for path in out.iterdir()}
    again = run_recipe(recipe, RunOptions(out=out, resume=True)).result
    assert again["metrics"] == done["metrics"]
