"""Keys: the settings that a room declares beside what they set, each with type, default, check and one line of help.

The keys of a room are the fields of a frozen dataclass, made with `key`. A method with settings of its own is such a
dataclass, too. Recipes, agreements, command lines and the reference only assemble what is declared.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Check: TypeAlias = Callable[[Any], str | None]  # what is wrong with a value, such as "must be > 0"; None: nothing
Choices: TypeAlias = Callable[[], tuple[str, ...]]  # asked each time, because a plugin may have added one
Settings: TypeAlias = Mapping[str, Any]  # values of keys, by name
_DECLARED = "key"  # where a field's metadata hold what was declared
_MOST = 1e30  # Why: rankers and updates are float32, which end at 3.4e38, and a setting is a factor of them
_WORDS: dict[object, str] = {
    str: "a word",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple[str, ...]: "a list of one or more words",
    tuple[int, ...]: "a list of one or more whole numbers",
    tuple[float, ...]: "a list of one or more numbers",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One setting, as its room declares it."""

    name: str
    kinds: tuple[object, ...]  # the types that a value may have; NoneType: may be left open
    default: object
    help: str  # one line
    check: Check | None = None
    choices: Choices | None = None  # the only values, besides None where that is a kind
    methods: Mapping[str, object] | None = None  # the registry that the value names an entry of; plugins add to it
    only_for: tuple[str, ...] = ()  # modes or methods that have this key; empty: all
    alias: str | None = None  # what it is called inside its room's table
    is_needed: bool = False  # must be agreed where it applies
    is_essential: bool = True  # who does not know it must not join under an agreement that sets it
    is_joined: bool = False  # whether a value may name several methods, joined by +
    may_be_empty: bool = False  # whether a list may have nothing in it

    @property
    def may_be_none(self) -> bool:
        return NoneType in self.kinds


def key(
    default: T,
    help: str,
    *,
    check: Check | None = None,
    choices: Choices | tuple[str, ...] | None = None,
    methods: Mapping[str, object] | None = None,
    only_for: tuple[str, ...] = (),
    alias: str | None = None,
    is_needed: bool = False,
    is_essential: bool = True,
    is_joined: bool = False,
    may_be_empty: bool = False,
) -> T:
    """A dataclass field that is a setting; `Key` says what each argument means."""
    asked = (lambda: choices) if isinstance(choices, tuple) else choices
    if methods is not None and asked is None:
        asked = lambda: tuple(methods)  # noqa: E731
    needs = {"is_needed": is_needed, "is_essential": is_essential}
    allows = {"is_joined": is_joined, "may_be_empty": may_be_empty}
    metadata = {_DECLARED: Key("", (), None, help, check, asked, methods, only_for, alias, **needs, **allows)}
    if isinstance(default, dict):
        return cast(T, dataclasses.field(default_factory=default.copy, metadata=metadata))
    return dataclasses.field(default=default, metadata=metadata)


def required(help: str, *, check: Check | None = None) -> Any:
    """A dataclass field that is a setting without a default."""
    return dataclasses.field(metadata={_DECLARED: Key("", (), None, help, check)})


def keys_of(room: type) -> Mapping[str, Key]:
    """{name: key} of a dataclass, those that it inherits included, in their order."""
    return _read_keys(room)


@cache
def _read_keys(room: type) -> Mapping[str, Key]:
    declared = [f for f in dataclasses.fields(room) if _DECLARED in f.metadata]
    types = get_type_hints(room) if declared else {}
    return {f.name: _complete(f, types[f.name]) for f in declared}


def _complete(field: dataclasses.Field[Any], kind: object) -> Key:
    factory = field.default_factory
    default = factory() if callable(factory) else field.default
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return dataclasses.replace(field.metadata[_DECLARED], name=field.name, kinds=kinds, default=default)


def read_value(key: Key, value: object, *, none_unsets: bool = False) -> Any:
    """The value as the key's type has it: lists become tuples, whole numbers fractions; another kind is refused, and
    so are NaN, infinities and numbers that no training could be done with.

    `none_unsets`: the word none takes the setting back, unless it is one of the key's choices.
    """
    value = tuple(value) if isinstance(value, list) else value
    if none_unsets and is_unset(key, value):
        return None
    for kind in key.kinds:
        if _fits(value, kind) and (value != () or key.may_be_empty):
            if not _is_usable(value, kind):
                raise ValueError(f"{key.name} is {_show(value)}, must be a finite number from -1e30 to 1e30.")
            return _convert(value, kind)
    raise ValueError(f"{key.name} is {_show(value)}, must be {describe_kinds(key)}.")


def is_unset(key: Key, value: object) -> bool:
    """Whether a command line takes an optional setting back with this value."""
    return value == "none" and key.may_be_none and "none" not in (key.choices() if key.choices else ())


def _fits(value: object, kind: object) -> bool:
    if get_origin(kind) is tuple:
        inside = get_args(kind)[0]
        return isinstance(value, tuple) and all(_fits(item, inside) for item in value)
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, cast(type, get_origin(kind) or kind))


def _is_usable(value: Any, kind: object) -> bool:
    """Whether fractions are finite and of a size that anything can be done with."""
    if get_origin(kind) is tuple:
        return all(_is_usable(item, get_args(kind)[0]) for item in value)
    return kind is not float or -_MOST <= value <= _MOST


def _convert(value: Any, kind: object) -> Any:
    if get_origin(kind) is tuple:
        return tuple(_convert(item, get_args(kind)[0]) for item in value)
    return float(value) if kind is float else value


def describe_kinds(key: Key) -> str:
    """In words: `a whole number or a list of one or more whole numbers`."""
    words = " or ".join(_WORDS.get(kind, "a table") for kind in key.kinds if kind is not NoneType)
    return words.replace("one or more ", "") if key.may_be_empty else words


def check_value(key: Key, value: object) -> None:
    """Refuse a value that is none of the key's choices, or that its check complains about."""
    if value is None and key.may_be_none:
        return
    names = key.choices() if key.choices is not None else None
    if key.is_joined and isinstance(value, str) and value not in (names or ()):
        _check_joined(key, value, names or ())
    elif names is not None and value not in names:
        if key.methods is not None:
            raise ValueError(
                f"{key.name} is {_show(value)}; available: {', '.join(names)}. Load your own with --plugin."
            )
        raise ValueError(f"{key.name} is {_show(value)}, must be one of {', '.join(names)}.")
    complaint = key.check(value) if key.check is not None else None
    if complaint:
        raise ValueError(f"{key.name} is {_show(value)}, {complaint}.")


def _check_joined(key: Key, value: str, names: tuple[str, ...]) -> None:
    for part in value.split("+"):
        if part not in names:
            raise ValueError(
                f"{key.name} is {value!r}, and nothing is called {part!r}; {hint_names(part, names)} Join several by +."
            )


def check_values(keys: Iterable[Key], settings: object) -> None:
    """Each key's value in an object that has them as attributes."""
    for key in keys:
        check_value(key, getattr(settings, key.name))


def at_least(least: int) -> Check:
    return lambda value: None if value >= least else f"must be at least {least}"


def above_zero(value: float) -> str | None:
    if not value > 0:
        return "must be > 0"
    return None if value < float("inf") else "must be finite"


def check_share(value: float) -> str | None:
    return None if 0 <= value <= 1 else "must be from 0 to 1"


def check_seed(seed: int) -> str | None:
    return None if 0 <= seed < 2**64 else "must be a whole number from 0 to 2^64 - 1"


def hint_names(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}."


def split_names(methods: Mapping[str, object], name: str) -> list[str]:
    """The methods that a value names: one, or several joined by +."""
    return [name] if name in methods else name.split("+")


def method_keys(methods: Mapping[str, object], name: str | None) -> Mapping[str, Key]:
    """The keys of registered methods: the fields of dataclasses; none of a plain function or an unknown name."""
    found: dict[str, Key] = {}
    for part in () if name is None else split_names(methods, name):
        method = methods.get(part)
        found |= keys_of(method) if isinstance(method, type) and dataclasses.is_dataclass(method) else {}
    return found


def make_method(methods: Mapping[str, Any], name: str, options: Mapping[str, object]) -> Any:
    """The registered method: an instance of its dataclass with these options, or a plain function as it is."""
    method = methods[name]
    return method(**options) if isinstance(method, type) else method


def read_settings(methods: Mapping[str, object], name: str, given: Settings) -> dict[str, Any]:
    """What a registered method is given, where it differs from the defaults: of its types, and refused at the door."""
    known = method_keys(methods, name)
    for each in given:
        if each not in known:
            raise ValueError(f"{name} has no setting {each!r}; {hint_names(each, known)}")
    read = {each: read_value(known[each], value, none_unsets=True) for each, value in sorted(given.items())}
    for each, value in read.items():
        check_value(known[each], value)
    chosen = {each: value for each, value in read.items() if value != known[each].default}
    make_method(methods, name, chosen)  # Why: what a method refuses when it is made is refused here
    return chosen


def make_methods(methods: Mapping[str, object], name: str, options: Mapping[str, object]) -> list[Any]:
    """Each method that a value names, with the options that are its own."""
    return [
        make_method(methods, part, {key: options[key] for key in method_keys(methods, part) if key in options})
        for part in split_names(methods, name)
    ]


def _show(value: object) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)
