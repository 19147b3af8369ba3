"""A client is forgotten, as in Chapter 6 of the thesis: which run forgets in which, and what verdicts are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hushrank.reproduce.listing import count_work
from hushrank.reproduce.papers import thesis_chapter6 as chapter6
from hushrank.reproduce.papers.thesis_skew import USERS
from hushrank.reproduce.reproduce import ReproduceOptions, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize
from hushrank.reproduce.verdicts import OFFLINE, Finished, NotJudged, Trials
from hushrank.runs.pool import PoolOptions

MQ = DataChoice("mq2007", "mq2007-like", is_stand_in=True)
SMALL = {"data": "tiny", "rounds": 40, "folds": (1,)}
NOISE = (0.0, 0.001, -0.001, 0.0005, -0.0005)
N_SEARCHES = 1000


def finish(place: Path, level: float, cell: Mapping[str, Any], *, turn: int = 0, early: float = 0.3) -> Finished:
    """Five trainings around a level for each user, and around `early` after a tenth of the searches."""
    noise = NOISE[turn:] + NOISE[:turn]
    directory = place / "-".join(map(str, cell.values()))
    directory.mkdir(parents=True)
    rows = [
        {"click": user, "fold": 1, "repeat": r, "name": OFFLINE, "interactions": n, "value": value + noise[r]}
        for user in USERS
        for r in range(5)
        for n, value in ((0, 0.2), (N_SEARCHES // 10, early), (N_SEARCHES, level))
    ]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = [{"fold": 1, "repeat": r, "value": level + noise[r]} for r in range(5)]
    result = {
        "recipe": {"clicks": list(USERS)},
        "metrics": {user: {OFFLINE: {"values": values}} for user in USERS},
        "n_interactions": N_SEARCHES * 5 * len(USERS),
    }
    return Finished({"data": "d", **cell}, directory, result)


def test_the_leaver_is_the_liar_and_one_run_serves_every_cell_of_the_table() -> None:
    trials = chapter6.grid(MQ, ReproductionSize())
    recipe = trials[0].recipe
    assert all(trial.recipe == recipe for trial in trials)
    assert (recipe.n_clients, recipe.interactions, recipe.rounds, recipe.repeats) == (10, 5, 10_000, 5)
    assert (recipe.attack, recipe.n_malicious, recipe.keep_every, recipe.learning_rate) == ("opposite-model", 1, 5, 0.1)
    forgotten = [trial.forgetting for trial in trials[1:]]
    assert all(how is not None and how.clients == (0,) for how in forgotten)
    assert [how and (how.method, how.local_steps, how.every) for how in forgotten] == [
        ("retrain", None, None),
        *(("eraser", steps, interval) for steps in (4, 3, 2, 1) for interval in (5, 10, 20)),
    ]


def test_ten_honest_clients_stand_beside_nine_with_the_same_draws() -> None:
    honest, harmful, retrained = chapter6.configurations(MQ, ReproductionSize())
    assert honest.recipe.attack is None and honest.recipe.keep_every is None
    assert harmful.recipe == retrained.recipe and harmful.forgetting is None
    assert {honest.recipe.seed, harmful.recipe.seed} == {0}


def test_the_work_of_unlearning_is_that_of_its_rounds_and_steps() -> None:
    cell = {"local_steps": 4, "interval": 20}
    assert count_work(chapter6.unlearnt(MQ, ReproductionSize(), cell)) == (500, 40.0)
    assert count_work(chapter6.retrained(MQ, ReproductionSize())) == (10_000, 50.0)


def test_a_part_brings_the_run_that_it_forgets_in(tmp_path: Path) -> None:
    part = prepare("thesis.table6.2", ReproduceOptions(tmp_path, only={"data": "mq2007-like", "local_steps": 3}))
    assert len(part.trials) == 3 and len(part.jobs) == len(part.labels) == 4
    run = part.jobs[-1]
    assert run.forgets is None and {job.forgets and job.forgets.run for job in part.jobs[:3]} == {run.directory}
    whole = prepare("thesis.table6.2", ReproduceOptions(tmp_path, only={"data": "mq2007-like"}))
    assert len(whole.jobs) == len(whole.trials) == 14


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interactions": 3}, "local_steps is 4, must be from 1 to 3"),
        ({"keep_every": 4}, "every is 5, must be a multiple of keep_every, which is 4"),
    ],
)
def test_a_change_that_leaves_nothing_to_unlearn_with_is_refused(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        prepare("thesis.table6.2", ReproduceOptions(tmp_path, changes=changes))


def configurations(place: Path, *, honest: float = 0.7, harmful: float = 0.5, retrained: float = 0.7) -> Trials:
    levels = ((chapter6.HONEST, honest), (chapter6.HARMFUL, harmful), (chapter6.RETRAINED, retrained))
    return Trials(tuple(finish(place, level, cell, turn=i) for i, (cell, level) in enumerate(levels)))


def test_a_harmful_client_is_noticed_and_an_honest_one_is_not(tmp_path: Path) -> None:
    usual = configurations(tmp_path / "usual")
    assert chapter6.harmful_noticed(usual).holds and chapter6.honest_not_noticed(usual).holds
    assert not chapter6.harmful_noticed(configurations(tmp_path / "a", retrained=0.5)).holds
    assert not chapter6.harmful_noticed(configurations(tmp_path / "b", honest=0.5)).holds
    assert not chapter6.honest_not_noticed(configurations(tmp_path / "c", honest=0.706)).holds


def unlearnt(place: Path, level: float, *, early: float = 0.3) -> Trials:
    last = finish(place, level, chapter6.UNLEARNT, turn=3, early=early)
    return Trials((*configurations(place).finished, last))


def test_unlearning_must_improve_and_end_less_than_half_as_far_as_the_harmed_ranker(tmp_path: Path) -> None:
    good = unlearnt(tmp_path / "good", 0.69)
    assert chapter6.unlearning_improves(good).holds
    found = chapter6.unlearning_approaches(good)
    assert found.holds and "What is left: d perfect U(9H-1M) over 9H-0M -0.0100" in found.why
    little = unlearnt(tmp_path / "little", 0.55)  # of 9H-1M at .5 and 9H-0M at .7: a quarter of the way
    assert chapter6.unlearning_improves(little).holds and not chapter6.unlearning_approaches(little).holds
    assert not chapter6.unlearning_improves(unlearnt(tmp_path / "bad", 0.49)).holds
    assert not chapter6.unlearning_approaches(unlearnt(tmp_path / "beyond", 0.95)).holds  # further from it than 9H-1M


def test_how_near_it_was_early_on_is_told_and_decides_nothing(tmp_path: Path) -> None:
    nearer, later = (chapter6.unlearning_approaches(unlearnt(tmp_path / f"{x}", 0.69, early=x)) for x in (0.3, 0.7))
    told = r"Not part of the verdict: .* d perfect after a tenth over the last ([+-])"
    assert [re.search(told, verdict.why).group(1) for verdict in (nearer, later)] == ["+", "-"]  # type: ignore[union-attr]
    assert nearer.holds and later.holds and nearer.p == later.p


def table(place: Path, level: Callable[[int, int], float]) -> Trials:
    cells = [(steps, interval) for steps in chapter6.LOCAL_STEPS for interval in chapter6.INTERVALS]
    named = [{**chapter6.UNLEARNT, "local_steps": steps, "interval": interval} for steps, interval in cells]
    each = enumerate(zip(named, cells, strict=True))
    return Trials(tuple(finish(place, level(*cell), name, turn=i % 5) for i, (name, cell) in each))


def test_more_steps_and_smaller_intervals_are_better_in_most_cells(tmp_path: Path) -> None:
    usual = table(tmp_path / "usual", lambda steps, interval: 0.6 + 0.01 * steps - 0.001 * interval)
    steps, intervals = chapter6.more_steps_better(usual), chapter6.smaller_interval_better(usual)
    assert steps.holds and "Higher in 27 of 27" in steps.why  # 3 steps x 3 intervals x 3 users
    assert intervals.holds and "Higher in 24 of 24" in intervals.why
    other = table(tmp_path / "other", lambda steps, interval: 0.6 - 0.01 * steps + 0.001 * interval)
    assert not chapter6.more_steps_better(other).holds and not chapter6.smaller_interval_better(other).holds
    bend = table(tmp_path / "bend", lambda steps, _: (0.6, 0.63, 0.62, 0.61)[steps - 1])  # up, down, down
    assert not chapter6.more_steps_better(bend).holds


def test_a_part_of_the_table_judges_nothing_about_the_rest(tmp_path: Path) -> None:
    with pytest.raises(NotJudged, match=r"Not run: data=d, .*interval=5"):
        chapter6.smaller_interval_better(Trials((finish(tmp_path, 0.6, {**chapter6.UNLEARNT, "interval": 10}),)))


@pytest.mark.parametrize("name", ["thesis.figure6.2", "thesis.figure6.3", "thesis.table6.2"])
def test_each_is_run_and_judged(name: str, tmp_path: Path) -> None:
    """Forty rounds of tiny data: the machinery, not the claims."""
    small = ReproduceOptions(tmp_path, scale=ReproductionSize(quick=True), changes=SMALL, only={"data": "mq2007-like"})
    found = reproduce(prepare(name, small), small, PoolOptions(1, in_process=True))
    assert all(isinstance(finding["holds"], bool) for finding in found["findings"])
    assert all(row["ours"] > 0 for row in found["rows"] if row["data"] == "mq2007-like" and not row["why"])
    assert (tmp_path / "index.html").is_file()
