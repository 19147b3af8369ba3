"""Values as people write them on a command line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any


def parse_assignments(assignments: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """`--set key=value` pairs; values are TOML, else strings."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"{option} {assignment!r} has no '='; write {option} key=value.")
        values[key.strip()] = parse_value(text)
    return values


def parse_value(text: str) -> Any:
    """TOML, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
