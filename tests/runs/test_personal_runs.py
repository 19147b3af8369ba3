"""Whole runs of recipe fedps, on a log that was read into a directory: results, reports, resuming, no secrets out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from secret_search import Secret, row_secret, search_bytes, search_files
from tiny_users import TinyUsers

from hushrank.engine.personal_store import ROWS, PersonalStore
from hushrank.engine.simulate import News
from hushrank.personal.log import Search, SearchLog, make_log, slice_log
from hushrank.personal.spool import ListSizes, PopulationWriter
from hushrank.recipes.personal_setting import resolve_personal
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.reports.differences import describe_differences
from hushrank.reports.summary import from_directory
from hushrank.reports.terminal import result_text
from hushrank.runs.personal_search import make_task
from hushrank.runs.run import RunOptions, run_recipe

QUERY = (3, 11, 5, 7, 2, 9, 4, 8, 6, 10)  # the words of one search of user 0, in no other log
SECRETS: tuple[Secret, ...] = (row_secret("a query", QUERY),)


def plant_log(users: TinyUsers) -> SearchLog:
    """User 0's, in which one search of training has the planted query."""
    log, place = users.log_of(0), 8
    searches = [
        Search(
            int(log.times[i]),
            QUERY if i == place else tuple(log.queries[i][log.queries[i] > 0].tolist()),
            tuple(log.documents[log.rows(i)].tolist()),
            tuple(log.documents[log.rows(i)][log.is_clicked[log.rows(i)]].tolist()),
        )
        for i in range(log.n_searches)
    ]
    return make_log(searches, log.sessions)


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> Path:
    users, place = TinyUsers(), tmp_path_factory.mktemp("log") / "users"
    with PopulationWriter(place) as writer:
        writer.add(plant_log(users))
        for user in range(1, users.n_users):
            writer.add(users.log_of(user))
        writer.finish(users.collection, users.periods, ListSizes(0, 0), {"name": "tiny", "description": "five users"})
    return place


def tiny_recipe(population: Path, **changes: object) -> Recipe:
    small = {"data": str(population), "cohort": 2, "rounds": 2, "word_dim": 4, "local_batch": 4, "seed": 3}
    return change_recipe(NAMED["fedps"], {**small, **changes})


@pytest.fixture(scope="module")
def finished(population: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "peps"
    run_recipe(tiny_recipe(population), RunOptions(out=out, checkpoint_seconds=0.0))
    return out


def test_the_result_is_the_contract(finished: Path) -> None:
    result = json.loads((finished / "result.json").read_text())
    assert set(result["metrics"]) >= {"offline/MAP", "offline/MRR", "offline/P@1", "vali/MAP"}
    assert "offline/P-Improve" not in result["metrics"]  # without lists as they were shown
    assert set(result["metrics"]["offline/MAP"]) == {"mean", "std", "values"}
    assert result["recipe"]["n_clients"] == 5 and result["primary"] == "offline/MAP"
    assert result["messages_per_training"] == 10 and result["n_interactions"] == 2 * 5 * 9
    curve = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert {row["round"] for row in curve if row["name"] == "offline/MAP"} == {0, 1, 2}


def test_tables_and_pages_show_map(finished: Path, population: Path, tmp_path: Path) -> None:
    original = tmp_path / "original"
    run_recipe(
        change_recipe(
            tiny_recipe(population, rounds=3, cohort=10, word_dim=32),
            {"model": "original", "local_batch": "none", "rounds": 3},
        ),
        RunOptions(out=original),
    )
    runs = [from_directory(original), from_directory(finished)]
    assert "offline MAP" in result_text(runs) and "nDCG" not in result_text(runs)
    page = (finished / "report.html").read_text()
    assert "test MAP" in page and "nDCG@10" not in page
    (test,) = describe_differences(runs, ["original", "peps"]) or []
    assert test["measure"] == "offline/MAP" and "p" in test  # five users make five pairs
    users = load_file(finished / "users.safetensors")["log/1/0/offline/MAP"]
    assert users.shape == (5,) and np.isclose(runs[1].metrics["log"]["offline/MAP"].mean, users.mean())


def test_an_interrupted_run_resumes_to_the_same_bits(finished: Path, population: Path, tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def fail(news: News) -> None:
        if news.share >= 0.5:
            raise KilledError

    out = tmp_path / "killed"
    with pytest.raises(KilledError):
        run_recipe(tiny_recipe(population), RunOptions(out=out, checkpoint_seconds=0.0, report=fail))
    assert list((tmp_path / "killed" / "checkpoints").iterdir())
    run_recipe(tiny_recipe(population), RunOptions(out=out, resume=True))
    for name in ("rankers.safetensors", "metrics.jsonl", "users.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (finished / name).read_bytes(), name


def test_logs_and_personal_vectors_stay_on_clients(finished: Path, population: Path) -> None:
    _, setting = resolve_personal(tiny_recipe(population))
    task = make_task(setting, 0, "cpu")
    known = slice_log(setting.people.record_of(0).log, 8, 9)
    assert known.queries[0, : len(QUERY)].tolist() == list(QUERY)  # it is in the log,
    assert search_bytes(known.queries.tobytes(), SECRETS, where="log")
    assert search_files(finished, SECRETS) == []  # and in no file of the run, its checkpoint included
    kept = load_file(finished / "checkpoints" / "batch-000.safetensors")
    rows = [row.tobytes() for row in kept.pop(f"state:{ROWS}")]
    outside = [array.tobytes() for array in kept.values()]
    outside += [path.read_bytes() for path in finished.iterdir() if path.is_file()]
    outside += [message.delta.tobytes() for message in list_messages(task)]
    assert len(rows) > 10 and not [row for row in rows if any(row in content for content in outside)]


def list_messages(task) -> list:  # type: ignore[no-untyped-def, type-arg]
    """What clients send in the first step."""
    state = task.start()
    return list(task.visit_clients(state["params"], PersonalStore(state), task.schedule.step_at(1)))
