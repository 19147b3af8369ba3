"""Keys: declared once, read, checked and described from there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from hushrank.keys import (
    above_zero,
    at_least,
    check_value,
    check_values,
    describe_kinds,
    hint_names,
    key,
    keys_of,
    make_method,
    method_keys,
    read_value,
)


@dataclass(frozen=True, kw_only=True)
class Walls:
    colour: str = key("white", "of the walls", choices=("white", "grey"))
    n_windows: int | tuple[int, ...] = key(1, "on each wall")


@dataclass(frozen=True, kw_only=True)
class Room(Walls):
    height: float | None = key(None, "in metres", check=above_zero, alias="tall")
    doors: int = key(1, "of the room", check=at_least(1))
    is_open: bool = key(False, "to all")
    names: tuple[str, ...] | None = key(None, "of who lives there")
    widths: tuple[float, ...] = key((1.0,), "of its doors")
    plans: dict[str, int] = key({}, "by name")  # noqa: RUF009 - each room gets a copy
    note: str = "no key"


KEYS = keys_of(Room)


def test_a_room_has_its_own_keys_and_those_that_it_inherits() -> None:
    assert list(KEYS) == ["colour", "n_windows", "height", "doors", "is_open", "names", "widths", "plans"]
    height = KEYS["height"]
    assert (height.name, height.default, height.help, height.alias) == ("height", None, "in metres", "tall")
    assert height.may_be_none and not KEYS["doors"].may_be_none
    assert Room().plans == {} and Room().plans is not Room().plans


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("height", 2, 2.0),
        ("height", None, None),
        ("n_windows", [1, 2], (1, 2)),
        ("n_windows", 3, 3),
        ("names", ["a"], ("a",)),
        ("widths", [1, 2.5], (1.0, 2.5)),
        ("is_open", True, True),
        ("plans", {"a": 1}, {"a": 1}),
    ],
)
def test_values_become_what_their_type_says(name: str, given: object, read: object) -> None:
    found = read_value(KEYS[name], given)
    assert found == read and type(found) is type(read)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("height", "tall", "height is 'tall', must be a number."),
        ("height", True, "height is True, must be a number."),
        ("doors", 1.0, "doors is 1.0, must be a whole number."),
        ("doors", None, "doors is None, must be a whole number."),
        ("is_open", 1, "is_open is 1, must be true or false."),
        ("names", [], "names is [], must be a list of one or more words."),
        ("n_windows", [1, True], "n_windows is [1, True], must be a whole number or a list of one or more whole"),
        ("plans", 3, "plans is 3, must be a table."),
        ("colour", 3, "colour is 3, must be a word."),
        ("height", float("nan"), "height is nan, must be a finite number from -1e30 to 1e30."),
        ("height", float("-inf"), "height is -inf, must be a finite number from -1e30 to 1e30."),
        ("height", 1e300, "height is 1e+300, must be a finite number from -1e30 to 1e30."),
        ("height", 10**400, "must be a finite number from -1e30 to 1e30."),
        ("widths", [1, float("inf")], "widths is [1, inf], must be a finite number from -1e30 to 1e30."),
    ],
)
def test_another_kind_is_refused(name: str, given: object, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_value(KEYS[name], given)


def test_the_word_none_takes_a_setting_back_unless_it_is_a_choice() -> None:
    @dataclass(frozen=True)
    class Modes:
        mode: str | None = key(None, "may be none", choices=("none", "some"))
        other: str | None = key(None, "may not", choices=("some",))

    modes = keys_of(Modes)
    assert read_value(modes["mode"], "none", none_unsets=True) == "none"
    assert read_value(modes["other"], "none", none_unsets=True) is None
    assert read_value(modes["other"], "none") == "none"  # a choice that is refused later


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "colour is 'red', must be one of white, grey."),
        ({"height": 0.0}, "height is 0.0, must be > 0."),
        ({"height": float("inf")}, "height is inf, must be finite."),
        ({"doors": 0}, "doors is 0, must be at least 1."),
    ],
)
def test_what_a_room_does_not_allow_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        check_values(KEYS.values(), Room(**changes))
    check_values(KEYS.values(), Room())


def test_kinds_are_told_in_words() -> None:
    assert describe_kinds(KEYS["n_windows"]) == "a whole number or a list of one or more whole numbers"
    assert describe_kinds(KEYS["height"]) == "a number"


def test_the_nearest_name_is_suggested() -> None:
    assert hint_names("door", KEYS) == "did you mean 'doors'?"
    assert hint_names("zzz", ["a", "b"]) == "known: a, b."


def test_a_method_is_a_function_or_a_dataclass_with_keys() -> None:
    def plain() -> str:
        return "plain"

    registry: dict[str, Any] = {"plain": plain, "room": Room}
    assert make_method(registry, "plain", {}) is plain
    assert make_method(registry, "room", {"doors": 3}) == Room(doors=3)
    assert method_keys(registry, "room") == KEYS
    assert method_keys(registry, "plain") == method_keys(registry, "gone") == method_keys(registry, None) == {}


def test_a_registered_name_that_is_missing_is_told_with_the_way_to_bring_it() -> None:
    registry = {"mean": len}

    @dataclass(frozen=True)
    class Chooser:
        rule: str = key("mean", "how", methods=registry)

    rule = keys_of(Chooser)["rule"]
    with pytest.raises(ValueError, match=r"rule is 'mine'; available: mean\. Load your own with --plugin\."):
        check_value(rule, "mine")
    registry["mine"] = len
    check_value(rule, "mine")  # a plugin may add to it at any time
