"""Trials that malicious clients made diverge: a result, and the worst that there is."""

from __future__ import annotations

from collections.abc import Iterable

from hushrank.engine.evaluate import DIVERGED
from hushrank.files import Json
from hushrank.recipes.recipe import Recipe, as_json
from hushrank.reproduce.reproduction import DataChoice, Trial

WHY = f"{DIVERGED}: counts as 0"


def is_diverged(recipe: Recipe, error: str | None) -> bool:
    """Whether a run failed because those who attack it have won. Why by its words: it ran in another process."""
    return error is not None and DIVERGED in error and recipe.n_malicious > 0


def make_worst(trial: Trial, data: DataChoice, metrics: Iterable[str]) -> Json:
    """The JSON of a run, as far as claims need it, with 0 for every training: at least one of them diverged."""
    recipe = trial.recipe
    folds = recipe.folds or range(1, data.n_folds + 1)
    values = [{"fold": fold, "repeat": repeat, "value": 0.0} for fold in folds for repeat in range(recipe.repeats)]
    worst = {name: {"mean": 0.0, "std": 0.0, "values": values} for name in metrics}
    is_one = isinstance(recipe.clicks, str)
    return {
        "recipe": as_json(recipe),
        "metrics": worst if is_one else dict.fromkeys(recipe.users, worst),
        "is_diverged": True,
    }
