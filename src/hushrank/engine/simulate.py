"""The simulator's driver: which batches run at once, where they compute, what they report."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from hushrank.engine.batch import OFFLINE, VALI, SimulationBatch, mean_params, prepare_examiners
from hushrank.engine.checkpoint import LOOK, Progress
from hushrank.engine.choice import EngineChoice, choose_engine
from hushrank.engine.device import choose_platform, describe_platform, import_jax, spare_mappings
from hushrank.engine.inputs import Advance, initial_params
from hushrank.engine.kernel_fallback import compile_with_fallback
from hushrank.engine.plan import Cell, Plan, estimate_bytes, make_plans
from hushrank.engine.setting import Method, Setting
from hushrank.engine.task import Task
from hushrank.engine.train import Watch, train_task
from hushrank.extras import require_package
from hushrank.federation.seen import ONLINE, SEARCHES
from hushrank.federation.state import PERSONAL, part_of
from hushrank.types import Array, NamedArrays


@dataclass(frozen=True, slots=True)
class News:
    """How far one task has come."""

    batch: int
    n_batches: int
    searches: int  # done so far, over the batch's cells
    share: float  # of the batch's rounds
    test: float  # mean offline quality at the last look; NaN: the data have nothing to measure
    vali: float
    measure: str = "nDCG@10"  # which quality that is


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulation is carried out. Nothing here changes a bit of the result, device and engine apart."""

    device: str = "auto"  # auto, cpu or gpu
    devices: int | None = None  # that the clients are divided among; None: every GPU, one processor
    engine: str = "auto"  # numba (fused loop), xla (JAX), plain (the stages as they are), auto; equal to rounding
    workers: int | None = None  # threads; None: one per processor
    memory_limit: int | None = None  # bytes; batches that do not fit together run one after another
    checkpoints: Path | None = None  # directory; None keeps no checkpoints
    checkpoint_seconds: float = 10.0
    lasting: tuple[str, ...] | None = None  # what a task's last checkpoint keeps of the state. Given where the rest is
    # clients' own: then only the owner of the files may read them
    identity: str = ""  # of recipe and data: a checkpoint is never continued under another recipe
    report: Callable[[News], None] = lambda _: None  # called from any thread
    saved: Callable[[], None] = lambda: None  # called after each checkpoint, from any thread


@dataclass(frozen=True, slots=True)
class CellResult:
    """One training, finished."""

    user: str
    fold: int  # the fold's number
    repeat: int
    params: Array  # [n_params] the last ranker
    shown: NamedArrays  # [rounds] what each round showed, by name: online nDCG, searches, evidence, groups
    looks: NamedArrays  # [n_looks] what was measured on test and validation queries, by name
    scorer: Callable[[Array], Array] | None = None  # of documents' features, where the ranker is no flat vector
    first: Array | None = None  # [n_params] the first ranker; None: there was none
    kept: NamedArrays = field(default_factory=dict)  # [n_clients, ...] what clients keep at the end, by name
    users: NamedArrays = field(default_factory=dict)  # [n_clients] metrics of single users at the end; NaN: no search

    @property
    def online(self) -> Array:
        """[rounds] mean nDCG of the lists shown in each round."""
        return self.shown[ONLINE]

    @property
    def searches(self) -> Array:
        """[rounds] how many lists that were."""
        return self.shown[SEARCHES]

    @property
    def evaluated(self) -> Array:
        """[n_looks] after which rounds quality was measured; the first is 0, the initial ranker."""
        return self.looks[LOOK]

    @property
    def test(self) -> Array:
        """[n_looks] nDCG@k."""
        return self.looks[OFFLINE]

    @property
    def vali(self) -> Array:
        """[n_looks] nDCG@k."""
        return self.looks[VALI]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Where and how a setting will be computed."""

    platform: str  # cpu or gpu
    plans: tuple[Plan, ...]  # one per batch
    workers: int  # batches at once
    choice: EngineChoice  # numba, xla or plain, and why


def prepare(setting: Setting, options: Options) -> Preparation:
    """What the simulation will do, decided before it begins; refuses what cannot be done here."""
    if setting.method.summation.package is not None:
        require_package(setting.method.summation.package)
    platform = choose_platform(options.device)
    plans = make_plans(setting, platform=platform, n_devices=count_devices(setting.method, options, platform))
    workers = count_workers(setting, plans, options)
    choice = choose_engine(setting, wanted=options.engine, platform=platform, devices=options.devices)
    return Preparation(platform, plans, workers, choice)


def simulate(setting: Setting, options: Options | None = None) -> tuple[list[CellResult], str]:
    """Train every cell of the setting; the results, and the device that computed them."""
    options = options or Options()
    setting = warm_up(setting, options)
    prepared = prepare(setting, options)
    progress = run_batches(setting, prepared, options)
    results = [
        read_cell(setting, cell, done, column)
        for plan, done in zip(prepared.plans, progress, strict=True)
        for column, cell in enumerate(plan.cells)
    ]
    return results, describe_platform(prepared.platform)


def warm_up(setting: Setting, options: Options) -> Setting:
    """The setting whose trainings begin with the rankers that its warm-up has trained."""
    if setting.warm_up is None:
        return setting
    place = None if options.checkpoints is None else options.checkpoints / "warm-up"
    if place is not None:
        place.mkdir(exist_ok=True)
    results, _ = simulate(setting.warm_up, replace(options, checkpoints=place, report=lambda _: None))
    cells = (len(setting.users), len(setting.dataset.folds), setting.repeats)
    starts = np.stack([result.params for result in results]).reshape(*cells, -1)
    return replace(setting, starts=starts, warm_up=None)


def run_batches(setting: Setting, prepared: Preparation, options: Options) -> list[Progress]:
    """All batches of a simulation."""
    platform, plans, workers, engine = prepared.platform, prepared.plans, prepared.workers, prepared.choice.name
    make_advance = load_engine(engine, platform, threads=max(1, workers // len(plans)))
    examiners = prepare_examiners(setting)
    tasks = [SimulationBatch(setting, plan, examiners, make_advance) for plan in plans]
    identity = f"{options.identity}-{engine}-{platform}{plans[0].shape.n_devices}"
    return drive_tasks(tasks, replace(options, identity=identity), workers=workers)


def drive_tasks(tasks: Sequence[Task], options: Options, *, workers: int, measure: str = "nDCG@10") -> list[Progress]:
    """All tasks on a pool of threads (compiled programs release Python's lock); stops them all when one fails.

    measure: the quality that news are about, of tasks whose looks have none.
    """
    spare_mappings()
    stop = threading.Event()
    if options.checkpoints is not None and options.lasting is not None:
        options.checkpoints.chmod(0o700)

    def train(number: int) -> Progress:
        task = tasks[number]

        def report(progress: Progress) -> None:
            test, vali = (last_look(progress, prefix) for prefix in ("offline/", "vali/"))
            searches = int(np.sum(progress.shown.get(SEARCHES, 0)))
            found = (name_look(progress, "offline/") or measure).removeprefix("offline/")
            options.report(News(number, len(tasks), searches, progress.round / task.rounds, test, vali, found))

        path = options.checkpoints / f"batch-{number:03}.safetensors" if options.checkpoints else None
        watch = Watch(stop, report, path, options.checkpoint_seconds, options.identity, options.saved, options.lasting)
        return train_task(task, watch)

    with ThreadPoolExecutor(min(workers, len(tasks))) as pool:
        futures = [pool.submit(train, number) for number in range(len(tasks))]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()  # Why: batches under way save a checkpoint on their way out
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def last_look(progress: Progress, prefix: str) -> float:
    """The mean of the first measure of this kind at the last look; NaN where the task has none."""
    name = name_look(progress, prefix)
    return float("nan") if name is None else float(np.mean(progress.looks[name][-1]))


def name_look(progress: Progress, prefix: str) -> str | None:
    """The first measure of this kind; None: the task has none."""
    return min((name for name in progress.looks if name.startswith(prefix)), key=_rank_name, default=None)


def _rank_name(name: str) -> tuple[bool, str]:
    return name not in (OFFLINE, VALI), name


def name_engine(setting: Setting, options: Options, platform: str) -> str:
    """`numba`, `xla` or `plain`; see `choice.py`."""
    return choose_engine(setting, wanted=options.engine, platform=platform, devices=options.devices).name


def load_engine(engine: str, platform: str, *, threads: int) -> Callable[[Setting, Plan], Advance]:
    """Imports what the engine needs, no more."""
    if engine == "numba":
        from hushrank.engine.fused import fuse_rounds

        return partial(fuse_rounds, threads=threads)
    if engine == "plain":
        from hushrank.engine.plain import repeat_rounds

        return repeat_rounds
    import_jax()
    from hushrank.engine.gathered import compile_gathered
    from hushrank.engine.program import compile_rounds

    def compile_plan(setting: Setting, plan: Plan) -> Advance:
        compile_method = compile_gathered if setting.method.is_gathered else compile_rounds
        return compile_method(setting, plan, platform=platform)

    return partial(compile_with_fallback, compile_plan, platform=platform)


def count_devices(method: Method, options: Options, platform: str) -> int:
    """How many devices the clients are divided among."""
    if method.is_gathered or method.has_own_rankers or method.keeps_updates:
        if (options.devices or 1) > 1:
            raise ValueError(
                f"devices is {options.devices}, but rules, attacks, keep_every and remedies that keep something on "
                "clients need all clients of a round on one: leave --devices out."
            )
        return 1
    if options.devices is None and platform == "cpu":
        return 1
    n_present = len(import_jax().devices(platform))
    n_devices = n_present if options.devices is None else options.devices
    if not 1 <= n_devices <= n_present:
        raise ValueError(f"devices is {n_devices}, must be from 1 to {n_present}, the number that JAX sees.")
    return n_devices


def count_workers(setting: Setting, plans: tuple[Plan, ...], options: Options) -> int:
    """As many threads as asked for, and as their batches fit into the memory limit."""
    if options.workers is not None and options.workers < 1:
        raise ValueError(f"workers is {options.workers}, must be at least 1.")
    workers = options.workers or os.cpu_count() or 1
    limit = options.memory_limit or (count_memory() if setting.method.is_gathered else None)
    if limit is None:
        return workers
    largest = max(estimate_bytes(setting, plan) for plan in plans)
    if largest > limit:
        name = "the memory limit" if options.memory_limit else "this machine's memory"
        raise ValueError(
            f"one batch of this run needs about {largest:,} bytes and {name} is {limit:,}: raise it, or choose a "
            "smaller ranker, data set or, for a rule or attack, cohort."
        )
    return max(1, min(workers, limit // largest))


def count_memory() -> int | None:
    """Bytes of this machine; None where the system does not say."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_cell(setting: Setting, cell: Cell, progress: Progress, column: int) -> CellResult:
    looks = {name: array if name == LOOK else array[:, column] for name, array in progress.looks.items()}
    return CellResult(
        setting.users[cell.user][0],
        setting.dataset.folds[cell.fold].number,
        cell.repeat,
        params=mean_params(setting, progress.state, column, None),
        shown={name: array[:, column] for name, array in progress.shown.items()},
        looks=looks,
        first=initial_params(setting, cell),
        kept={name: array[column] for name, array in part_of(progress.state, PERSONAL).items()},
    )
