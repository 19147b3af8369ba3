"""Many runs in several processes. One that fails or dies takes nothing else with it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hushrank.extras import explain_missing
from hushrank.files import Json, JsonObject
from hushrank.recipes.recipe import Recipe, as_json, recipe_from_json
from hushrank.runs.forgetting import ForgetRequest, forget_clients, read_request, write_request
from hushrank.runs.run import Run, RunOptions, run_recipe

_PATIENCE = 20.0  # seconds that a process has to save its checkpoint after Ctrl-C


@dataclass(frozen=True, slots=True)
class Job:
    """One run, or clients forgotten in one."""

    recipe: Recipe
    directory: Path
    forgets: ForgetRequest | None = None  # in a run that must have finished when the job begins; None: a run itself

    @property
    def is_finished(self) -> bool:
        return (self.directory / "result.json").is_file()


@dataclass(frozen=True, slots=True)
class Step:
    """What a pool tells of one job."""

    number: int
    share: float  # of the run
    quality: float | None = None  # mean on validation queries at the last look; NaN: the data have nothing to measure
    measure: str = "nDCG@10"  # which quality that is
    is_over: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How the runs are carried out; nothing here changes a result, device and engine apart."""

    n_processes: int | None = None  # default: one per processor
    plugins: tuple[str, ...] = ()
    run: JsonObject | None = None  # of each run: device, engine, memory_limit, checkpoint_seconds
    hear: Callable[[Step], None] = lambda _: None  # called from any thread, one at a time
    in_process: bool = False  # one after another in this process, where methods that Python code registered are known


def run_jobs(jobs: Sequence[Job], options: PoolOptions) -> list[str | None]:
    """Carry out the jobs that are not finished yet; for each its error, None when it is finished.

    Clients are forgotten after all runs have ended.
    """
    runs = [number for number, job in enumerate(jobs) if job.forgets is None]
    stages = runs, [number for number, job in enumerate(jobs) if job.forgets is not None]
    if options.in_process:
        errors = {number: run_here(number, jobs[number], options) for stage in stages for number in stage}
        return [errors[number] for number in range(len(jobs))]
    processes = (os.cpu_count() or 1) if options.n_processes is None else options.n_processes
    if processes < 1:
        raise ValueError(f"jobs is {processes}, must be at least 1.")
    pool = _Pool(jobs, options)
    for stage in stages:
        run_stage(pool, stage, processes)
    return pool.errors


def run_stage(pool: _Pool, numbers: Sequence[int], processes: int) -> None:
    """Those of these jobs that are not finished yet."""
    pool.queue(numbers)
    with ThreadPoolExecutor(processes) as threads:
        workers = [threads.submit(pool.work) for _ in range(min(processes, pool.waiting.qsize()))]
        try:
            for worker in workers:
                worker.result()
        except BaseException:
            pool.stop()
            try:
                wait(workers, timeout=_PATIENCE)
            finally:
                pool.kill()  # those that do not stop, or all of them when Ctrl-C comes twice
            raise


def run_here(number: int, job: Job, options: PoolOptions) -> str | None:
    """One job in this process; its error, None when it is finished."""
    error = None
    try:
        if not job.is_finished:
            options.hear(Step(number, 0.0))
            run_job(job, RunOptions(out=job.directory, resume=True, **(options.run or {})))
    except Exception as failure:
        error = describe_failure(failure)
    options.hear(Step(number, 1.0 if error is None else 0.0, is_over=True, error=error))
    return error


def run_job(job: Job, options: RunOptions) -> Run:
    """In this process."""
    return run_recipe(job.recipe, options) if job.forgets is None else forget_clients(job.forgets, options)


def describe_failure(error: Exception) -> str:
    """One line; what hushrank did not raise itself is named as what it is."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | OSError):
        return text
    return explain_missing(error) or f"{type(error).__name__}: {text}"


def write_job(job: Job) -> Json:
    """As JSON, for another process; `read_job` is the way back."""
    forgets = None if job.forgets is None else write_request(job.forgets)
    return {"recipe": as_json(job.recipe), "directory": str(job.directory), "forgets": forgets}


def read_job(words: JsonObject) -> Job:
    recipe, directory = recipe_from_json(words["recipe"]), Path(words["directory"])
    return Job(recipe, directory, None if words["forgets"] is None else read_request(words["forgets"]))


class _Pool:
    def __init__(self, jobs: Sequence[Job], options: PoolOptions) -> None:
        self.jobs, self.options = jobs, options
        self.errors: list[str | None] = [None] * len(jobs)
        self.waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.lock, self.is_stopping = threading.Lock(), threading.Event()
        self.workers: set[subprocess.Popen[str]] = set()

    def queue(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if self.jobs[number].is_finished:
                self.hear(Step(number, 1.0, is_over=True))
            else:
                self.waiting.put(number)

    def hear(self, step: Step) -> None:
        with self.lock:
            self.options.hear(step)

    def work(self) -> None:
        """One thread: a process, and a new one whenever that dies."""
        worker: subprocess.Popen[str] | None = None
        while not self.is_stopping.is_set():
            try:
                number = self.waiting.get_nowait()
            except queue.Empty:
                break
            worker = worker or self.start()
            error = self.carry_out(number, worker)
            if not self.is_stopping.is_set():
                self.errors[number] = error
                self.hear(Step(number, 1.0 if error is None else 0.0, is_over=True, error=error))
            if worker.poll() is not None:
                self.leave(worker)
                worker = None
        if worker is not None:
            self.leave(worker)

    def leave(self, worker: subprocess.Popen[str]) -> None:
        with suppress(BrokenPipeError), worker:
            worker.stdin.close() if worker.stdin else None

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hushrank.runs.worker", *self.options.plugins]
        # Why a session of its own: Ctrl-C reaches the pool alone, which then stops each process once
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True
        )
        with self.lock:
            self.workers.add(worker)
        return worker

    def carry_out(self, number: int, worker: subprocess.Popen[str]) -> str | None:
        assert worker.stdin is not None and worker.stdout is not None
        job = self.jobs[number]
        order = {"number": number, **write_job(job), "options": dict(self.options.run or {})}
        self.hear(Step(number, 0.0))
        try:
            print(json.dumps(order), file=worker.stdin, flush=True)
            for line in worker.stdout:
                said = json.loads(line)
                if "error" in said:
                    return None if said["error"] is None else str(said["error"])
                self.hear(Step(number, said["share"], said["quality"], said["measure"]))
        except (BrokenPipeError, ValueError):
            pass  # Why: the process died in the middle of a word; how it ended says more
        code = worker.wait()
        return f"its process died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"

    def stop(self) -> None:
        self.is_stopping.set()
        self.signal(signal.SIGINT)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        with self.lock:
            for worker in self.workers:
                if worker.poll() is None:
                    worker.send_signal(number)
