"""Claims judged again from the values of single trainings that a kept result has.

Why: a verdict that was kept is that of the code which ran the trainings; a test that was changed since needs these
values alone. Where they were not kept the verdict stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tables import Row

from hushrank.reports.reproduction_summary import NOT_CELL
from hushrank.reproduce.papers.thesis_chapter4 import quantity_harmless
from hushrank.reproduce.verdicts import Finished, NotJudged, Trials, Verdict

AGAIN: Mapping[str, Callable[[Trials], Verdict]] = {"quantity-harmless": quantity_harmless}  # {claim: its test today}


def judge_again(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result with the verdicts of today."""
    if not any(claim["id"] in AGAIN for claim in result["findings"]):
        return dict(result)
    ran = [row for row in result["rows"] if row["ours"] is not None]
    if not all(row.get("values") for row in ran):
        return dict(result)
    trials = Trials(tuple(collect_trials(ran)))
    return {**result, "findings": [judge_claim(claim, trials) for claim in result["findings"]]}


def judge_claim(claim: Row, trials: Trials) -> dict[str, Any]:
    """As it was, where the values for it were not kept: those of a metric that rows leave out."""
    if claim["id"] not in AGAIN:
        return dict(claim)
    try:
        return {**claim, **AGAIN[claim["id"]](trials).as_json()}
    except (NotJudged, KeyError):
        return dict(claim)


def collect_trials(rows: list[Row]) -> list[Finished]:
    """The trials behind the rows, with what each user reached at the end."""
    found: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {}
    for row in rows:
        cell = {key: value for key, value in row.items() if key not in (*NOT_CELL, "clicks")}
        _, metrics = found.setdefault(repr(cell), (cell, {}))
        metrics.setdefault(row["clicks"], {})[row["metric"]] = {"values": row["values"]}
    return [
        Finished(cell, Path(), {"recipe": {"clicks": list(metrics)}, "metrics": metrics})
        for cell, metrics in found.values()
    ]
