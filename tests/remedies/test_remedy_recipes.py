"""Remedies in recipes: what is refused before anything is written, and what a run says about them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hushrank
from hushrank.aggregation.named import RULES
from hushrank.cli.main import app
from hushrank.recipes.guarantee import explain_guarantee
from hushrank.recipes.recipe import NAMED, as_json, change_recipe, recipe_from_json
from hushrank.recipes.resolve import resolve_method
from hushrank.remedies.named import REMEDIES
from hushrank.remedies.remedy import Begun, Remedy, Turn
from hushrank.reports.summary import from_directory
from hushrank.reports.terminal import result_text

INTENTS = "intent-change-like:n_queries=30,mean_length=30,shortest=20,longest=60,n_features=10"
SMALL: dict[str, Any] = {
    **{"data": INTENTS, "partition": "intents", "carry": 1, "n_clients": 8, "rounds": 4, "interactions": 2},
    **{"repeats": 1, "seed": 3, "learning_rate": 0.1},
}
MISUSE: list[tuple[str, dict[str, Any], str]] = [
    ("pdgd", {"remedy": "fedprox"}, "recipe pdgd has no simulated clients that send updates: leave remedy out"),
    ("foltr-es", {"remedy": "tastes"}, "recipe foltr-es has no simulated clients that send updates"),
    ("mse", {"remedy": "fedprox"}, "remedy is for learning from clicks; recipe mse learns from labels"),
    ("fpdgd", {"remedy": "fedprox", "log": "clicks.jsonl"}, "a click log has no simulated clients that send updates"),
    ("fpdgd", {"remedy": "tastes", "aggregation": "middle"}, "use aggregation=mean and no attack"),
    (
        "fpdgd",
        {"remedy": "interpolation", "attack": "sign-flip", "n_malicious": 1},
        "use aggregation=mean and no attack",
    ),
    ("fpdgd", {"remedy": "control-variates", "privacy": "paper", "epsilon": 1.0, "sensitivity": 1.0}, "privacy=paper"),
    ("fpdgd", {"remedy": "fedprox", "mu": -0.1}, "mu is -0.1, must be at least 0"),
    ("fpdgd", {"remedy": "interpolation", "own_share": 1.5}, "own_share is 1.5, must be from 0 to 1"),
    ("fpdgd", {"remedy": "control-variates", "correction": -1}, "correction is -1.0, must be from 0 to 1"),
    ("fpdgd", {"remedy": "tastes", "n_tastes": -1}, "n_tastes is -1, must be at least 0"),
    ("fpdgd", {"remedy": "tastes", "memory": 0}, "memory is 0.0, must be > 0"),
    ("fpdgd", {"remedy": "fedper"}, "keeps output/weights for each client, but ranker=linear has weights"),
    ("fpdgd", {"remedy": "fedper", "ranker": "mlp", "personal": ["input"]}, "but ranker=mlp has hidden/weights"),
    ("fpdgd", {"remedy": "fedprox", "n_tastes": 3}, "n_tastes is for remedy=tastes; here remedy is 'fedprox'"),
    ("fpdgd", {"remedy": "nothing"}, "remedy is 'nothing'; available: none, fedprox"),
]


@pytest.fixture(autouse=True)
def a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "middle", lambda updates, weights: np.median(updates, axis=0))  # noqa: ARG005


@pytest.mark.parametrize(("recipe", "keys", "said"), MISUSE)
def test_what_cannot_work_is_refused_before_anything_is_written(
    recipe: str, keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        change_recipe(NAMED[recipe], keys)
    with pytest.raises(ValueError, match=re.escape(said)):
        hushrank.run(recipe, out=tmp_path / "run", **keys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("keys", [("remedy=fedper",), ("remedy=fedper", "personal=[]", "mu=1")])
def test_on_the_command_line_it_is_one_line(keys: tuple[str, ...], tmp_path: Path) -> None:
    sets = [part for key in keys for part in ("--set", key)]
    command = [sys.executable, "-m", "hushrank", "run", "fpdgd", "--data", "tiny", "--out", "run", *sets]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1
    assert "fedper" in done.stderr and not (tmp_path / "run").exists()


def test_a_remedy_that_sees_single_updates_is_free_to_meet_rules_where_it_keeps_nothing() -> None:
    change_recipe(NAMED["fpdgd"], {"remedy": "fedprox", "aggregation": "middle"})
    change_recipe(NAMED["fpdgd"], {"remedy": "fedprox", "privacy": "paper", "epsilon": 1.0, "sensitivity": 1.0})


@pytest.mark.parametrize("ranker", ["linear", "mlp"])
def test_no_personal_layers_are_an_empty_list_which_survives_a_file(ranker: str) -> None:
    recipe = change_recipe(NAMED["fpdgd"], {"remedy": "fedper", "personal": [], "ranker": ranker})
    assert as_json(recipe)["personal"] == []
    assert recipe_from_json(as_json(recipe)) == recipe
    assert resolve_method(recipe, n_features=4).n_personal == 0


def test_a_recipe_without_a_remedy_is_called_what_it_was() -> None:
    from hushrank.recipes.recipe import hash_recipe

    assert hash_recipe(change_recipe(NAMED["fpdgd"], {"remedy": "none"})) == hash_recipe(NAMED["fpdgd"])


def test_bytes_and_guarantee_are_of_the_whole_message(tmp_path: Path) -> None:
    found = hushrank.run("fpdgd", out=tmp_path / "run", **{**SMALL, "remedy": "tastes", "n_tastes": 2})
    assert found.result["bytes_per_client_round"] == 4 * (10 + 2 * (10 + 2))
    masked = {"secure_sum": True, "privacy": "sound", "noise_at": "clients", "n_honest": 6, "epsilon": 4.0}
    recipe = change_recipe(NAMED["fpdgd"], {**SMALL, "remedy": "control-variates", **masked})
    method = resolve_method(recipe, n_features=10)
    assert method.secure_sum is not None and method.n_sent == 20
    told = explain_guarantee(recipe, method)
    assert told is not None and told["epsilon"] == pytest.approx(4.0, rel=0.05)


def test_a_run_says_who_learns_what_by_its_remedy(tmp_path: Path) -> None:
    said = {}
    for remedy in ("tastes", "interpolation", "none"):
        keys = {"n_tastes": 2} if remedy == "tastes" else {}
        found = hushrank.run("fpdgd", out=tmp_path / remedy, **{**SMALL, "remedy": remedy, **keys})
        said[remedy] = {line["who"]: line["learns"] for line in found.result["who_learns_what"]}
    assert "which taste the client has" in said["tastes"]["the server, by the remedy"]
    assert "sees it for every client that answers" in said["tastes"]["the server, by the remedy"]
    assert "stays on it" in said["interpolation"]["the server, by the remedy"]
    assert "the server, by the remedy" not in said["none"]


def test_the_quality_of_own_rankers_is_in_the_json_the_curves_the_terminal_and_the_page(tmp_path: Path) -> None:
    found = hushrank.run("fpdgd", out=tmp_path / "run", **{**SMALL, "remedy": "interpolation"})
    measured = found.metrics.where(metric="personal/nDCG@10")["value"]
    assert len(measured) and (measured > 0).all()
    curves = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"personal/nDCG@10", "vali/personal/nDCG@10"} <= {row["name"] for row in curves}
    summary = from_directory(tmp_path / "run")
    assert "personal nDCG@10" in result_text([summary])
    page = hushrank.report(tmp_path / "run").read_text(encoding="utf-8")
    assert "personal nDCG@10" in page and "own test queries, the mean over clients" in page


def test_an_exported_ranker_starts_a_federation_with_personal_layers(tmp_path: Path) -> None:
    small = {**SMALL, "ranker": "mlp", "hidden": 3, "rounds": 2}
    first = hushrank.run("fpdgd", out=tmp_path / "one", **small)
    exported = CliRunner().invoke(app, ["export", str(first.directory), "--out", str(tmp_path / "r.safetensors")])
    assert exported.exit_code == 0, exported.output
    again = hushrank.run(
        "fpdgd", out=tmp_path / "two", start=tmp_path / "r.safetensors", **{**small, "remedy": "fedper"}
    )
    assert again.metrics.where(metric="personal/nDCG@10")["value"].size


def test_a_remedy_of_ones_own_runs_by_the_name_of_its_decorator() -> None:
    @hushrank.remedy("halfway")
    @dataclass(frozen=True)
    class Halfway(Remedy):
        """Every client begins halfway to nothing."""

        has_memory = True

        def begin(self, turn: Turn) -> Begun:
            return Begun(super().begin(turn).starts * 0.5)

    try:
        runs = [hushrank.run("fpdgd", **{**SMALL, "remedy": "halfway"}, engine=name) for name in ("plain", "numba")]
        both = [found.metrics.where(metric="offline/nDCG@10")["value"].mean() for found in runs]
        assert both[0] == pytest.approx(both[1], abs=1e-6)
        with pytest.raises(TypeError, match="must be a class that inherits"):
            hushrank.remedy("other")(print)  # type: ignore[type-var]
    finally:
        REMEDIES.pop("halfway", None)
