"""One batch of cells, from its last checkpoint (or from the beginning) to the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.aggregation.server_step import ServerState
from hushrank.engine.checkpoint import Progress, load_progress, save_progress
from hushrank.engine.evaluate import Examiner, examine
from hushrank.engine.gather import Advance, Seen, State, initial_state, person_table
from hushrank.engine.plan import CHUNK, Plan
from hushrank.engine.setting import Setting

_CALL_SECONDS = 0.5  # Why: how long one call of a program should take, so that progress moves and Ctrl-C is heard


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The run was asked to stop; what was done is saved."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What happens beside the training itself."""

    stop: threading.Event
    report: Callable[[Progress], None]  # hears of every call's progress
    checkpoint: Path | None  # this batch's file
    seconds: float  # between two checkpoints
    identity: str
    saved: Callable[[], None]  # called after each checkpoint


def train_batch(
    setting: Setting,
    plan: Plan,
    examiners: dict[tuple[int, str], Examiner],
    watch: Watch,
    make_advance: Callable[[Setting, Plan], Advance],
) -> Progress:
    """Rounds in calls of about half a second; quality on the schedule; a checkpoint now and then and at the end."""
    start = initial_state(setting, plan)
    progress = load_progress(watch.checkpoint, identity=watch.identity) if watch.checkpoint else None
    progress = progress or measure_quality(setting, plan, examiners, record_start(start))
    watch.report(progress)
    if progress.round == setting.rounds:
        return progress
    advance = make_advance(setting, plan)
    state, n, last_save = restore_state(progress), 1, time.monotonic()
    while progress.round < setting.rounds:
        goal = next_evaluation(setting, progress.round)
        n = min(n, CHUNK, goal - progress.round)
        began = time.monotonic()
        state, seen = advance(state, progress.round + 1, n)
        progress = record_rounds(progress, state, seen, n)
        n = max(1, int(_CALL_SECONDS * n / (time.monotonic() - began)))
        if progress.round == goal:
            progress = measure_quality(setting, plan, examiners, progress)
        watch.report(progress)
        is_over = progress.round == setting.rounds or watch.stop.is_set()
        if is_over or time.monotonic() - last_save > watch.seconds:
            save(progress, watch)
            last_save = time.monotonic()
        if watch.stop.is_set():
            raise Stopped
    return progress


def save(progress: Progress, watch: Watch) -> None:
    if watch.checkpoint is not None:
        save_progress(watch.checkpoint, progress, identity=watch.identity)
        watch.saved()


def next_evaluation(setting: Setting, round: int) -> int:
    """The first round after `round` that quality is measured after."""
    return min((round // setting.eval_every + 1) * setting.eval_every, setting.rounds)


def measure_quality(
    setting: Setting, plan: Plan, examiners: dict[tuple[int, str], Examiner], progress: Progress
) -> Progress:
    """The progress with one more look at the test and validation queries."""
    test, vali = (
        np.array(
            [
                examine(examiners[cell.fold, split], setting.method.ranker, params, person_table(setting, cell))
                for cell, params in zip(plan.cells, progress.params, strict=True)
            ]
        )
        for split in ("test", "vali")
    )
    return replace(
        progress,
        evaluated=np.append(progress.evaluated, progress.round),
        test=np.vstack([progress.test, test[:, 0]]),
        vali=np.vstack([progress.vali, vali[:, 0]]),
        test_max_rr=np.vstack([progress.test_max_rr, test[:, 1]]),
        vali_max_rr=np.vstack([progress.vali_max_rr, vali[:, 1]]),
    )


def record_start(state: State) -> Progress:
    n_cells = len(state.params)
    nothing: Any = np.zeros((0, n_cells))
    return Progress(
        0,
        *_on_host(state),
        online=nothing.astype(np.float32),
        searches=nothing.astype(np.int32),
        evaluated=np.zeros(0, np.int64),
        test=nothing,
        vali=nothing,
        test_max_rr=nothing,
        vali_max_rr=nothing,
    )


def record_rounds(progress: Progress, state: State, seen: Seen, n: int) -> Progress:
    """The progress after n more rounds."""
    params, first, second, steps = _on_host(state)
    return replace(
        progress,
        round=progress.round + n,
        params=params,
        server_first=first,
        server_second=second,
        server_steps=steps,
        online=np.vstack([progress.online, seen.quality]),
        searches=np.vstack([progress.searches, seen.searches]),
    )


def restore_state(progress: Progress) -> State:
    return State(progress.params, ServerState(progress.server_first, progress.server_second, progress.server_steps))


def _on_host(state: State) -> tuple[Any, Any, Any, Any]:
    return tuple(np.asarray(part) for part in (state.params, *state.server))  # type: ignore[return-value] # four parts
