"""A run is a directory: recipe, environment, checkpoints, metrics, rankers, result, report. Each file is written whole.

`result.json` comes last: a directory without it is a run that has not finished, and `--resume` finishes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from hushrank.files import Json, refuse_newer, sweep_unfinished, write_json
from hushrank.locks import lock_directory
from hushrank.recipes.recipe import Recipe, as_json, hash_recipe, recipe_from_json

FORMAT = 1
FORGETTING = "forgetting.json"  # in the place of recipe.json, where clients of another run are forgotten


def default_directory(recipe: Recipe) -> Path:
    """runs/<recipe>-<time>-<hash>"""
    return Path("runs") / f"{recipe.recipe}-{datetime.now():%Y%m%d-%H%M%S}-{hash_recipe(recipe)}"


def refuse_existing(directory: Path) -> None:
    """At the door, before anything is loaded or computed."""
    if directory.exists():
        is_begun = (directory / FORGETTING).is_file() or read_recipe_file(directory)
        hint = "add --resume to continue it" if is_begun else "remove it"
        raise ValueError(f"{directory} exists: {hint}, or choose another --out.")


def begin_directory(directory: Path) -> None:
    """A directory for checkpoints and results, without what a killed process left half written."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "checkpoints").mkdir(exist_ok=True)
    for place in (directory, directory / "checkpoints"):
        sweep_unfinished(place)


def make_directory(directory: Path, recipe: Recipe) -> None:
    """The run's directory with its recipe, whole or not at all."""
    if (directory / FORGETTING).is_file():
        raise ValueError(f"clients of another run are forgotten in {directory}: choose another --out.")
    begin_directory(directory)
    known = read_recipe_file(directory)
    if known is None:
        write_json(directory / "recipe.json", {"format": FORMAT, **as_json(recipe)})
    elif as_json(known) != as_json(recipe):
        old, new = as_json(known), as_json(recipe)
        changed = ", ".join(
            f"{key} was {old.get(key)!r}, is {new.get(key)!r}" for key in {**old, **new} if old.get(key) != new.get(key)
        )
        raise ValueError(
            f"{directory} belongs to another recipe ({changed}). Resume with the old settings, or choose another --out."
        )


def read_recipe_file(directory: Path) -> Recipe | None:
    """The recipe of a run's directory; None where there is none."""
    path = directory / "recipe.json"
    try:
        values: Json = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove {directory} and run again.") from error
    refuse_newer(directory, values.pop("format", FORMAT), FORMAT)
    return recipe_from_json(values)


def locked(directory: Path) -> AbstractContextManager[None]:
    """One process at a time works on a run."""
    refusal = f"another process is working on {directory}. Wait for it, or choose another --out."
    return lock_directory(directory, refusal=refusal)


class Spent:
    """Processor and wall seconds over all the processes that worked on a run."""

    def __init__(self, directory: Path, *, clock: Callable[[], float], processor: Callable[[], float]) -> None:
        self._path, self._clock, self._processor = directory / "spent.json", clock, processor
        self._start = (clock(), processor())
        try:
            before = json.loads(self._path.read_text())
            self._before = (float(before["wall_s"]), float(before["cpu_s"]))
        except (OSError, ValueError, KeyError):
            self._before = (0.0, 0.0)

    def read(self) -> dict[str, float]:
        now = (self._clock(), self._processor())
        wall, cpu = (b + n - s for b, n, s in zip(self._before, now, self._start, strict=True))
        return {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3)}

    def save(self) -> None:
        write_json(self._path, self.read())
