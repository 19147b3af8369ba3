"""What a run found: the JSON that scripts rely on, the curves, the rankers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from hushrank.engine.checkpoint import LOOK
from hushrank.engine.simulate import CellResult
from hushrank.federation.seen import ONLINE, SEARCHES
from hushrank.federation.state import LENGTHS, PERSONAL
from hushrank.files import Json, write_bytes, write_text
from hushrank.recipes.recipe import as_json
from hushrank.runs.directory import FORMAT
from hushrank.runs.experiment import Experiment
from hushrank.types import Array, Notice

RANKERS_FILE = "rankers.safetensors"  # in a run's directory
KEPT_FILE = "kept.safetensors"  # in a run's directory: what its clients keep, which no device would send
LENGTHS_KEPT = LENGTHS.removeprefix(f"{PERSONAL}/")  # in `CellResult.kept`
_NAMES = {ONLINE: "online/nDCG@10"}  # of what rounds show, where a curve is called otherwise
_CURVES = (
    "offline/nDCG@10",
    "vali/nDCG@10",
    "offline/MaxRR",
    "vali/MaxRR",
    "offline/MAP",
    "vali/MAP",
)  # first, in this order


def summarise(
    experiment: Experiment,
    results: list[CellResult],
    *,
    device: str,
    spent: dict[str, float],
    notices: Sequence[Notice] = (),
) -> Json:
    """The run's JSON, `metrics[name]` for one user and `metrics[user][name]` for a list of users."""
    recipe = experiment.recipe
    by_user = {user: measure_user(experiment, [r for r in results if r.user == user]) for user in recipe.users}
    return {
        "format": FORMAT,
        "recipe": as_json(recipe),
        "seed": recipe.seed,
        "device": device,
        **spent,
        "n_interactions": int(sum(int(r.searches.sum()) for r in results)),
        "metrics": by_user[recipe.clicks] if isinstance(recipe.clicks, str) else by_user,
        **experiment.describe(),
        "warnings": [notice._asdict() for notice in notices],
    }


def measure_user(experiment: Experiment, results: list[CellResult]) -> Json:
    """Every metric of one user over folds and repeats."""
    rows: dict[str, list[Json]] = {}
    for result in results:
        for name, value in experiment.measure(result).items():
            rows.setdefault(name, []).append({"fold": result.fold, "repeat": result.repeat, "value": value})
    return {name: spread(values) for name, values in rows.items()}


def spread(values: list[Json]) -> Json:
    numbers = [row["value"] for row in values]
    return {"mean": fmean(numbers), "std": stdev(numbers) if len(numbers) > 1 else None, "values": values}


def write_curves(path: Path, results: list[CellResult]) -> None:
    """`metrics.jsonl`: one JSON object per line, user by user, fold by fold."""
    write_text(path, "".join(json.dumps(row) + "\n" for result in results for row in curve_rows(result)))


def curve_rows(result: CellResult) -> Iterator[Json]:
    """Offline quality at each look; what rounds showed (online quality, evidence) as the mean since the look before."""
    who = {"click": result.user, "fold": result.fold, "repeat": result.repeat}
    total = np.concatenate([[0], np.cumsum(result.searches)])
    before = 0
    known = [name for name in _CURVES if name in result.looks]
    names = [*known, *sorted(name for name in result.looks if name not in (*known, LOOK))]
    for look, round in enumerate(result.evaluated.tolist()):
        at = {**who, "round": round, "interactions": int(total[round])}
        for name in names:
            if np.isfinite(value := result.looks[name][look]):
                yield {**at, "name": name, "value": float(value)}
        if round > before:
            for name, values in sorted(result.shown.items()):
                if name != SEARCHES and np.isfinite(values[before:round]).any():
                    searches = result.searches[before:round] if name == ONLINE else np.ones(round - before)
                    if searches.any():
                        mean = _mean_of_rounds(values[before:round], searches)
                        yield {**at, "name": _NAMES.get(name, name), "value": mean}
        before = round


def _mean_of_rounds(values: Array, searches: Array) -> float:
    """Rounds count by their searches, where these differ: one without a search showed nothing."""
    if (searches == searches[0]).all():
        return float(np.nanmean(values, dtype=np.float64))
    return float(np.average(values, weights=searches))


def write_rankers(path: Path, results: list[CellResult]) -> None:
    """The last ranker of every cell, named user/fold/repeat."""
    write_bytes(path, save({name_cell(r.user, r.fold, r.repeat): np.ascontiguousarray(r.params) for r in results}))


def read_rankers(run: Path) -> dict[tuple[str, int, int], Array]:
    """{(user, fold, repeat): parameters} of a finished run."""
    path = run / RANKERS_FILE
    if not path.is_file():
        raise ValueError(f"{run} holds no rankers: name the directory of a finished run.")
    return _read_cells(path)


def write_kept(path: Path, results: list[CellResult]) -> None:
    """The lengths that every cell's clients kept [n_clients, n_kept], named user/fold/repeat."""
    kept = {name_cell(r.user, r.fold, r.repeat): np.ascontiguousarray(r.kept[LENGTHS_KEPT]) for r in results}
    write_bytes(path, save(kept))


def read_kept(run: Path) -> dict[tuple[str, int, int], Array]:
    """{(user, fold, repeat): lengths [n_clients, n_kept]} of a finished run; NaN: the client did not take part."""
    path = run / KEPT_FILE
    if not path.is_file():
        raise ValueError(f"{run} holds no kept lengths: name the directory of a finished run with keep_every.")
    return _read_cells(path)


def blank_kept(run: Path, clients: Sequence[int]) -> None:
    """Remove what these clients kept from the file."""
    cells = {name_cell(*cell): np.array(lengths) for cell, lengths in read_kept(run).items()}
    for lengths in cells.values():
        lengths[list(clients)] = np.nan
    write_bytes(run / KEPT_FILE, save(cells))


def _read_cells(path: Path) -> dict[tuple[str, int, int], Array]:
    try:
        arrays = load_file(path)
        names = {name: name.rsplit("/", 2) for name in arrays}
        return {(user, int(fold), int(repeat)): arrays[name] for name, (user, fold, repeat) in names.items()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}). Run the experiment again with --out.") from error


def write_users(path: Path, results: list[CellResult]) -> None:
    """Metrics of single users, one number each, named user/fold/repeat/metric: runs are compared user by user."""
    named = {
        f"{name_cell(r.user, r.fold, r.repeat)}/{name}": np.ascontiguousarray(values)
        for r in results
        for name, values in r.users.items()
    }
    write_bytes(path, save(named))


def name_cell(user: str, fold: int, repeat: int) -> str:
    return f"{user}/{fold}/{repeat}"
