"""A recipe carried out before a person's eyes: progress, and a Ctrl-C that loses nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from hushrank.cli.progress import ProgressDisplay

if TYPE_CHECKING:
    from hushrank.recipes.recipe import Recipe
    from hushrank.runs.run import Run, RunOptions


def run_visibly(recipe: Recipe, options: RunOptions, *, quiet: bool, title: str | None = None) -> Run:
    from hushrank.runs.directory import default_directory
    from hushrank.runs.run import run_recipe

    options = replace(options, out=options.out or default_directory(recipe))
    with ProgressDisplay(title or recipe.recipe, quiet=quiet) as display:
        try:
            return run_recipe(
                recipe, replace(options, tell=display.tell, say=display.say, note=display.note, report=display.report)
            )
        except KeyboardInterrupt:
            print(
                f"stopped; what was done is saved. Continue with: hushrank run --resume --out {options.out}",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
