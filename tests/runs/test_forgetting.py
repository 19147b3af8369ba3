"""Clients forgotten in a finished run: a directory of its own, which says what was forgotten and continues."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushrank.engine.simulate import News, Options
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.reports.summary import from_directory
from hushrank.runs.directory import FORGETTING
from hushrank.runs.forget_ledger import read_counted
from hushrank.runs.forget_methods import METHODS, Forgetting
from hushrank.runs.forgetting import ForgetRequest, forget_clients, prepare_forgetting, read_request, write_request
from hushrank.runs.pool import Job, PoolOptions, run_jobs
from hushrank.runs.result import read_rankers
from hushrank.runs.run import Run, RunOptions, run_recipe

SIZE = {"data": "tiny", "folds": [1, 2], "n_clients": 5, "interactions": 5, "rounds": 12, "keep_every": 2}
LIES = {"attack": "opposite-model", "n_malicious": 1}


def recipe_of(**changes: Any) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {**SIZE, "clicks": ["perfect", "informational"], **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_recipe(recipe_of(**LIES), RunOptions(out=tmp_path_factory.mktemp("forget") / "run")).directory


def forget(run: Path, out: Path, *, resume: bool = False, **how: Any) -> Run:
    request = ForgetRequest(run, Forgetting(**{"clients": (0,), **how}))
    return forget_clients(request, RunOptions(out=out, resume=resume))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_leaves_a_directory_like_a_runs(method: str, run: Path, tmp_path: Path) -> None:
    found = forget(run, tmp_path / "out", method=method)
    assert {"result.json", "metrics.jsonl", "rankers.safetensors", "report.html", FORGETTING} <= {
        path.name for path in found.directory.iterdir()
    }
    assert found.result["forgetting"]["method"] == method and found.result["forgetting"]["clients"] == [0]
    assert found.result["is_exact"] == (method in ("retrain", "rollback", "fresh"))
    summary = from_directory(found.directory)
    assert summary.recipe["forget"] == method and summary.recipe["rounds"] == (12 if method in _ALL else 6)
    assert set(read_rankers(found.directory)) == set(read_rankers(run))


_ALL = ("retrain", "subtract")  # train all rounds once more


def test_the_liar_is_gone_and_nobody_else_has_changed(run: Path, tmp_path: Path) -> None:
    """Without the client that lied the run is that in which it never lied."""
    honest = run_recipe(recipe_of(), RunOptions(out=tmp_path / "honest")).directory
    one, other = (
        read_rankers(forget(which, tmp_path / name, method="retrain").directory)
        for which, name in ((run, "a"), (honest, "b"))
    )
    assert all(one[cell].tobytes() == other[cell].tobytes() for cell in one)
    assert any(one[cell].tobytes() != params.tobytes() for cell, params in read_rankers(run).items())


def test_the_result_says_what_was_searched_and_how(run: Path, tmp_path: Path) -> None:
    found = forget(run, tmp_path / "out", local_steps=2, every=4).result
    assert found["n_interactions"] == 2 * 2 * 3 * 4 * 2  # users, folds, rounds 1, 5, 9, clients, steps
    assert found["searches_per_client_round"] == [2]
    assert {key: found["recipe"][key] for key in ("local_steps", "every", "rounds")} == {
        "local_steps": 2,
        "every": 4,
        "rounds": 3,
    }
    before = json.loads((run / "result.json").read_text())
    assert before["n_interactions"] == 2 * 2 * 12 * 5 * 5


def test_what_was_subtracted_is_measured(run: Path, tmp_path: Path) -> None:
    """The last point of the curve is the new ranker's, not that of the run."""
    found = forget(run, tmp_path / "out", method="subtract")
    before = json.loads((run / "result.json").read_text())["metrics"]["perfect"]
    after = found.result["metrics"]["perfect"]
    assert after["offline/nDCG@10"] != before["offline/nDCG@10"]
    assert after["offline/nDCG@5"]["mean"] > 0


class Interrupt(Exception):  # noqa: N818 - not an error
    """Somebody presses Ctrl-C."""


def test_stopped_in_the_middle_it_continues_to_the_same_bits(run: Path, tmp_path: Path) -> None:
    whole = forget(run, tmp_path / "whole").directory

    def interrupt(news: News) -> None:
        if news.share > 0:
            raise Interrupt

    request = ForgetRequest(run, Forgetting((0,)))
    with pytest.raises(Interrupt):
        forget_clients(request, RunOptions(out=tmp_path / "part", report=interrupt, checkpoint_seconds=0))
    assert not (tmp_path / "part" / "result.json").exists()
    moved = shutil.copytree(run, tmp_path / "moved")  # a run may be elsewhere by now
    part = forget(moved, tmp_path / "part", resume=True).directory
    one, other = read_rankers(whole), read_rankers(part)
    assert all(one[cell].tobytes() == other[cell].tobytes() for cell in one)


def test_a_directory_belongs_to_one_forgetting(run: Path, tmp_path: Path) -> None:
    out = forget(run, tmp_path / "out").directory
    with pytest.raises(ValueError, match="exists: add --resume to continue it"):
        forget(run, out)
    with pytest.raises(ValueError, match="forgets others, or in another way"):
        forget(run, out, resume=True, clients=(1,))
    with pytest.raises(ValueError, match="clients of another run are forgotten in"):
        run_recipe(recipe_of(**LIES), RunOptions(out=out, resume=True))
    with pytest.raises(ValueError, match="is itself a run that forgets: to forget more clients, name them all"):
        forget(out, tmp_path / "more")


def test_a_run_that_has_not_finished_has_nothing_to_forget(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a directory"):
        forget(tmp_path / "nowhere", tmp_path / "out")


NOISY = {"privacy": "sound", "noise_multiplier": 3.0, "delta": 1e-5, "clicks": "perfect", "folds": [1]}


def test_every_training_that_forgets_is_entered_in_the_ledger_of_its_run(tmp_path: Path) -> None:
    """As by `hushrank forget`: 12 rounds of the run, 6 of the eraser, 12 of retraining, composed."""
    run = run_recipe(recipe_of(**NOISY), RunOptions(out=tmp_path / "run"))
    again = [forget(run.directory, tmp_path / method, method=method) for method in ("eraser", "retrain")]
    assert [each.rounds for each in read_counted(run.directory)] == [6, 12]
    assert again[1].result["privacy_spent"]["rounds"] == [12, 6, 12]
    spent = [found.result["guarantee"]["epsilon"] for found in (run, *again)]
    assert spent[0] < spent[1] < spent[2] < 3 * spent[0]  # composed, not added
    forget(run.directory, tmp_path / "eraser", method="eraser", resume=True)
    assert len(read_counted(run.directory)) == 2  # the same rankers once more are nothing new


def test_no_way_to_forget_spends_more_than_the_run_promised(tmp_path: Path) -> None:
    recipe = recipe_of(**{**NOISY, "noise_multiplier": None, "epsilon": 5.0})
    run = Job(recipe, tmp_path / "run")
    jobs = [
        Job(recipe, tmp_path / m, ForgetRequest(run.directory, Forgetting((1,), m))) for m in ("eraser", "subtract")
    ]
    errors = run_jobs([run, *jobs], PoolOptions(in_process=True))
    assert errors[0] is None and "the run promised epsilon 5" in str(errors[1])
    assert "would see what the leavers added, without noise" in str(errors[2])
    assert not read_counted(run.directory) and not any(job.directory.exists() for job in jobs)


def test_without_an_agreed_charge_nothing_is_trained(run: Path) -> None:
    experiment = prepare_forgetting(ForgetRequest(run, Forgetting((0,))), lambda _: None)
    with pytest.raises(ValueError, match="nobody has agreed to what this training spends"):
        experiment.carry_out(Options())


def test_a_request_survives_its_way_to_another_process(tmp_path: Path) -> None:
    request = ForgetRequest(tmp_path, Forgetting((3, 7), "fresh", local_steps=2, leap=4.0))
    assert read_request(json.loads(json.dumps(write_request(request)))) == request


def test_a_pool_forgets_after_the_run_has_finished(tmp_path: Path) -> None:
    recipe = recipe_of(clicks="perfect", folds=[1])
    run = Job(recipe, tmp_path / "run")
    forgets = Job(recipe, tmp_path / "forgets", ForgetRequest(run.directory, Forgetting((1,))))
    assert run_jobs([forgets, run], PoolOptions(2, run={"workers": 1})) == [None, None]
    assert forgets.is_finished
    here = Job(recipe, tmp_path / "here", ForgetRequest(run.directory, Forgetting((1,))))
    assert run_jobs([here], PoolOptions(in_process=True)) == [None]
    one, other = (read_rankers(job.directory) for job in (forgets, here))
    assert all(np.array_equal(one[cell], other[cell]) for cell in one)


def test_a_run_that_failed_fails_what_forgets_in_it(tmp_path: Path) -> None:
    recipe = recipe_of(data="nowhere")
    run = Job(recipe, tmp_path / "run")
    forgets = Job(recipe, tmp_path / "out", ForgetRequest(run.directory, Forgetting((1,))))
    errors = run_jobs([forgets, run], PoolOptions(in_process=True))
    assert all(errors) and "is not a directory" in str(errors[0])


def test_experiments_that_forget_differently_share_no_checkpoint(run: Path) -> None:
    ways = [Forgetting((0,)), Forgetting((1,)), Forgetting((0,), local_steps=1), Forgetting((0,), "fresh")]
    found = {prepare_forgetting(ForgetRequest(run, how), lambda _: None).identity for how in ways}
    assert len(found) == len(ways)
