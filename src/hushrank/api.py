"""What `import hushrank` offers: the commands that run, forget and measure, and methods of your own by decorator."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from hushrank.aggregation.named import register_rule
from hushrank.attacks.named import register_attack
from hushrank.clicks.named import register_user
from hushrank.engine.simulate import News
from hushrank.files import Json
from hushrank.learners.named import register_learner
from hushrank.recipes.files import find_recipe
from hushrank.recipes.grid import Grid, expand, find_grid, vary_grid
from hushrank.recipes.recipe import Recipe, change_recipe
from hushrank.remedies.named import register_remedy
from hushrank.remedies.remedy import Remedy
from hushrank.reports.page import default_page, write_report
from hushrank.reports.summary import from_directory
from hushrank.runs.directory import default_directory
from hushrank.runs.forget import ForgetWishes, erase_clients
from hushrank.runs.forget_methods import Forgetting
from hushrank.runs.forgetting import ForgetRequest
from hushrank.runs.pool import PoolOptions, Step
from hushrank.runs.rankers import check_split, evaluate_on, load_for
from hushrank.runs.read import RunResult, SweepResult, read_run, read_sweep
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.runs.sweep import SweepOptions, run_sweep
from hushrank.runs.sweep import default_directory as default_sweep_directory
from hushrank.runs.table import Table, table_of
from hushrank.types import Array, Dataset, Gradient, Knowledge, User

Place: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[str], None]  # hears one short sentence per step
_Gradient = TypeVar("_Gradient", bound=Gradient)
_Rule = TypeVar("_Rule", bound=Callable[..., object])  # a Rule, (updates, weights) -> update, or a dataclass of such
_Attack = TypeVar("_Attack", bound=Callable[..., object])  # an Attack, its dataclass, or (view, *, key) -> updates
_User = TypeVar("_User", bound=User)
_Remedy = TypeVar("_Remedy", bound=type[Remedy])
_Method = TypeVar("_Method")


def run(
    recipe: Place | Recipe,
    /,
    *,
    out: Place | None = None,
    resume: bool = False,
    start: Place | None = None,
    device: str = "auto",
    engine: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    **keys: object,
) -> RunResult:
    """Run one experiment, as `hushrank run` does: the same bits, here as tables and arrays.

        hushrank.run("fpdgd", n_clients=20, rounds=5, seed=7)

    `recipe` is a recipe's name, a TOML file, a run's recipe.json or a `Recipe`; further keywords change its keys.
    `out` is the run's directory, which `resume=True` continues; without `out` the files lie in a temporary directory
    that is removed when the result is no longer used. `start` is an exported ranker to begin with, `device` auto, cpu
    or gpu, `engine` auto, numba, xla or plain, `workers` the number of threads; `progress=print` shows each step.
    """
    chosen = change_recipe(recipe if isinstance(recipe, Recipe) else find_recipe(os.fspath(recipe)), as_plain(keys))
    with ExitStack() as cleaning:
        options = RunOptions(
            out=choose_place(out, default_directory(chosen), cleaning),
            resume=resume,
            start=None if start is None else Path(start),
            device=device,
            engine=engine,
            workers=workers,
            **hearing(progress),
        )
        found = read_run(run_recipe(chosen, options).directory)
        weakref.finalize(found, cleaning.pop_all().close)
    return found


def sweep(
    recipe: Place | Recipe,
    /,
    grid: Mapping[str, Sequence[object] | Array] | None = None,
    *,
    select: str | None = None,
    out: Place | None = None,
    resume: bool = False,
    jobs: int | None = None,
    plugins: Sequence[str] = (),
    device: str = "auto",
    engine: str = "auto",
    progress: Progress | None = None,
    **keys: object,
) -> SweepResult:
    """Run every combination of the grid's values, as `hushrank sweep` does.

        hushrank.sweep("fpdgd", {"server_rate": [1, 10]}, select="vali", rounds=5)

    `recipe` and further keywords are those of `run`; a TOML file may hold the grid. `select` chooses on validation
    queries: "vali" in each fold, "pooled" over the folds. By default the runs follow one another in this process; with
    `jobs` they are divided among so many processes, which know your own methods only from the modules in `plugins`.
    `out` and `resume` are those of `run`. A run that fails stops no other: see `.errors`.
    """
    chosen = choose_grid(recipe, as_plain(grid or {}), as_plain(keys))
    labels = [point.label for point in expand(chosen)]

    def hear(step: Step) -> None:
        if progress is not None and step.is_over:
            progress(f"{labels[step.number]}: {step.error or 'finished'}")

    settings = {"device": device, "engine": engine, "workers": 1 if jobs is not None and jobs > 1 else None}
    pool = PoolOptions(jobs, tuple(plugins), run=settings, hear=hear, in_process=jobs is None)
    with ExitStack() as cleaning:
        place = choose_place(out, default_sweep_directory(chosen), cleaning)
        directory, _ = run_sweep(chosen, SweepOptions(out=place, resume=resume, select=select, pool=pool))
        found = read_sweep(directory)
        weakref.finalize(found, cleaning.pop_all().close)
    return found


def forget(
    run: RunResult | Place,
    clients: int | Sequence[int] | Array,
    *,
    method: str = "eraser",
    local_steps: int | None = None,
    every: int | None = None,
    calibrate: bool = True,
    leap: float | None = None,
    compare: bool = False,
    extra_epsilon: float | None = None,
    out: Place | None = None,
    resume: bool = False,
    device: str = "auto",
    engine: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Forget clients of a finished run, as `hushrank forget` does: the same new rankers, and a signed record.

        hushrank.forget(found, [3, 7], method="fresh", compare=True)

    `run` is a result of `run` or `forget`, or a directory; `clients` are numbers. `method` is eraser, fresh, retrain,
    rollback, continue or subtract. `local_steps`, `every`, `calibrate` and `leap` belong to some of them, and `compare`
    and `extra_epsilon` are the command's options (docs/howto/forget.md). `out` is by default
    RUN/forgotten/<method>-<clients>. `result["record"]` is the record, `result["work"]` what it took.
    """
    leavers = tuple(sorted(np.atleast_1d(np.asarray(clients)).tolist()))
    request = ForgetRequest(place_of(run), Forgetting(leavers, method, local_steps, every, calibrate, leap))
    options = RunOptions(
        out=None if out is None else Path(out),
        resume=resume,
        device=device,
        engine=engine,
        workers=workers,
        **hearing(progress),
    )
    found = read_run(erase_clients(request, options, ForgetWishes(compare, extra_epsilon)).directory)
    weakref.finalize(found, id, run)  # Why: a run without a place of its own is removed when nobody holds it
    return found


def load_run(directory: Place) -> RunResult:
    """Read a finished run from its directory, whoever made it."""
    return read_run(Path(directory))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good rankers are on data."""

    metrics: Table  # metric, ranker, fold, value
    result: Json = field(repr=False)  # the JSON that `hushrank evaluate --json` prints


def evaluate(
    ranker: RunResult | Place,
    *,
    data: Place | Dataset | None = None,
    split: str = "test",
    normalise: str | None = None,
    fold: int | None = None,
) -> Evaluation:
    """Measure trained rankers: nDCG@10, nDCG@5, MRR, MAP and P@10.

    `ranker` is a run or an exported ranker's file; `data` a loaded data set, a name or a directory, by default what the
    run was trained with. `split` is train, vali or test; `fold` one fold, by default the one that each was trained on.
    """
    check_split(split)
    wanted = data if data is None or isinstance(data, Dataset) else os.fspath(data)
    rankers, dataset = load_for(place_of(ranker), data=wanted, normalise=normalise)
    found = evaluate_on(rankers, dataset, split=split, fold=fold)
    rows = [{"metric": name, **row} for name, metric in found["metrics"].items() for row in metric["values"]]
    return Evaluation(table_of(rows, ("metric", "ranker", "fold", "value")), found)


def report(*runs: RunResult | Place, path: Place | None = None) -> Path:
    """Write one self-contained HTML page about finished runs and return its path.

    The first run is what the others are compared with. By default the page is report.html in the run's directory, and
    for several in the nearest directory that holds them all.
    """
    if not runs:
        raise ValueError("report needs one or more runs: give results of hushrank.run or directories of finished runs.")
    places = [place_of(each) for each in runs]
    page = default_page(places) if path is None else Path(path)
    return write_report([from_directory(place) for place in places], page)


def learner(name: str, /) -> Callable[[_Gradient], _Gradient]:
    """Offer the function below as `learner=name`: how a search moves the parameters (see `hushrank.types.Gradient`)."""
    return registering(register_learner, name)


def rule(name: str, /) -> Callable[[_Rule], _Rule]:
    """Offer what stands below as `aggregation=name`: how all updates become one.

    A function `(updates, weights) -> update`, a function as `hushrank.types.Rule` describes it, or a dataclass of such
    functions, whose fields are the rule's settings.
    """
    return registering(register_rule, name)


def attack(name: str, /, *, knowledge: str = "own") -> Callable[[_Attack], _Attack]:
    """Offer what stands below as `attack=name`: what malicious clients send.

    A function `(view, *, key) -> updates` of a `hushrank.types.AttackView`, or a dataclass as `hushrank.types.Attack`
    describes it. `knowledge` says what a function sees: nothing, own (what the malicious clients themselves learnt) or
    everybody.
    """

    def register(name: str, method: Any) -> None:
        if not isinstance(method, type) and (knowledge != "own" or not hasattr(method, "knowledge")):
            method.knowledge = Knowledge(knowledge)
        register_attack(name, method)

    return registering(register, name)


def user(name: str, /) -> Callable[[_User], _User]:
    """Offer the function below as `clicks=name`: on what a person clicks (see `hushrank.types.User`)."""
    return registering(register_user, name)


def remedy(name: str, /) -> Callable[[_Remedy], _Remedy]:
    """Offer the class below as `remedy=name`: what is done about clients that differ.

    A frozen dataclass that inherits from `hushrank.remedies.remedy.Remedy`, whose fields are the remedy's settings.
    """
    return registering(register_remedy, name)


def registering(register: Callable[[str, Any], None], name: str) -> Callable[[_Method], _Method]:
    """A decorator that registers what it decorates and leaves it as it is."""
    if not isinstance(name, str) or not name:
        raise TypeError(f'the decorator got {name!r} as a name: write it with one, as in @hushrank.rule("mine").')

    def decorate(method: _Method) -> _Method:
        register(name, method)
        return method

    return decorate


def choose_grid(recipe: Place | Recipe, axes: Mapping[str, object], changes: Mapping[str, object]) -> Grid:
    if isinstance(recipe, Recipe):
        return vary_grid(Grid(recipe), axes=axes, changes=changes, name=recipe.recipe)
    return find_grid(os.fspath(recipe), axes=axes, changes=changes)


def choose_place(out: Place | None, default: Path, cleaning: ExitStack) -> Path:
    """The directory that was asked for, or one in a temporary directory that `cleaning` removes."""
    if out is not None:
        return Path(out)
    temporary = tempfile.mkdtemp(prefix="hushrank-")
    cleaning.callback(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary) / default.name


def place_of(ranker: RunResult | Place) -> Path:
    return ranker.directory if isinstance(ranker, RunResult) else Path(ranker)


def as_plain(values: Mapping[str, object]) -> dict[str, object]:
    """Arrays, NumPy's numbers and paths as the lists, numbers and words that a recipe holds."""
    return {key: as_plain_value(value) for key, value in values.items()}


def as_plain_value(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [as_plain_value(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def hearing(progress: Progress | None) -> dict[str, Any]:
    """The options of a run that pass every step on."""
    if progress is None:
        return {}
    return {
        "tell": progress,
        "say": progress,
        "note": lambda notice: progress(notice.line),
        "report": lambda news: progress(describe_news(news)),
    }


def describe_news(news: News) -> str:
    share = f"batch {news.batch + 1} of {news.n_batches}: {news.share:.0%}"
    return f"{share}, nDCG@10 {news.test:.3f} on test queries, {news.vali:.3f} on validation queries"
