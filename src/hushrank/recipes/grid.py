"""A grid: one recipe, and the keys that a sweep varies. Every point of it is a recipe of its own, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from hushrank.recipes.files import build_recipe, find_recipe, read_toml
from hushrank.recipes.recipe import Recipe, as_json, change_recipe, hash_recipe
from hushrank.recipes.values import parse_value

_NO_FILE_NAME = re.compile(r"[^\w.=+-]+")


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of the axes' values, for every case."""

    recipe: Recipe  # what stays the same
    axes: tuple[tuple[str, tuple[object, ...]], ...] = ()  # (key, values)
    cases: tuple[tuple[tuple[str, object], ...], ...] = ()  # keys that change together: one alternative each


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One recipe of a grid."""

    label: str  # what is special about it, such as server_rate=10
    settings: dict[str, object]  # the keys that the grid sets
    recipe: Recipe

    @property
    def directory(self) -> str:
        """A name for its run: readable, and different for different recipes."""
        return f"{_NO_FILE_NAME.sub('_', self.label)[:60].strip('_')}-{hash_recipe(self.recipe)}"


def expand(grid: Grid) -> list[GridPoint]:
    """The points, the last axis fastest. A key that does not exist or a value that cannot be is refused here."""
    keys = [key for key, _ in grid.axes]
    points = []
    for case in grid.cases or ((),):
        for values in product(*(values for _, values in grid.axes)):
            settings = {**dict(case), **dict(zip(keys, values, strict=True))}
            label = " ".join(f"{key}={_in_words(value)}" for key, value in settings.items()) or grid.recipe.recipe
            points.append(GridPoint(label, settings, change_recipe(grid.recipe, settings)))
    _refuse_repeats(points)
    return points


def _refuse_repeats(points: list[GridPoint]) -> None:
    seen: dict[str, str] = {}
    for point in points:
        before = seen.setdefault(hash_recipe(point.recipe), point.label)
        if before != point.label or sum(other.label == point.label for other in points) > 1:
            raise ValueError(f"the grid has the same recipe twice: {before}, and {point.label}. Name each value once.")


def _in_words(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_in_words, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_grid(path: Path) -> Grid:
    """A recipe file with `[grid]` (key = list of values) and perhaps `[[case]]` tables."""
    values = read_toml(path)
    axes, cases = values.pop("grid", {}), values.pop("case", [])
    if not isinstance(axes, Mapping) or not isinstance(cases, list):
        raise ValueError(f"{path}: write the grid as [grid] with key = [values], and alternatives as [[case]] tables.")
    return make_grid(build_recipe(values), axes, cases)


def make_grid(recipe: Recipe, axes: Mapping[str, object], cases: list[Mapping[str, object]] | None = None) -> Grid:
    """A grid from plain values, its points checked."""
    listed: dict[str, tuple[object, ...]] = {}
    for key, values in axes.items():
        if not isinstance(values, list | tuple) or not values:
            raise ValueError(f"grid key {key} is {values!r}, must be a list of one or more values.")
        if any(key in case for case in cases or ()):
            raise ValueError(f"{key} stands in [grid] and in a [[case]]: keep it in one of them.")
        listed[key] = tuple(values)
    grid = Grid(recipe, tuple(listed.items()), tuple(tuple(case.items()) for case in cases or ()))
    expand(grid)
    return grid


def parse_axes(assignments: list[str]) -> dict[str, object]:
    """`--grid key=[1, 10]` or `--grid key=1,10`."""
    axes = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"--grid {assignment!r} has no '='; write --grid key=1,10.")
        axes[key.strip()] = [parse_value(part) for part in text.split(",")] if "[" not in text else parse_value(text)
    return axes


def grid_as_json(grid: Grid) -> dict[str, Any]:
    axes = {key: list(values) for key, values in grid.axes}
    return {"recipe": as_json(grid.recipe), "axes": axes, "cases": [dict(case) for case in grid.cases]}


def find_grid(name_or_file: str, *, axes: Mapping[str, object], changes: Mapping[str, object]) -> Grid:
    """A file's grid or a named recipe, with keys changed and axes added."""
    path = Path(name_or_file)
    known = read_grid(path) if path.suffix == ".toml" else Grid(find_recipe(name_or_file))
    return vary_grid(known, axes=axes, changes=changes, name=name_or_file)


def vary_grid(known: Grid, *, axes: Mapping[str, object], changes: Mapping[str, object], name: str) -> Grid:
    """The grid with keys changed and axes added; one without any value to vary is refused."""
    old = grid_as_json(known)
    grid = make_grid(change_recipe(known.recipe, changes), {**old["axes"], **axes}, old["cases"])
    if not grid.axes and not grid.cases:
        raise ValueError(f"{name}: nothing to sweep. Add [grid] to the file, or --grid key=1,10.")
    return grid
