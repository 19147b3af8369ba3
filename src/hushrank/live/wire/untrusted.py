"""JSON that anybody may have written: as deep, and with numbers as large, as an honest program needs, and no more."""

from __future__ import annotations

import json
import math

MOST_DEPTH = 16  # Why: the deepest that we say ourselves, the description of the wire apart, is three levels
MOST_NUMBER = 10**18 - 1  # the largest whole number; fractions may be larger, but must be finite


def parse_untrusted(content: bytes) -> object:
    """The value in these bytes; ValueError for whatever is no JSON, too deep, or holds a number beyond all bounds."""
    try:
        value: object = json.loads(
            content, parse_int=_read_whole, parse_float=_read_fraction, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise ValueError(f"JSON of more than {MOST_DEPTH} levels") from error
    _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    """Level by level, so that checking cannot itself go too deep."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _within(outer)]
        if not level:
            return
    raise ValueError(f"JSON of more than {MOST_DEPTH} levels")


def _within(outer: dict[str, object] | list[object]) -> list[object]:
    return list(outer.values()) if isinstance(outer, dict) else outer


def _read_whole(text: str) -> int:
    if len(text) > len(str(MOST_NUMBER)) + 1 or abs(int(text)) > MOST_NUMBER:
        raise ValueError("JSON with a whole number beyond 10^18")
    return int(text)


def _read_fraction(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("JSON with a number that is not finite")
    return number


def _refuse_constant(text: str) -> float:
    raise ValueError(f"JSON with {text}, which is no number")
