"""The engine drives any task: a model that is no ranker of features gets checkpoints, schedules and resuming too."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hushrank.engine.checkpoint import LOOK, load_progress
from hushrank.engine.simulate import News, Options, drive_tasks
from hushrank.engine.train import Stopped, Watch, train_task
from hushrank.types import NamedArrays


@dataclass(frozen=True, slots=True)
class Counting:
    """Adds the round's number to what it has; a state of two arrays of different shapes."""

    rounds: int = 7
    eval_every: int = 3
    most_rounds: int = 2
    stop: threading.Event | None = None  # set after the fourth round

    def start(self) -> NamedArrays:
        return {"total": np.zeros(2), "history/longest": np.zeros((1, 3), np.float32)}

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        numbers = np.arange(first, first + n)
        if self.stop is not None and first + n > 4:
            self.stop.set()
        return {**state, "total": state["total"] + numbers.sum()}, {"seen": numbers}

    def examine(self, state: NamedArrays) -> NamedArrays:
        return {"offline/total": state["total"][0]}


def test_any_task_is_advanced_examined_on_its_schedule_and_recorded() -> None:
    news: list[News] = []
    (progress,) = drive_tasks([Counting()], Options(report=news.append), workers=1)
    assert progress.state["total"].tolist() == [28.0, 28.0]  # 1 + 2 + ... + 7
    assert progress.shown["seen"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert progress.looks[LOOK].tolist() == [0, 3, 6, 7]
    assert progress.looks["offline/total"].tolist() == [0.0, 6.0, 21.0, 28.0]
    assert news[-1].share == 1.0 and news[-1].test == 28.0 and np.isnan(news[-1].vali)


def test_a_stopped_task_is_saved_and_continued(tmp_path: Path) -> None:
    stop, path = threading.Event(), tmp_path / "task.safetensors"
    watch = Watch(stop, lambda _: None, path, 1e9, "me", lambda: None)
    with pytest.raises(Stopped):
        train_task(Counting(stop=stop), watch)
    kept = load_progress(path, identity="me")
    assert kept is not None and 4 <= kept.round < 7
    stop.clear()
    assert train_task(Counting(), watch).state["total"].tolist() == [28.0, 28.0]
