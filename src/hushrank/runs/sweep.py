"""A sweep: every point of a grid as a run of its own, and the table of what they found.

`vali` chooses for each user and each fold on that fold's own validation queries. Why not on the mean over the folds:
the validation queries of one fold are the test queries of another, so that mean has looked at every test query.
`pooled` does just that, one setting for each user: less noisy where a fold has few validation queries, less strict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean

from hushrank.files import Json, JsonObject, refuse_newer, sweep_unfinished, write_json
from hushrank.recipes.grid import Grid, GridPoint, expand, grid_as_json, make_grid
from hushrank.recipes.recipe import recipe_from_json
from hushrank.reports.sweep import write_sweep
from hushrank.runs.directory import locked
from hushrank.runs.pool import Job, PoolOptions, run_jobs
from hushrank.runs.result import spread

FORMAT = 1
SELECTIONS = ("none", "vali", "pooled")
_USUAL = "offline/nDCG@10"  # what runs are judged by that say nothing else
_KINDS = ("offline", "vali", "online")


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How a sweep is carried out."""

    out: Path | None = None  # default: runs/sweep-<recipe>-<time>
    resume: bool = False
    select: str | None = None  # vali, pooled: choose on validation queries, report on test; None: as it began, or none
    pool: PoolOptions = PoolOptions()  # noqa: RUF009 - frozen


def default_directory(grid: Grid) -> Path:
    return Path("runs") / f"sweep-{grid.recipe.recipe}-{datetime.now():%Y%m%d-%H%M%S}"


def run_sweep(grid: Grid, options: SweepOptions) -> tuple[Path, Json]:
    """Carry out what is not finished; the directory, and the table (also in its table.json and report.html)."""
    if options.select not in (*SELECTIONS, None):
        raise ValueError(f"--select is {options.select!r}, must be one of {', '.join(SELECTIONS)}.")
    out, points = options.out or default_directory(grid), expand(grid)
    if out.exists() and not options.resume:
        raise ValueError(f"{out} exists: add --resume to continue it, or choose another --out.")
    select = options.select or read_selection(out)
    begin(out, grid, select)
    with locked(out):
        jobs = [Job(point.recipe, out / point.directory) for point in points]
        errors = run_jobs(jobs, options.pool)
        table = make_table(out.resolve().name, grid, points, jobs, errors, select=select)
        write_json(out / "table.json", table)
        write_sweep(table, out / "report.html")
    return out, table


def begin(out: Path, grid: Grid, select: str) -> None:
    """The sweep's directory with its grid; one that belongs to another grid is refused."""
    out.mkdir(parents=True, exist_ok=True)
    sweep_unfinished(out)
    known = read_grid_file(out)
    if known is not None and grid_as_json(known) != grid_as_json(grid):
        raise ValueError(f"{out} belongs to another grid. Resume with the old one, or choose another --out.")
    write_json(out / "grid.json", {"format": FORMAT, **grid_as_json(grid), "select": select})


def read_grid_file(out: Path) -> Grid | None:
    """The grid of a sweep's directory; None where there is none."""
    values = read_definition(out)
    return None if values is None else make_grid(recipe_from_json(values["recipe"]), values["axes"], values["cases"])


def read_selection(out: Path) -> str:
    """How a sweep that was begun chooses; not at all where there is none."""
    return str((read_definition(out) or {}).get("select", "none"))


def read_definition(out: Path) -> Json | None:
    path = out / "grid.json"
    try:
        values: Json = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove {out} and run again.") from error
    refuse_newer(out, values.get("format", FORMAT), FORMAT)
    return values


def make_table(
    name: str, grid: Grid, points: list[GridPoint], jobs: list[Job], errors: list[str | None], *, select: str
) -> Json:
    """What every run found, and what was chosen. Nothing here depends on when or how often the sweep was stopped."""
    results = [json.loads((job.directory / "result.json").read_text()) if job.is_finished else None for job in jobs]
    values = [metric_values(result) if result is not None else None for result in results]
    rows = [
        {
            "label": point.label,
            "directory": point.directory,
            "settings": point.settings,
            "state": "finished" if found is not None else "failed",
            "error": error,
            "metrics": None if found is None else {user: shorten(named) for user, named in found.items()},
        }
        for point, found, error in zip(points, values, errors, strict=True)
    ]
    known = {point.label: found for point, found in zip(points, values, strict=True) if found is not None}
    definition = grid_as_json(grid)
    return {
        "format": FORMAT,
        "name": name,
        "recipe": definition["recipe"],
        "axes": definition["axes"],
        "cases": definition["cases"],
        "select": None if select == "none" else select,
        "runs": rows,
        "selected": None if select == "none" or not known else choose_on_validation(known, pooled=select == "pooled"),
        "n_failed": sum(error is not None for error in errors),
        "n_waiting": 0,
        **({} if (primary := _find_primary(results)) == _USUAL else {"primary": primary}),
    }


def _find_primary(results: list[Json | None]) -> str:
    """What the first finished run is judged by."""
    return next((primary_of(result) for result in results if result is not None), _USUAL)


Values = Mapping[str, list[Json]]  # {metric: [{"fold", "repeat", "value"}]}


def primary_of(result: JsonObject) -> str:
    """The metric that a run is judged by."""
    return str(result.get("primary") or _USUAL)


def name_metrics(primary: str) -> tuple[str, ...]:
    """On test and on validation queries, and of the lists that people saw."""
    return tuple(f"{kind}/{primary.partition('/')[2]}" for kind in _KINDS)


def metric_values(result: JsonObject) -> dict[str, Values]:
    """{user: {metric: values}} of a run's JSON; what is trained on labels has no online quality."""
    clicks, metrics = result["recipe"]["clicks"], result["metrics"]
    by_user = {clicks: metrics} if isinstance(clicks, str) else metrics
    names = name_metrics(primary_of(result))
    return {user: {name: named[name]["values"] for name in names if name in named} for user, named in by_user.items()}


def shorten(named: Values) -> Json:
    """Mean, spread and number, without the single values."""
    return {name: {**_without_values(spread(values)), "n": len(values)} for name, values in named.items()}


def _without_values(metric: Json) -> Json:
    return {key: metric[key] for key in ("mean", "std")}


def choose_on_validation(known: Mapping[str, Mapping[str, Values]], *, pooled: bool = False) -> Json:
    """{user: what was chosen in each fold, and its metrics over all folds}."""
    users = list(dict.fromkeys(user for found in known.values() for user in found))
    return {
        user: choose_for({label: found[user] for label, found in known.items() if user in found}, pooled=pooled)
        for user in users
    }


def choose_for(known: Mapping[str, Values], *, pooled: bool = False) -> Json:
    """The best run in each fold (pooled: over all folds) by its mean on validation queries; the first of equals."""
    offline, on_vali, online = name_metrics(next(iter(next(iter(known.values())))))
    if any(on_vali not in found for found in known.values()):
        raise ValueError("a run of this sweep was not measured on validation queries: leave --select out.")
    folds = sorted({row["fold"] for found in known.values() for row in found[on_vali]})
    chosen, metrics = [], {name: list[Json]() for name in (offline, on_vali, online)}
    for fold in folds:
        judged = folds if pooled else [fold]
        by_label = {label: mean_in(found[on_vali], judged) for label, found in known.items()}
        best = max(by_label, key=lambda label: by_label[label])
        vali, test = (mean_in(known[best][name], [fold]) for name in (on_vali, offline))
        chosen.append({"fold": fold, "label": best, "vali": vali, "test": test})
        for name in metrics:
            metrics[name] += [row for row in known[best].get(name, ()) if row["fold"] == fold]
    return {"folds": chosen, **{name: spread(values) for name, values in metrics.items() if values}}


def mean_in(values: list[Json], folds: list[int]) -> float:
    """Over the repeats of these folds; a run that lacks one of them cannot be chosen."""
    found = [row["value"] for row in values if row["fold"] in folds]
    return fmean(found) if {row["fold"] for row in values} >= set(folds) else float("-inf")
