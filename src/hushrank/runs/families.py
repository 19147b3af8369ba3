"""Which recipe belongs to which family of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from hushrank.personal.keys import PERSONAL_SEARCH
from hushrank.recipes.recipe import OFFLINE, Recipe
from hushrank.runs.baseline import prepare_baseline
from hushrank.runs.experiment import Experiment
from hushrank.runs.personal_search import prepare_personal
from hushrank.runs.simulation import prepare_simulation

Tell: TypeAlias = Callable[[str], None]
# {recipe: (recipe, hears of every step, an exported ranker to begin with) -> the experiment}
FAMILIES: dict[str, Callable[[Recipe, Tell, Path | None], Experiment]] = {
    **dict.fromkeys(("fpdgd", "pdgd", "foltr-es"), prepare_simulation),
    **dict.fromkeys(OFFLINE, prepare_baseline),
    PERSONAL_SEARCH: prepare_personal,
}
