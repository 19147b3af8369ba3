"""Which look of a training of personalised search the numbers of single users are kept for."""

from __future__ import annotations

import numpy as np
from tiny_users import tiny_personal, tiny_task

from hushrank.engine.checkpoint import LOOK, Progress
from hushrank.runs.personal_search import read_result


def read_users(validation: list[float]) -> dict[str, np.ndarray]:
    """Three looks, at which two users reach 0, 1 and 2."""
    setting = tiny_personal()
    task = tiny_task(setting)
    each = task.rounds // setting.rounds
    reached = np.repeat(np.arange(3.0)[:, None], 2, axis=1)
    looks = {"vali/MAP": np.array(validation), "users/offline/MAP": reached, LOOK: each * np.arange(3)}
    shown = {"searches": np.ones(task.rounds)}
    return dict(read_result(setting, task, Progress(task.rounds, {"params": np.zeros(1)}, shown, looks), 0).users)


def test_single_users_are_kept_at_the_end_and_at_the_best_look() -> None:
    users = read_users([0.1, 0.4, 0.3])
    assert users["offline/MAP"].tolist() == [2, 2] and users["best/offline/MAP"].tolist() == [1, 1]


def test_without_validation_searches_the_last_look_is_taken() -> None:
    assert read_users([np.nan] * 3)["best/offline/MAP"].tolist() == [2, 2]


def test_of_weeks_every_user_is_kept_at_the_end_of_each_beside_the_engines_order() -> None:
    setting = tiny_personal(updating="retrain", stages=3, rounds=1)
    task = tiny_task(setting)
    each = task.rounds // setting.settings.n_trainings
    reached = np.repeat(np.arange(3.0)[:, None], 2, axis=1)
    looks = {"users/offline/MAP": reached, "users/original/MAP": reached + 10, LOOK: each * np.arange(3)}
    progress = Progress(task.rounds, {"params": np.zeros(1)}, {"searches": np.ones(task.rounds)}, looks)
    users = read_result(setting, task, progress, 0).users
    assert {name: values.tolist() for name, values in users.items() if name.startswith("stage ")} == {
        "stage 1/offline/MAP": [1, 1],
        "stage 1/original/MAP": [11, 11],
        "stage 2/offline/MAP": [2, 2],
        "stage 2/original/MAP": [12, 12],
    }
    assert users["offline/MAP"].tolist() == [2, 2] and "original/MAP" not in users
