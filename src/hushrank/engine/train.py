"""One task, from its last checkpoint (or from the beginning) to the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hushrank.engine.checkpoint import LOOK, Progress, load_progress, save_progress
from hushrank.engine.record import extend_named
from hushrank.engine.task import Task
from hushrank.types import NamedArrays

_CALL_SECONDS = 0.5  # Why: how long one call of a program should take, so that progress moves and Ctrl-C is heard


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The run was asked to stop; what was done is saved."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What happens beside the training itself."""

    stop: threading.Event
    report: Callable[[Progress], None]  # hears of every call's progress
    checkpoint: Path | None  # this task's file
    seconds: float  # between two checkpoints
    identity: str
    saved: Callable[[], None]  # called after each checkpoint
    lasting: tuple[str, ...] | None = None  # see `Options.lasting`


def train_task(task: Task, watch: Watch) -> Progress:
    """Rounds in calls of about half a second; looks on the schedule; a checkpoint now and then and at the end."""
    progress = load_progress(watch.checkpoint, identity=watch.identity) if watch.checkpoint else None
    progress = progress or look(task, Progress(0, _on_host(task.start())))
    watch.report(progress)
    state, n, last_save = progress.state, 1, time.monotonic()
    while progress.round < task.rounds:
        goal = next_look(task, progress.round)
        n = min(n, task.most_rounds, goal - progress.round)
        began = time.monotonic()
        state, shown = task.advance(state, progress.round + 1, n)
        progress = record(progress, state, shown, n)
        n = max(1, int(_CALL_SECONDS * n / (time.monotonic() - began)))
        if progress.round == goal:
            progress = look(task, progress)
        watch.report(progress)
        is_over = progress.round == task.rounds or watch.stop.is_set()
        if is_over or time.monotonic() - last_save > watch.seconds:
            save(progress, watch, is_last=progress.round == task.rounds)
            last_save = time.monotonic()
        if watch.stop.is_set():
            raise Stopped
    return progress


def save(progress: Progress, watch: Watch, *, is_last: bool) -> None:
    """What belongs to clients is on disk as long as the training may have to continue from it, and no longer."""
    if watch.checkpoint is None:
        return
    if is_last and watch.lasting is not None:
        progress = replace(progress, state={name: progress.state[name] for name in watch.lasting})
    save_progress(watch.checkpoint, progress, identity=watch.identity, is_private=watch.lasting is not None)
    watch.saved()


def next_look(task: Task, round: int) -> int:
    """The first round after `round` that is followed by an examination."""
    return min((round // task.eval_every + 1) * task.eval_every, task.rounds)


def look(task: Task, progress: Progress) -> Progress:
    """The progress with one more examination."""
    found = {LOOK: np.asarray(progress.round), **task.examine(progress.state)}
    row = {name: np.asarray(value)[None] for name, value in found.items()}
    return replace(progress, looks=extend_named(progress.looks, row))


def record(progress: Progress, state: NamedArrays, shown: NamedArrays, n: int) -> Progress:
    """The progress after n more rounds."""
    return replace(
        progress, round=progress.round + n, state=_on_host(state), shown=extend_named(progress.shown, _on_host(shown))
    )


def _on_host(arrays: NamedArrays) -> NamedArrays:
    return {name: np.asarray(array) for name, array in arrays.items()}
