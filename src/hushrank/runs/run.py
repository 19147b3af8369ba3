"""Carry out a recipe in a directory: begin, continue after any interruption, and finish with a result and a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hushrank.engine.device import describe_platform
from hushrank.engine.simulate import CellResult, News, Options
from hushrank.files import Json, write_bytes, write_json
from hushrank.recipes.recipe import Recipe, hash_recipe
from hushrank.reports.page import write_report
from hushrank.reports.summary import USERS_FILE, from_directory
from hushrank.runs.directory import Spent, default_directory, locked, make_directory, refuse_existing
from hushrank.runs.environment import describe_environment
from hushrank.runs.experiment import Experiment, RunPlacement
from hushrank.runs.families import FAMILIES
from hushrank.runs.result import (
    KEPT_FILE,
    LENGTHS_KEPT,
    RANKERS_FILE,
    summarise,
    write_curves,
    write_kept,
    write_rankers,
    write_users,
)
from hushrank.types import Notice

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
    say: Callable[[str], None] = lambda _: None  # hears a line that should stay before a person's eyes
    note: Callable[[Notice], None] = lambda _: None  # hears what was noticed
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
    experiment = FAMILIES[recipe.recipe](recipe, options.tell, start)
    placed = experiment.check(engine_options(options))  # refuses what cannot be done here
    make_directory(out, experiment.recipe)
    with locked(out):
        if start is not None and not (out / START).exists():
            write_bytes(out / START, start.read_bytes())  # Why: a run that is resumed begins with the same ranker
        return close_run(out, train_run(experiment, placed, out, options))


def train_run(experiment: Experiment, placed: RunPlacement, out: Path, options: RunOptions) -> Json:
    """From its last checkpoint to curves, rankers and the result, in a directory that is there and locked."""
    spent = Spent(out, clock=time.monotonic, processor=time.process_time)
    if not (out / "environment.json").exists():
        write_json(out / "environment.json", describe_placement(placed, options))
    options.say(f"engine {placed.engine}: {placed.reason}")
    if (slow := experiment.estimate(placed)) is not None:
        options.note(slow)  # Why it is not kept: a time is this machine's, and a result is not
    notices = hear(experiment.foresee(), options)
    results, device = carry_out(experiment, out, options, spent)
    notices += hear(experiment.review(results), options)
    write_curves(out / "metrics.jsonl", results)
    write_rankers(out / RANKERS_FILE, results)
    if all(LENGTHS_KEPT in result.kept for result in results):
        write_kept(out / KEPT_FILE, results)
    if any(result.users for result in results):
        write_users(out / USERS_FILE, results)
    return summarise(experiment, results, device=device, spent=spent.read(), notices=notices)


def close_run(out: Path, result: Json) -> Run:
    """With the result the run has finished."""
    write_json(out / "result.json", result)
    write_report([from_directory(out)], out / "report.html")
    return Run(out, result)


def describe_placement(placed: RunPlacement, options: RunOptions) -> dict[str, str]:
    return describe_environment(
        device=describe_platform(placed.platform),
        engine=placed.engine,
        engine_reason=placed.reason,
        command=options.command,
    )


def hear(notices: list[Notice], options: RunOptions) -> list[Notice]:
    """The notices, once they have been passed on."""
    for notice in notices:
        options.note(notice)
    return notices


def carry_out(experiment: Experiment, out: Path, options: RunOptions, spent: Spent) -> tuple[list[CellResult], str]:
    """Every cell trained, and the device that did it."""
    identity = f"{hash_recipe(experiment.recipe)}-{experiment.identity}"
    place = out / "checkpoints"
    return experiment.carry_out(
        replace(engine_options(options), checkpoints=place, identity=identity, saved=spent.save)
    )


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
