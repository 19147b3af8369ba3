"""A finished run or sweep, read from its directory: arrays and tidy tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hushrank.files import Json, read_json
from hushrank.reports.summary import from_directory
from hushrank.runs.rankers import read_result
from hushrank.runs.result import read_rankers
from hushrank.runs.table import Table, table_of
from hushrank.types import Array

METRIC_COLUMNS = ("metric", "click", "fold", "repeat", "value")
CURVE_COLUMNS = ("metric", "click", "fold", "repeat", "round", "interactions", "value")
CHOICE_COLUMNS = ("click", "fold", "run", "vali", "test")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RunResult:
    """What a run found: tables whose columns are NumPy arrays, and the parameters of its rankers."""

    directory: Path  # recipe, environment, metrics, rankers, result and report as files
    metrics: Table  # one row per metric, click model, fold and repeat: METRIC_COLUMNS
    curves: Table = field(repr=False)  # the same while it learnt, one row per look: CURVE_COLUMNS
    rankers: dict[tuple[str, int, int], Array] = field(repr=False)  # {(click, fold, repeat): [n_params] the last one}
    result: Json = field(repr=False)  # the JSON that `hushrank run --json` prints


def read_run(directory: Path) -> RunResult:
    """A run that has finished; one that has not is refused."""
    summary = from_directory(directory)
    metrics = [
        {"metric": name, "click": click, "fold": one.fold, "repeat": one.repeat, "value": one.value}
        for click, named in summary.metrics.items()
        for name, metric in named.items()
        for one in metric.values
    ]
    curves = [{"metric": one.name, **{name: getattr(one, name) for name in CURVE_COLUMNS[1:]}} for one in summary.curve]
    return RunResult(
        directory,
        metrics=table_of(metrics, METRIC_COLUMNS),
        curves=table_of(curves, CURVE_COLUMNS),
        rankers=read_rankers(directory),
        result=read_result(directory),
    )


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SweepResult:
    """What the runs of a sweep found, and which setting was chosen on validation queries."""

    directory: Path  # one directory per run below it, grid, table and report
    runs: dict[str, RunResult]  # {label such as server_rate=10: a finished run}
    errors: dict[str, str]  # {label: why a run did not finish}
    metrics: Table = field(repr=False)  # of all finished runs: run, the keys that vary, METRIC_COLUMNS
    selected: Table | None  # CHOICE_COLUMNS: one row per click model and fold; None where nothing was to be chosen
    result: Json = field(repr=False)  # the JSON that `hushrank sweep --json` prints


def read_sweep(directory: Path) -> SweepResult:
    """A sweep whose runs are all finished or failed."""
    found = read_json(directory / "table.json")
    rows = {row["label"]: row for row in found["runs"]}
    runs = {label: read_run(directory / row["directory"]) for label, row in rows.items() if row["state"] == "finished"}
    varied = tuple(dict.fromkeys(key for row in rows.values() for key in row["settings"]))
    metrics = [
        {"run": label, **rows[label]["settings"], **row} for label, run in runs.items() for row in run.metrics.rows
    ]
    return SweepResult(
        directory,
        runs=runs,
        errors={label: row["error"] for label, row in rows.items() if row["state"] != "finished"},
        metrics=table_of(metrics, ("run", *varied, *METRIC_COLUMNS)),
        selected=None if found["selected"] is None else tabulate_choices(found["selected"]),
        result=found,
    )


def tabulate_choices(selected: Json) -> Table:
    """What was chosen for each click model in each fold, and its mean nDCG@10 on validation and test queries."""
    rows = [
        {"click": click, "run": chosen["label"], **chosen}
        for click, choice in selected.items()
        for chosen in choice["folds"]
    ]
    return table_of(rows, CHOICE_COLUMNS)
