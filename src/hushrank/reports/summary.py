"""A finished run as a report sees it, read from its directory.

A run directory holds `recipe.json`, `result.json`, `metrics.jsonl` (one measurement per line) and `environment.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushrank.files import Json, JsonObject, refuse_newer

SUPPORTED_FORMAT = 1
NDCG = "offline/nDCG@10"  # what runs are judged by that say nothing else
USERS_FILE = "users.safetensors"  # in a run's directory: metrics of single users


@dataclass(frozen=True, slots=True)
class Value:
    """One result: a fold under one repeat."""

    fold: int
    repeat: int
    value: float


@dataclass(frozen=True, slots=True)
class Metric:
    """A result over all folds and repeats."""

    mean: float
    std: float | None  # ddof 1; None when there is a single value, which has no spread
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One point of a learning curve of one fold under one repeat."""

    click: str  # the simulated user
    fold: int
    repeat: int
    round: int  # 0 is the initial ranker, before any update
    interactions: float  # searches made so far by all clients together
    name: str  # offline/nDCG@10, vali/nDCG@10, online/nDCG@10
    value: float


@dataclass(frozen=True, slots=True)
class RunWarning:
    """What was noticed about a run or its data, with what to do."""

    kind: str  # warning, or note: worth knowing, nothing to do
    text: str


@dataclass(frozen=True, slots=True)
class RunSkew:
    """How much a run's clients differ in one way."""

    name: str  # of the partition
    value: float  # 0: all alike; at most 1
    measure: str  # what the number is, in half a sentence
    unit: str  # what the rows count
    rows: tuple[
        tuple[str, tuple[tuple[str, float], ...]], ...
    ]  # (group of clients, ((part, value), ...)); empty: alike


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A finished run."""

    name: str  # of its directory
    recipe: JsonObject  # every key, also those left at their defaults
    metrics: Mapping[str, Mapping[str, Metric]]  # [click model][metric name]
    curve: tuple[Measurement, ...]
    seed: int | None
    device: str | None
    wall_s: float | None
    cpu_s: float | None
    n_interactions: float | None  # all folds, repeats and click models together
    bytes_per_client_round: float | None
    privacy: str | None  # what is promised, in a sentence or two
    learns: tuple[tuple[str, str], ...]  # (who, what they learn)
    warnings: tuple[RunWarning, ...]
    data: JsonObject  # name, normalise, fingerprint, n_queries_skipped
    searches_each: tuple[int, ...] | None  # of client c in a round: entry c modulo their number; None: the recipe says
    skews: tuple[RunSkew, ...]  # one for each way in which clients differ
    environment: Mapping[str, str]
    forgetting: JsonObject = field(default_factory=dict)  # who was forgotten and what that took; empty: nobody
    primary: str = NDCG  # the metric that the run is judged by
    clients_each: int | None = None  # that take part in a round; None: the recipe says
    messages: int | None = None  # that clients sent in one training; None: the recipe says
    users: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  # [metric][user] mean over repeats


def from_directory(path: Path) -> RunSummary:
    """Read a finished run; a ValueError of one line says what to do when it is none."""
    path = Path(path)
    result = _read_result(path)
    recipe = _read_object(path / "recipe.json") if (path / "recipe.json").is_file() else dict(result.get("recipe", {}))
    environment = _read_object(path / "environment.json") if (path / "environment.json").is_file() else {}
    try:
        return RunSummary(
            name=path.resolve().name,
            recipe=recipe,
            metrics=_read_metrics(recipe, result["metrics"]),
            curve=_read_curve(path / "metrics.jsonl"),
            seed=result.get("seed"),
            device=result.get("device"),
            wall_s=_number(result.get("wall_s")),
            cpu_s=_number(result.get("cpu_s")),
            n_interactions=_number(result.get("n_interactions")),
            bytes_per_client_round=_number(result.get("bytes_per_client_round")),
            privacy=result.get("privacy"),
            learns=tuple((str(line["who"]), str(line["learns"])) for line in result.get("who_learns_what") or ()),
            warnings=tuple(_read_warning(one) for one in result.get("warnings") or ()),
            data=result.get("data") or {},
            searches_each=tuple(result["searches_per_client_round"]) if "searches_per_client_round" in result else None,
            skews=tuple(_read_skew(one) for one in result.get("skew") or ()),
            environment={key: str(value) for key, value in environment.items() if value is not None},
            forgetting=_read_forgetting(result),
            primary=str(result.get("primary") or NDCG),
            clients_each=result.get("clients_per_round"),
            messages=result.get("messages_per_training"),
            users=_read_users(path / USERS_FILE),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path / 'result.json'} is damaged ({error!r}). Run the experiment again with --out."
        ) from error


def _read_result(path: Path) -> Json:
    if not path.is_dir():
        raise ValueError(f"{path} is not a directory. Name the directory of a run, such as runs/demo.")
    if not (path / "result.json").is_file():
        if (path / "recipe.json").is_file():
            raise ValueError(f"the run in {path} has not finished. Finish it with: hushrank run --resume --out {path}")
        if (path / "forgetting.json").is_file():
            raise ValueError(
                f"forgetting in {path} has not finished. Finish it with: hushrank forget --resume --out {path}"
            )
        if (path / "grid.json").is_file():
            raise ValueError(f"{path} is a sweep: its report is {path / 'report.html'}. Name single runs of it here.")
        raise ValueError(f"{path} is not a run: it holds no recipe.json. Name a directory that hushrank run wrote.")
    result = _read_object(path / "result.json")
    refuse_newer(path, result.get("format", SUPPORTED_FORMAT), SUPPORTED_FORMAT)
    return result


def _read_object(path: Path) -> Json:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Run the experiment again with --out.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold a JSON object, not a {type(found).__name__}.")
    return found


def _read_metrics(recipe: JsonObject, metrics: JsonObject) -> dict[str, dict[str, Metric]]:
    """By click model, also when the recipe names a single one and the file therefore leaves that level out."""
    clicks = recipe.get("clicks")
    by_click = metrics if isinstance(clicks, list | tuple) else {str(clicks or "all users"): metrics}
    return {
        str(click): {name: _read_metric(found) for name, found in named.items()} for click, named in by_click.items()
    }


def _read_metric(found: JsonObject) -> Metric:
    values = tuple(Value(int(v["fold"]), int(v["repeat"]), _value(v["value"])) for v in found.get("values", ()))
    std = _number(found.get("std"))
    return Metric(_value(found["mean"]), std if len(values) > 1 else None, values)


def _read_warning(found: JsonObject) -> RunWarning:
    return RunWarning(str(found.get("kind", "warning")), f"{found['sentence']} {found['advice']}")


def _read_forgetting(result: JsonObject) -> JsonObject:
    """Of a result with an erasure record."""
    if "record" not in result:
        return {}
    more = {key: result[key] for key in ("work", "privacy_spent", "record")}
    return {**result["forgetting"], **more, "statement": result["record"]["statement"]}


def _read_skew(found: JsonObject) -> RunSkew:
    rows = tuple((str(row["clients"]), tuple((p, float(v)) for p, v in row["values"].items())) for row in found["rows"])
    return RunSkew(str(found["name"]), float(found["value"]), str(found["measure"]), str(found["unit"]), rows)


def _read_users(path: Path) -> dict[str, dict[int, float]]:
    """Users without a search to measure are left out."""
    if not path.is_file():
        return {}
    from safetensors.numpy import load_file

    repeats: dict[str, list[NDArray[np.float64]]] = {}
    for name, values in load_file(path).items():
        repeats.setdefault(name.split("/", 3)[3], []).append(values)  # user/fold/repeat/metric
    means = {name: np.mean(values, axis=0) for name, values in repeats.items()}
    return {name: {i: float(v) for i, v in enumerate(mean) if isfinite(v)} for name, mean in means.items()}


def _read_curve(path: Path) -> tuple[Measurement, ...]:
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8") as lines:
        return tuple(_read_measurement(line, path, n) for n, line in enumerate(lines, start=1) if line.strip())


def _read_measurement(line: str, path: Path, n: int) -> Measurement:
    try:
        row = json.loads(line)
        return Measurement(
            str(row["click"]),
            int(row["fold"]),
            int(row["repeat"]),
            int(row["round"]),
            float(row["interactions"]),
            str(row["name"]),
            _value(row["value"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}, line {n} is damaged ({error!r}). Run the experiment again with --out.") from error


def _number(found: object) -> float | None:
    """A finite number, or None for what was not recorded."""
    return float(found) if isinstance(found, int | float) and isfinite(found) else None


def _value(found: float | None) -> float:
    return float("nan") if found is None else float(found)
