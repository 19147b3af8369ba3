"""The demo: central training, federated training, and federated training with a larger step of the server."""

from __future__ import annotations

import shutil
from pathlib import Path

from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.runs.directory import read_recipe_file

_USERS = ("perfect", "navigational", "informational")


def demo_recipes(*, seed: int = 0) -> dict[str, Recipe]:
    """200,000 searches per user and fold each, on generated queries that look like MQ2008's."""
    same = {"clicks": list(_USERS), "rounds": 50, "eval_every": 1, "seed": seed}
    return {
        "central PDGD": change_recipe(NAMED["pdgd"], same),
        "FPDGD": change_recipe(NAMED["fpdgd"], same),
        "FPDGD with server step": change_recipe(NAMED["fpdgd"], same | {"server_optimiser": "momentum"}),
    }


def prepare_demo(directory: Path, *, seed: int) -> None:
    """Make room for a new demo: a finished one is replaced, an unfinished one of the same seed goes on."""
    recipes = demo_recipes(seed=seed)
    runs = {name: directory / name for name in recipes}
    if not directory.exists():
        return
    strangers = [path.name for path in directory.iterdir() if path.name not in {*recipes, "report.html"}]
    if strangers:
        raise ValueError(f"{directory} holds {strangers[0]!r}, which is not the demo's: choose another --out.")
    is_same = all(not runs[name].exists() or read_recipe_file(runs[name]) in (None, recipes[name]) for name in recipes)
    is_finished = all((run / "result.json").exists() for run in runs.values())
    if is_finished or not is_same:
        shutil.rmtree(directory)
