"""Work carried out before a person's eyes: progress, and a Ctrl-C that loses nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
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
    again = f"hushrank run --resume --out {options.out}"
    return show_work(partial(run_recipe, recipe), options, quiet=quiet, title=title or recipe.recipe, again=again)


def show_work(work: Callable[[RunOptions], Run], options: RunOptions, *, quiet: bool, title: str, again: str) -> Run:
    """again: the command that continues it."""
    with ProgressDisplay(title, quiet=quiet) as display:
        heard = replace(options, tell=display.tell, say=display.say, note=display.note, report=display.report)
        try:
            return work(heard)
        except KeyboardInterrupt:
            print(f"stopped; what was done is saved. Continue with: {again}", file=sys.stderr)
            raise typer.Exit(130) from None
