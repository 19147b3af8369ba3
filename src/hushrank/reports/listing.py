"""The published results that can be rerun, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hushrank.files import JsonObject
from hushrank.look.numbers import format_duration
from hushrank.reports.terminal import Column, FittedTable, plain_table

_COLUMNS = (Column("name"), Column("shows"), Column("data"), Column("time here"), Column("quick"), Column("left out"))


def list_table(results: Sequence[JsonObject]) -> FittedTable:
    return FittedTable(_COLUMNS, [_row(result) for result in results])


def list_text(results: Sequence[JsonObject]) -> str:
    return plain_table(_COLUMNS, [_row(result) for result in results])


def _row(result: JsonObject) -> list[str]:
    can_run = result["can_run"]
    times = [_time_text(result[key]) if can_run else "" for key in ("seconds", "quick_seconds")]
    return [
        " = ".join([result["name"], *result["aliases"]]),
        result["shows"],
        ", ".join(result["data"]) or "none needed",
        *(times if can_run else ["not yet", ""]),
        "" if can_run else result["why_not"],
    ]


def _time_text(seconds: float) -> str:
    return f"about {format_duration(seconds)}" if seconds >= 1 else "under 1 s"
