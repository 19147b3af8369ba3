"""Many runs in processes: one that fails or dies takes nothing else with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.pool import Job, PoolOptions, Step, run_jobs

SMALL = {"data": "tiny", "folds": [1], "n_clients": 5, "rounds": 4}


def jobs(tmp_path: Path, *changes: dict[str, object]) -> list[Job]:
    recipes = [change_recipe(NAMED["fpdgd"], {**SMALL, **change}) for change in changes]
    return [Job(recipe, tmp_path / str(i)) for i, recipe in enumerate(recipes)]


def test_a_failed_run_is_told_and_the_others_finish(tmp_path: Path) -> None:
    three = jobs(tmp_path, {"seed": 1}, {"data": "nowhere"}, {"seed": 2})
    heard: list[Step] = []
    errors = run_jobs(three, PoolOptions(2, run={"workers": 1}, hear=heard.append))
    assert [job.is_finished for job in three] == [True, False, True]
    assert errors[0] is None and errors[2] is None
    assert errors[1] is not None and "'nowhere' is neither a directory nor the name of a data set" in errors[1]
    over = {step.number: step.error for step in heard if step.is_over}
    assert over == dict(enumerate(errors))


def test_finished_runs_are_left_alone_and_failed_ones_tried_again(tmp_path: Path) -> None:
    two = jobs(tmp_path, {"seed": 1}, {"seed": 2})
    run_jobs(two[:1], PoolOptions(1))
    before = (two[0].directory / "result.json").stat().st_mtime_ns
    heard: list[Step] = []
    assert run_jobs(two, PoolOptions(1, hear=heard.append)) == [None, None]
    assert (two[0].directory / "result.json").stat().st_mtime_ns == before
    assert heard[0] == Step(0, 1.0, is_over=True)


def test_a_process_that_is_killed_costs_its_run_alone(tmp_path: Path) -> None:
    plugin = tmp_path / "deadly.py"
    plugin.write_text(
        "import os, signal\nfrom hushrank.clicks.named import USERS\n"
        "def die(n_grades):\n    os.kill(os.getpid(), signal.SIGKILL)\nUSERS['deadly'] = die\n"
    )
    three = jobs(tmp_path, {"seed": 1}, {"clicks": "deadly"}, {"seed": 2})
    errors = run_jobs(three, PoolOptions(1, plugins=(str(plugin),)))
    assert errors == [None, "its process died (SIGKILL)", None]


def test_ctrl_c_stops_every_process_and_keeps_what_was_done(tmp_path: Path) -> None:
    seeds: list[dict[str, object]] = [{"rounds": 10**6, "eval_every": 10**6, "seed": i} for i in range(3)]
    long = jobs(tmp_path, *seeds)
    heard: list[float] = []

    def interrupt(step: Step) -> None:
        heard.append(step.share)
        if sum(share > 0 for share in heard) == 1 and heard[-1] > 0:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_jobs(long, PoolOptions(1, run={"workers": 1}, hear=interrupt))
    finally:
        signal.signal(signal.SIGINT, before)
    assert list((long[0].directory / "checkpoints").glob("batch-*.safetensors"))
    assert not any(job.is_finished for job in long)
    assert not long[2].directory.exists()


def test_at_least_one_process(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="jobs is -1, must be at least 1"):
        run_jobs(jobs(tmp_path, {}), PoolOptions(-1))
