"""Tables of docs/howto/forget.md: ways to forget clients, and whether rankers still remember them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tables import USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_count, format_p, format_signed, format_value

_WAYS = ("before", "retrain", "eraser", "fresh", "continue", "rollback", "subtract")
_RELEARNT = ("not forgotten", "retrain", "retrain, another seed", *_WAYS[2:])


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


def relearnings(data: Path) -> str:
    """Rounds until the leaver is learnt again, beside the retrained ranker and beside the way's twin."""
    rows = []
    for case, found in read(data, "membership")["cases"].items():
        for user, ways in found["users"].items():
            rows.append([f"**{case}, {user}**", *[""] * 4])
            rows += [[_name_way(way), *_show_relearning(ways[way])] for way in _RELEARNT]
    return make_markdown(["ranker", "rounds", "not learnt again", "minus `retrain`", "minus its twin"], rows)


def _name_way(way: str) -> str:
    return way if way.startswith("not") else f"`{way}`" if "," not in way else f"`retrain`, {way.partition(', ')[2]}"


def _show_relearning(found: Row) -> list[str]:
    rounds = show_spread(found["relearning/rounds"], found["relearning/rounds_std"])
    open_ = f"{found['relearning/open']} of {found['relearning/leavers']}"
    return [rounds, open_, *(_show_difference(found, f"relearning/minus_{other}") for other in ("retrained", "twin"))]


def _show_difference(found: Row, name: str) -> str:
    if name not in found:
        return ""
    mean, low, high = (format_signed(found[f"{name}{end}"], decimals=1) for end in ("", "_low", "_high"))
    return f"{mean} ({low} to {high}), p {format_p(found[f'{name}_p'])}" if found[f"{name}_p"] < 1 else "0"


TABLES: Tables = {"forget-ways": ways, "forget-memberships": memberships, "forget-relearnings": relearnings}
