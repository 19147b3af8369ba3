"""What single generated users reached in the trials behind a result: with it every paired test can be repeated.

Of real users no single number is kept anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hushrank.files import Json, JsonObject, write_text
from hushrank.reports.summary import from_directory
from hushrank.reproduce.verdicts import Trials

FILE = "users.json"  # beside result.json
FORMAT = 1
_DECIMALS = 5


def list_singles(outcome: Trials, metrics: Sequence[str]) -> list[Json]:
    """Of every trial that has single numbers of these metrics."""
    found = [(trial.cell, from_directory(trial.directory).users) for trial in outcome.finished if not trial.is_diverged]
    return [
        describe_singles(cell, {metric: users[metric] for metric in metrics if metric in users})
        for cell, users in found
        if users.keys() & set(metrics)
    ]


def describe_singles(cell: JsonObject, values: Mapping[str, Mapping[int, float]]) -> Json:
    """values: {metric: {user: value}}"""
    each = {
        metric: {"users": list(found), "values": [round(value, _DECIMALS) for value in found.values()]}
        for metric, found in values.items()
    }
    return {"cell": dict(cell), "metrics": each}


def write_singles(directory: Path, name: str, singles: Sequence[Json]) -> None:
    """A line for each trial; nothing where no single number is known."""
    if not singles:
        return
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in singles)
    text = f'{{"format": {FORMAT}, "name": {json.dumps(name)}, "trials": [\n{lines}\n]}}\n'
    write_text(directory / FILE, text)
