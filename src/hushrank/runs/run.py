"""Carry out a recipe in a directory: begin, continue after any interruption, and finish with a result and a report."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hushrank.data.source import digest_file
from hushrank.engine.device import describe_platform
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, News, Options, prepare, simulate
from hushrank.files import Json, write_bytes, write_json
from hushrank.recipes.recipe import Recipe, hash_recipe
from hushrank.recipes.resolve import resolve
from hushrank.reports.page import write_report
from hushrank.reports.summary import from_directory
from hushrank.runs.baseline import train_baseline
from hushrank.runs.directory import Spent, default_directory, locked, make_directory, refuse_existing
from hushrank.runs.environment import describe_environment
from hushrank.runs.result import summarise, write_curves, write_rankers

START = "start.safetensors"  # in a run's directory: the ranker given with --from


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a recipe is carried out; nothing here but device, engine and start affects the result."""

    out: Path | None = None  # default: runs/<recipe>-<time>-<hash>
    resume: bool = False
    start: Path | None = None  # an exported ranker to begin with
    device: str = "auto"
    devices: int | None = None  # that the clients are divided among
    engine: str = "auto"  # numba, xla, plain, auto
    workers: int | None = None
    memory_limit: int | None = None  # bytes
    checkpoint_seconds: float = 10.0
    command: str = "hushrank (Python)"
    tell: Callable[[str], None] = lambda _: None  # hears one short sentence per step
    report: Callable[[News], None] = lambda _: None  # hears of progress, from any thread


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run."""

    directory: Path
    result: Json


def run_recipe(recipe: Recipe, options: RunOptions | None = None) -> Run:
    """Simulate on disk. A wrong recipe, missing data or an existing directory stop it before anything is written."""
    options = options or RunOptions()
    out = options.out or default_directory(recipe)
    if not options.resume:
        refuse_existing(out)
    start = options.start or (out / START if (out / START).exists() else None)
    setting = resolve(recipe, tell=options.tell, start=start)
    if recipe.log is not None and not recipe.is_central:
        recipe = replace(recipe, n_clients=setting.method.population.n_clients)
    platform = prepare(setting, engine_options(options)).platform  # refuses what cannot be done here
    make_directory(out, recipe)
    with locked(out):
        if start is not None and not (out / START).exists():
            write_bytes(out / START, start.read_bytes())  # Why: a run that is resumed begins with the same ranker
        spent = Spent(out, clock=time.monotonic, processor=time.process_time)
        if not (out / "environment.json").exists():
            write_json(
                out / "environment.json",
                describe_environment(device=describe_platform(platform), command=options.command),
            )
        results, device = carry_out(recipe, setting, out, options, spent)
        write_curves(out / "metrics.jsonl", results)
        write_rankers(out / "rankers.safetensors", results)
        result = summarise(recipe, setting, results, device=device, spent=spent.read())
        write_json(out / "result.json", result)
        write_report([from_directory(out)], out / "report.html")
    return Run(out, result)


def carry_out(
    recipe: Recipe, setting: Setting, out: Path, options: RunOptions, spent: Spent
) -> tuple[list[CellResult], str]:
    """Every cell trained, and the device that did it."""
    if recipe.is_offline:
        return train_baseline(recipe.recipe, setting, tell=options.tell)
    parts = (hash_recipe(recipe), setting.dataset.fingerprint, hash_start(setting.start), hash_log(recipe.log))
    place = out / "checkpoints"
    kept = replace(engine_options(options), checkpoints=place, identity="-".join(parts), saved=spent.save)
    return simulate(setting, kept)


def engine_options(options: RunOptions) -> Options:
    return Options(
        device=options.device,
        devices=options.devices,
        engine=options.engine,
        workers=options.workers,
        memory_limit=options.memory_limit,
        checkpoint_seconds=options.checkpoint_seconds,
        report=options.report,
    )


def hash_start(start: tuple[float, ...] | None) -> str:
    return "fresh" if start is None else hashlib.sha256(repr(start).encode()).hexdigest()[:8]


def hash_log(path: str | None) -> str:
    return "simulated" if path is None else digest_file(Path(path))[:8]
