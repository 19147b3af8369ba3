"""Tables of docs/howto/forget.md: ways to forget clients, and whether rankers still remember them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tables import USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_count, format_value

_WAYS = ("before", "retrain", "eraser", "fresh", "continue", "rollback", "subtract")


def ways(data: Path) -> str:
    """Every case and way: quality, distance to the retrained ranker, and work."""
    rows = []
    for case, found in read(data, "forgetting")["cases"].items():
        rows.append([f"**{case}**", *[""] * 8])
        measured = [(way, found["ways"][way]) for way in _WAYS if "test" in found["ways"][way]]
        rows += [["(not forgotten)" if way == "before" else f"`{way}`", *_cells(row)] for way, row in measured]
    return make_markdown(
        ["way to forget", *USERS, "L2", "RBO", "rounds", "searches", "CPU seconds, all trainings"], rows
    )


def _cells(row: Row) -> list[str]:
    quality = [show_spread(fmean(row["test"][user]), stdev(row["test"][user])) for user in USERS]
    apart = [format_value(row["distance"][name]) for name in ("l2", "rbo")]
    return [*quality, *apart, f"{row['rounds']:,}", format_count(row["searches"]), format_value(row["cpu_s"])]


def memberships(data: Path) -> str:
    """The area under the ROC curve of the membership test, with its interval, by case, user and way."""
    cases: dict[str, Any] = read(data, "membership")["cases"]
    columns = [(case, user) for case, found in cases.items() for user in found["users"]]
    rows = []
    for way in ("not forgotten", *(way for way in _WAYS if way != "before")):
        cells = [_show_area(cases[case]["users"][user][way]) for case, user in columns]
        rows.append([way if way == "not forgotten" else f"`{way}`", *cells])
    return make_markdown(["ranker", *(f"{case}, {user}" for case, user in columns)], rows)


def _show_area(found: Row) -> str:
    area, low, high = (found[f"membership/auc{end}"] for end in ("", "_low", "_high"))
    return format_value(area) if low is None else f"{format_value(area)} ({format_value(low)} to {format_value(high)})"


TABLES: Tables = {"forget-ways": ways, "forget-memberships": memberships}
