"""Options: the keys that a registered method declares for itself, beside those that every recipe has.

    @dataclass(frozen=True)
    class TrimmedMean:
        n_trimmed: int = key(1, "updates left out at each end of every coordinate", check=at_least(0))

Registries may grow while a program runs (`--plugin`), so they are read each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from types import NoneType
from typing import TYPE_CHECKING

from hushrank.keys import Key, check_value, make_methods, method_keys, read_value
from hushrank.recipes.rooms import CHOOSERS, ROOM_KEYS

if TYPE_CHECKING:
    from hushrank.recipes.recipe import Recipe


def list_options() -> dict[str, dict[str, list[str]]]:
    """{option: {key that chooses the method: names of the methods that have it}}"""
    owners: dict[str, dict[str, list[str]]] = {}
    for chooser, declared in CHOOSERS.items():
        for method in declared.methods or ():
            for name in _declared_by(chooser, method):
                owners.setdefault(name, {}).setdefault(chooser, []).append(method)
    return owners


def options_for(recipe: Recipe, chooser: str) -> dict[str, object]:
    """What the recipe gives to the method that this key chooses: `options_for(recipe, "aggregation")`."""
    known = _declared_by(chooser, getattr(recipe, chooser))
    return {name: value for name, value in recipe.options.items() if name in known}


def read_options(recipe: Recipe) -> dict[str, object]:
    """The options that differ from their defaults, of their types; refuses those that no chosen method has."""
    given = {name: value for name, value in recipe.options.items() if not _is_taken_back(recipe, name, value)}
    read = {name: _read_option(recipe, name, value) for name, value in given.items()}
    kept = {name: value for name, value in read.items() if any(value != key.default for key in _chosen(recipe, name))}
    for chooser, declared in CHOOSERS.items():
        method = getattr(recipe, chooser)
        if declared.methods and method_keys(declared.methods, method):
            known = _declared_by(chooser, method)
            for name, key in known.items():
                if key.default is MISSING and name not in kept:
                    raise ValueError(f"{chooser}={method} needs {name}: {key.help}.")
            # Why: what a method refuses when it is made is refused at the door
            make_methods(declared.methods, method, {name: value for name, value in kept.items() if name in known})
    return kept


def _read_option(recipe: Recipe, name: str, value: object) -> object:
    found = _chosen(recipe, name)
    if not found:
        raise ValueError(_describe_misplaced(recipe, name))
    for key in found:
        value = read_value(key, value, none_unsets=True)
        check_value(key, value)
    return value


def _is_taken_back(recipe: Recipe, name: str, value: object) -> bool:
    """None, or the word none where no word is meant, leaves an option at its default or behind."""
    kinds = {kind for key in _chosen(recipe, name) for kind in key.kinds}
    return (value is None or (value == "none" and str not in kinds)) and NoneType not in kinds


def _chosen(recipe: Recipe, name: str) -> list[Key]:
    """The declarations of this option by the methods that the recipe names."""
    declared = (_declared_by(chooser, getattr(recipe, chooser)) for chooser in CHOOSERS)
    return [known[name] for known in declared if name in known]


def _declared_by(chooser: str, method: str | None) -> Mapping[str, Key]:
    known = method_keys(CHOOSERS[chooser].methods or {}, method)
    taken = [name for name in known if name in ROOM_KEYS or name in ("recipe", "options")]
    if taken:
        raise ValueError(f"{chooser}={method} declares {taken[0]}, which every recipe has: call it something else.")
    return known


def _describe_misplaced(recipe: Recipe, name: str) -> str:
    owners = list_options().get(name, {})
    places = " or ".join(f"{chooser}={' or '.join(methods)}" for chooser, methods in owners.items())
    here = ", ".join(f"{chooser} is {getattr(recipe, chooser)!r}" for chooser in owners)
    return f"{name} is for {places}; here {here}."
