"""Whole runs of recipe fedps, on a log that was read into a directory: results, reports, resuming, no secrets out."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from secret_search import Secret, row_secret, search_bytes, search_files
from tiny_users import TinyUsers

from hushrank.engine.simulate import News
from hushrank.personal.log import ListSizes, Search, SearchLog, make_log, slice_log
from hushrank.personal.spool import PopulationWriter
from hushrank.recipes.personal_setting import resolve_personal
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.reports.differences import describe_differences
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.reports.terminal import result_text
from hushrank.runs.personal_search import prepare_personal
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.types import Array, Notice

QUERY = (3, 11, 5, 7, 2, 9, 4, 8, 6, 10)  # the words of one search of user 0, in no other log
GENERATED = "personal-like:n_users=6,n_documents=1200,seed=1"
SOUND = {"privacy": "sound", "epsilon": 2.0}
SMALL = {"rounds": 2, "word_dim": 4, "local_batch": 4, "seed": 3}
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


def write_population(place: Path, first: SearchLog) -> None:
    """Five users, of whom `first` is the first one's log."""
    users = TinyUsers()
    with PopulationWriter(place) as writer:
        writer.add(first)
        for user in range(1, users.n_users):
            writer.add(users.log_of(user))
        writer.finish(users.collection, users.periods, ListSizes(0, 0), {"name": "tiny", "description": "five users"})


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("log") / "users"
    write_population(place, plant_log(TinyUsers()))
    return place


def tiny_recipe(population: Path, **changes: object) -> Recipe:
    return change_recipe(NAMED["fedps"], {**SMALL, "data": str(population), "cohort": 2, **changes})


@pytest.fixture(scope="module")
def finished(population: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "peps"
    run_recipe(tiny_recipe(population), RunOptions(out=out, checkpoint_seconds=0.0))
    return out


class KilledError(Exception):
    pass


def interrupt_run(population: Path, out: Path) -> Path:
    """A run that was killed when half of it was done."""

    def fail(news: News) -> None:
        if news.share >= 0.5:
            raise KilledError

    with pytest.raises(KilledError):
        run_recipe(tiny_recipe(population), RunOptions(out=out, checkpoint_seconds=0.0, report=fail))
    return out


@pytest.fixture(scope="module")
def killed(population: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interrupt_run(population, tmp_path_factory.mktemp("runs") / "killed")


def test_the_result_is_the_contract(finished: Path) -> None:
    result = json.loads((finished / "result.json").read_text())
    assert set(result["metrics"]) >= {"offline/MAP", "offline/MRR", "offline/P@1", "vali/MAP"}
    assert "offline/P-Improve" not in result["metrics"]  # without lists as they were shown
    assert set(result["metrics"]["offline/MAP"]) == {"mean", "std", "values"}
    assert result["recipe"]["n_clients"] == 5 and result["primary"] == "offline/MAP"
    assert result["messages_per_training"] == 10 and result["n_interactions"] == 2 * 5 * 9
    curve = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert {row["round"] for row in curve if row["name"] == "offline/MAP"} == {0, 1, 2}


@pytest.mark.parametrize(
    ("n_searches", "missing"),
    [
        (21, []),
        (18, ["offline"]),
        (15, ["vali", "offline"]),
    ],  # three in a week; validation begins after 15, test after 18
)
def test_whoever_has_nothing_to_measure_on_is_told_before_the_training(
    n_searches: int, missing: list[str], tmp_path: Path
) -> None:
    users = TinyUsers()
    with PopulationWriter(tmp_path / "users") as writer:
        for user in range(users.n_users):
            writer.add(slice_log(users.log_of(user), 0, n_searches))
        writer.finish(users.collection, users.periods, ListSizes(0, 0), {"name": "tiny", "description": "five users"})
    experiment = prepare_personal(tiny_recipe(tmp_path / "users"), lambda _: None, None)
    said = [notice.sentence for notice in experiment.foresee() if notice.name == "nothing-measured"]
    assert [f"no {prefix}/MAP" in sentence for prefix, sentence in zip(missing, said, strict=True)] == [True] * len(
        said
    )
    assert not missing or "None of the 5 users who are measured has a search with a click from 1970-02-12" in said[-1]


def run_original(data: str, out: Path) -> RunSummary:
    run_recipe(change_recipe(NAMED["fedps"], {"data": data, "model": "original"}), RunOptions(out=out))
    return from_directory(out)


def test_tables_and_pages_show_map(finished: Path, population: Path, tmp_path: Path) -> None:
    runs = [run_original(str(population), tmp_path / "original"), from_directory(finished)]
    assert "offline MAP" in result_text(runs) and "nDCG" not in result_text(runs)
    page = (finished / "report.html").read_text()
    assert "test MAP" in page and "nDCG@10" not in page


def test_of_real_users_no_single_number_is_written(finished: Path, killed: Path) -> None:
    assert not (finished / "users.safetensors").exists()
    for place in (finished, killed):
        kept = load_file(place / "checkpoints" / "batch-000.safetensors")
        assert "looks:offline/MAP" in kept and not [name for name in kept if "users/" in name]
    told = json.loads((finished / "result.json").read_text())["who_learns_what"]
    assert "no number of a single user" in next(line["learns"] for line in told if line["who"] == "this run")


def test_of_generated_users_every_one_is_compared(tmp_path: Path) -> None:
    knrm = {"model": "knrm", "topology": "central", "rounds": 1, "word_dim": 4}
    run_recipe(change_recipe(NAMED["fedps"], {"data": GENERATED, **knrm}), RunOptions(out=tmp_path / "knrm"))
    runs = [run_original(GENERATED, tmp_path / "original"), from_directory(tmp_path / "knrm")]
    users = load_file(tmp_path / "knrm" / "users.safetensors")["log/1/0/offline/MAP"]
    assert users.shape == (6,) and np.isfinite(users).sum() > 2
    (test,) = describe_differences(runs, ["original", "knrm"]) or []
    assert test["measure"] == "offline/MAP" and "p" in test


def test_a_run_is_not_continued_on_another_log(tmp_path: Path) -> None:
    """The same name, number of users, titles and sizes; clicks of one user are others."""
    place, log = tmp_path / "users", TinyUsers().log_of(0)
    write_population(place, log)
    out = interrupt_run(place, tmp_path / "killed")
    shutil.rmtree(place)
    write_population(place, replace(log, is_clicked=log.is_clicked[::-1]))
    with pytest.raises(ValueError, match="belongs to another recipe, data"):
        run_recipe(tiny_recipe(place), RunOptions(out=out, resume=True))


@pytest.mark.parametrize("begun", ["killed", "finished"])
def test_a_run_resumes_to_the_same_bits(
    begun: str, finished: Path, population: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    out = shutil.copytree(request.getfixturevalue(begun), tmp_path / begun)
    run_recipe(tiny_recipe(population), RunOptions(out=out, resume=True))
    for name in ("rankers.safetensors", "metrics.jsonl"):
        assert (out / name).read_bytes() == (finished / name).read_bytes(), name


@pytest.mark.parametrize(
    ("changes", "said", "not_said"),
    [
        ({}, "No noise hides that", "no update names a word"),
        ({}, "how many pairs of documents", "Those that changed are words"),
        (SOUND, "The server reads that before it adds the noise", "how many pairs of documents"),
        ({"word_vectors": "all"}, "Those that changed are words of the client's own searches", "still tells much"),
    ],
)
def test_a_message_is_said_to_tell_what_it_tells(
    changes: dict[str, object], said: str, not_said: str, population: Path
) -> None:
    experiment = prepare_personal(tiny_recipe(population, **changes), lambda _: None, None)
    told = next(line["learns"] for line in experiment.describe()["who_learns_what"] if line["who"] == "in a message")
    assert said in told and not_said not in told


def test_whoever_shares_word_vectors_without_noise_is_told(population: Path) -> None:
    def names(**changes: object) -> list[str]:
        experiment = prepare_personal(tiny_recipe(population, **changes), lambda _: None, None)
        return [notice.name for notice in experiment.foresee()]

    assert names(word_vectors="frequent") == names(word_vectors="all") == ["words-read"]
    assert names() == names(word_vectors="all", **SOUND) == []


def test_no_query_is_in_a_file_of_a_run(finished: Path, killed: Path, population: Path) -> None:
    _, setting = resolve_personal(tiny_recipe(population))
    known = slice_log(setting.people.record_of(0).log, 8, 9)
    assert known.queries[0, : len(QUERY)].tolist() == list(QUERY)  # it is in the log,
    assert search_bytes(known.queries.tobytes(), SECRETS, where="log")
    assert search_files(finished, SECRETS) == [] == search_files(killed, SECRETS)  # and in no file of a run


def find_words(place: Path, vectors: Array) -> list[int]:
    """Words of which some file holds about the public vector: a personal one begins there and moves little."""
    public, found = vectors[2:].astype(np.float64), []
    for path in sorted(place.rglob("*.safetensors")):
        for array in load_file(path).values():
            if array.dtype.kind == "f" and array.size >= public.shape[1]:
                windows = np.lib.stride_tricks.sliding_window_view(array.ravel(), public.shape[1])
                away = np.linalg.norm(windows[:, None] - public, axis=-1) / np.linalg.norm(public, axis=-1)
                found += (2 + np.argmin(away, axis=1)[away.min(axis=1) < 0.05]).tolist()
    return found


def test_every_lost_step_is_counted_in_the_warning(tmp_path: Path) -> None:
    """2 of 6 users are late, and both of a step must answer: of the 3 steps of a round 1 or 2 are lost, never all."""
    late = {"data": GENERATED, "cohort": 2, "rounds": 2, "model": "knrm", "word_dim": 4, "stragglers": 0.34}
    recipe, said = change_recipe(NAMED["fedps"], late), list[Notice]()
    _, setting = resolve_personal(recipe)
    key = setting.key_of(0)
    schedule, is_late = setting.schedule_of(key), setting.lateness_of(key).is_late
    n_lost = sum(bool(is_late[schedule.step_at(number).ids].any()) for number in range(1, 7))
    run_recipe(recipe, RunOptions(out=tmp_path / "late", note=said.append))
    lost = [notice.sentence for notice in said if notice.name == "lost-steps"]
    assert 2 <= n_lost <= 4 and len(lost) == 1 and lost[0].startswith(f"In {n_lost} steps fewer than half")


@pytest.mark.parametrize("topology", ["flat", "central"])
def test_personal_vectors_are_on_disk_only_while_a_training_goes_on(
    topology: str, finished: Path, killed: Path, population: Path, tmp_path: Path
) -> None:
    _, setting = resolve_personal(tiny_recipe(population))
    own = {int(word) for user in range(5) for word in setting.people.record_of(user).own_words}
    assert set(find_words(killed, setting.vectors)) >= own - {0, 1}  # a training under way tells every word:
    place = killed / "checkpoints"
    assert place.stat().st_mode & 0o777 == 0o700  # its owner alone may read it
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}
    if topology == "central":
        finished = tmp_path / topology
        recipe = change_recipe(NAMED["fedps"], {**SMALL, "data": str(population), "topology": topology})
        run_recipe(recipe, RunOptions(out=finished, checkpoint_seconds=0.0))
    assert find_words(finished, setting.vectors) == []
    kept = load_file(finished / "checkpoints" / "batch-000.safetensors")
    assert {name for name in kept if name.startswith("state:")} == {"state:params", "state:steps"}


def test_all_weeks_of_a_log_are_measured_on_lists_of_one_size(tmp_path: Path) -> None:
    users, sizes = TinyUsers(), {}
    for name, given in (("uneven", ListSizes(6, 3)), ("unknown", ListSizes(6, 0))):
        with PopulationWriter(tmp_path / name) as writer:
            for user in range(users.n_users):
                log = users.log_of(user)
                clicked = [log.documents[log.rows(i)][log.is_clicked[log.rows(i)]].tolist() for i in range(21)]
                words = [tuple(query[query > 0].tolist()) for query in log.queries]
                each = zip(log.times.tolist(), words, clicked, clicked, strict=True)
                writer.add(make_log([Search(*one) for one in each], log.sessions))
            writer.finish(users.collection, users.periods, given, {"name": name, "description": "five users"})
    for updating, stages in (("once", None), ("continue", 4)):
        _, setting = resolve_personal(tiny_recipe(tmp_path / "uneven", updating=updating, stages=stages))
        log = setting.people.population.log_of(1)
        sizes[updating] = {int(np.diff(log.starts)[place]) for place in (0, -1)}
    assert sizes == {"once": {3, 6}, "continue": {3}}
    with pytest.raises(ValueError, match="weeks cannot be compared"):
        resolve_personal(tiny_recipe(tmp_path / "unknown", updating="continue", stages=4))
