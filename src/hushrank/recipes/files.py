"""Recipes from files: TOML with keys or tables of keys, and the JSON that a run keeps."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from hushrank.keys import check_value, hint_names, keys_of
from hushrank.recipes.options import list_options
from hushrank.recipes.recipe import KEYS, NAMED, Recipe, change_recipe, recipe_from_json
from hushrank.recipes.rooms import ROOMS

_PUBLISHED = re.compile(r"[a-z-]+\.(table|figure)[\d.]+")


def find_recipe(name_or_file: str) -> Recipe:
    """A named recipe, or one from a TOML file (`recipe = "fpdgd"` and any other keys)."""
    if name_or_file in NAMED:
        return NAMED[name_or_file]
    if Path(name_or_file).suffix in (".toml", ".json") or Path(name_or_file).is_file():
        return read_recipe(Path(name_or_file))
    if _PUBLISHED.fullmatch(name_or_file):
        raise ValueError(f"{name_or_file} is a table or figure: rerun it with hushrank reproduce {name_or_file}")
    near = difflib.get_close_matches(name_or_file, NAMED, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(NAMED)}, or the path of a TOML file."
    raise ValueError(f"no recipe is called {name_or_file!r}; {hint}")


def read_recipe(path: Path) -> Recipe:
    """From a TOML file, or from the recipe.json of a run: to change one thing of it."""
    if path.suffix == ".json":
        return recipe_from_json({key: value for key, value in read_json(path).items() if key != "format"})
    values = read_toml(path)
    if "grid" in values or "case" in values:
        raise ValueError(f"{path} is a grid of recipes: run it with hushrank sweep {path}")
    if "recipe" not in values:
        raise ValueError(f'{path} does not say which method to run: add a line such as recipe = "fpdgd".')
    return build_recipe(values)


def build_recipe(values: Mapping[str, object]) -> Recipe:
    """From what a TOML file says; without `recipe`, fpdgd."""
    changes = {name: value for name, value in values.items() if name != "recipe"}
    return change_recipe(find_recipe(str(values.get("recipe", "fpdgd"))), flatten_tables(changes))


def read_json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not the recipe of a run: {error}.") from error
    if not isinstance(found, dict) or "recipe" not in found:
        raise ValueError(f"{path} is not the recipe of a run: it must hold the keys of a recipe, no others.")
    return found


def read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(
            f"{path} does not exist. Give a recipe's name ({', '.join(NAMED)}) or the path of a TOML file."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from error


def flatten_tables(values: Mapping[str, object]) -> dict[str, object]:
    """{key: value} of keys that stand for themselves or in the table of their room; each may stand once."""
    flat: dict[str, object] = {}
    places: dict[str, str] = {}
    for name, place, value in _walk(values):
        if name in flat:
            raise ValueError(f"{name} is given twice, as {places[name]} and as {place}: keep one of them.")
        flat[name], places[name] = value, place
    return flat


def _walk(values: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """(key, where it stands, value) of every setting."""
    for name, value in values.items():
        if not isinstance(value, Mapping) or (name in KEYS and name not in ROOMS):
            yield name, name, value
        elif name not in ROOMS:
            raise ValueError(f"no table of a recipe is called [{name}]; {hint_names(name, ROOMS)}")
        else:
            known = list_table(name)
            for inner, setting in value.items():
                if inner not in known:
                    _check_method(name, value)
                    raise ValueError(f"no key of the table [{name}] is called {inner!r}; {hint_names(inner, known)}")
                yield known[inner], f"{inner} in [{name}]", setting


def _check_method(table: str, values: Mapping[str, object]) -> None:
    """Why: a method that no plugin has brought is why its options are not known."""
    for declared in keys_of(ROOMS[table]).values():
        named = values.get(declared.alias or "", values.get(declared.name))
        if declared.methods is not None and named is not None:
            check_value(declared, named)


def list_table(table: str) -> dict[str, str]:
    """{name inside the table: recipe key}; options of methods stand in the table of their registry."""
    declared = keys_of(ROOMS[table])
    aliases = {key.alias: name for name, key in declared.items() if key.alias is not None}
    own = {name: name for name, owners in list_options().items() if any(chooser in declared for chooser in owners)}
    return {**own, **aliases, **{name: name for name in declared}}
