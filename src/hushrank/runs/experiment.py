"""What a run asks of an experiment: a recipe made ready, of whatever family of models.

`run.py` writes directories, checkpoints, curves, rankers, results and reports, and sweeps run many; none of them knows
how a family trains. `families.py` says which recipe belongs to which family.
"""

from __future__ import annotations

from typing import Protocol

from hushrank.engine.simulate import CellResult, Options
from hushrank.files import Json
from hushrank.recipes.recipe import Recipe


class Experiment(Protocol):
    """A recipe made ready."""

    @property
    def recipe(self) -> Recipe:
        """With what only the data could say."""

    @property
    def identity(self) -> str:
        """Of the data and of all that the recipe names without holding it: no checkpoint is continued under another."""

    def check(self, options: Options) -> str:
        """The platform that it will run on; refuses what cannot be done here."""

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        """Every training, from its last checkpoint on, and the device that did it."""

    def measure(self, result: CellResult) -> dict[str, float]:
        """The metrics of one finished training."""

    def describe(self) -> Json:
        """What the run's JSON says beside recipe, device, time and metrics."""
