"""What a run asks of an experiment: a recipe made ready, of whatever family of models.

`run.py` writes directories, checkpoints, curves, rankers, results and reports, and sweeps run many; none of them knows
how a family trains. `families.py` says which recipe belongs to which family.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hushrank.engine.simulate import CellResult, Options
from hushrank.files import Json
from hushrank.recipes.recipe import Recipe
from hushrank.types import Notice


class RunPlacement(NamedTuple):
    """Where and with what an experiment will be computed."""

    platform: str  # cpu or gpu
    engine: str  # numba, xla, plain, or what else trains it
    reason: str  # why that one, half a sentence
    is_fallback: bool = False  # the plain engine, because what is faster cannot do it


class Experiment(Protocol):
    """A recipe made ready."""

    @property
    def recipe(self) -> Recipe:
        """With what only the data could say."""

    @property
    def identity(self) -> str:
        """Of the data and of all that the recipe names without holding it: no checkpoint is continued under another."""

    def check(self, options: Options) -> RunPlacement:
        """Where it will run; refuses what cannot be done here."""

    def estimate(self, placed: RunPlacement) -> Notice | None:
        """How long it will take, where that is much longer than people expect."""

    def foresee(self) -> list[Notice]:
        """What can be said before it begins."""

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        """Every training, from its last checkpoint on, and the device that did it."""

    def review(self, results: list[CellResult]) -> list[Notice]:
        """What can be said afterwards."""

    def measure(self, result: CellResult) -> dict[str, float]:
        """The metrics of one finished training."""

    def describe(self) -> Json:
        """What the run's JSON says beside recipe, device, time and metrics."""
