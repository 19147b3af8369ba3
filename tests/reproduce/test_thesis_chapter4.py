"""Clients that differ, as in Chapter 4 of the thesis: who takes part, exact sums, and causes that verdicts name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hushrank.reports.reproduction import reproduction_text
from hushrank.reproduce.papers import thesis_chapter4 as chapter4
from hushrank.reproduce.papers import thesis_intents
from hushrank.reproduce.papers.thesis_skew import PERSONAL
from hushrank.reproduce.reproduce import ReproduceOptions, index_lines, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize
from hushrank.reproduce.verdicts import OFFLINE, ONLINE, Finished, NotJudged, Pair, Trials, Verdict, none_better
from hushrank.runs.pool import PoolOptions

FIVE = "mslr-like:n_queries=20,mean_length=20,longest=40,empty_share=0,grade_shares=.3/.3/.2/.1/.1"
INTENTS = "intent-change-like:n_queries=20,shortest=20,mean_length=30,longest=40,n_features=8,grade_shares=.8/.2"
LINEAR = {"ranker": "linear"}
NOISE = (0.0, 0.001, -0.001, 0.0005, -0.0005)


def options(out: Path, data: str, **more: Any) -> ReproduceOptions:
    changes = {"data": data, "rounds": 6, "folds": (1,)} | more.pop("changes", {})
    return ReproduceOptions(out, scale=ReproductionSize(quick=True), changes=changes, **more)


def finish(metrics: Mapping[str, float], recipe: Mapping[str, object] | None = None, **cell: Any) -> Finished:
    """A trial of perfect users whose five trainings lie around each metric."""
    found = {
        name: {"values": [{"fold": 1, "repeat": r, "value": level + noise} for r, noise in enumerate(NOISE)]}
        for name, level in metrics.items()
    }
    return Finished(
        {"data": "d", **cell}, Path(), {"recipe": {"clicks": "perfect", **(recipe or {})}, "metrics": found}
    )


def control(union: float, own: float, **cell: Any) -> Finished:
    return finish({OFFLINE: union, PERSONAL: own}, ranker="linear", distribution="iid", **cell)


def skewed(union: float, own: float, **cell: Any) -> Finished:
    """Its trainings lie the other way around, so that differences have a spread."""
    made = finish({OFFLINE: union, PERSONAL: own}, ranker="linear", distribution="non-iid", **cell)
    for metric in made.result["metrics"].values():
        for row, noise in zip(metric["values"], NOISE, strict=True):
            row["value"] -= 2 * noise
    return made


@pytest.mark.parametrize(
    ("name", "source", "one", "two"), [("mq2008", "mq2008-like", 3, 3), ("mslr-web10k", FIVE, 5, 10)]
)
def test_there_are_as_many_clients_as_grades_or_pairs_of_grades(name: str, source: str, one: int, two: int) -> None:
    data, scale = DataChoice(name, source, is_stand_in=True), ReproductionSize()
    assert {trial.recipe.n_clients for trial in chapter4.one_label(data, scale)} == {one}
    assert {trial.recipe.n_clients for trial in chapter4.two_labels(data, scale)} == {two}
    mixed = [t.recipe for t in chapter4.quantities(data, scale) if t.recipe.partition == "labels-1"]
    assert [(recipe.n_clients, recipe.interactions) for recipe in mixed] == [(one, one)]  # 1 + 3 + 5 searches, or to 9


@pytest.mark.parametrize("name", [r.name for r in chapter4.REPRODUCTIONS])
def test_each_type_has_its_control_on_the_same_folds_rounds_and_searches(name: str, tmp_path: Path) -> None:
    recipes = [trial.recipe for trial in prepare(name, ReproduceOptions(tmp_path)).trials]
    assert {recipe.rounds for recipe in recipes} == {10_000} and {recipe.repeats for recipe in recipes} == {5}
    assert any(recipe.control for recipe in recipes) and not all(recipe.control for recipe in recipes)
    networks = [recipe for recipe in recipes if recipe.ranker == "mlp"]
    assert bool(networks) == (name not in ("thesis.figure4.8", "thesis.figure4.9"))


def test_one_label_gives_the_printed_sum_exactly(tmp_path: Path) -> None:
    small = options(tmp_path, FIVE, changes={"repeats": 1}, only={"interactions": 2})
    found = reproduce(prepare("thesis.table4.3", small), small, PoolOptions(1, in_process=True))
    assert found["findings"][0]["holds"], found["findings"][0]["why"]
    rows = [row for row in found["rows"] if row["ours"] is not None and row["distribution"] == "non-iid"]
    expected = 0.8 * (1 - 0.9995**6) / 0.0005  # of six rounds; label 0 scores 0, the four others 1
    assert [row["ours"] for row in rows] == pytest.approx([expected] * 3)
    assert {row["published"] for row in rows} == {1589.23}


@pytest.mark.parametrize(("n_clients", "printed"), [(5, 1589.23), (3, 1324.36)])
def test_the_sum_after_ten_thousand_rounds_is_the_printed_one(n_clients: int, printed: float) -> None:
    def judge(level: float) -> Verdict:
        recipe = {"rounds": 10_000, "n_clients": n_clients}
        trial = finish({ONLINE: level}, recipe, distribution="non-iid")
        for row in trial.result["metrics"][ONLINE]["values"]:
            row["value"] = level
        return chapter4.one_label_is_constant_online(Trials((trial,)))

    assert judge(printed).holds and f"{printed}" in judge(printed).why
    assert not judge(printed + 0.02).holds


def test_a_gap_between_two_sets_of_labels_alone_is_named_as_that() -> None:
    verdict = thesis_intents.intents_hurt(Trials((control(0.66, 0.32), skewed(0.66, 0.34))))
    assert not verdict.holds
    assert verdict.why.startswith("The published gap is +0.32 on average; by the clients' own labels it is -0.02.")
    assert "So its sign comes from the two sets of labels" in verdict.why
    real = thesis_intents.intents_hurt(Trials((control(0.66, 0.4), skewed(0.6, 0.34))))
    assert real.holds and "sign comes from" not in real.why


def test_a_remedy_that_closes_a_gap_refutes_and_without_a_gap_only_gains_count() -> None:
    def judge(own_control: float, own_fedprox: float) -> Verdict:
        plain, prox = (skewed(0.6, 0.34, remedy="none"), skewed(0.6, own_fedprox, remedy="fedprox", mu=1.0))
        return thesis_intents.fedprox_closes_no_gap(Trials((control(0.66, own_control, remedy="none"), plain, prox)))

    assert judge(0.4, 0.34).holds
    assert not judge(0.4, 0.4).holds
    assert judge(0.32, 0.34).holds and "none to close" in judge(0.32, 0.34).why
    assert not judge(0.32, 0.38).holds


def test_not_significantly_better_is_refuted_by_one_case() -> None:
    low, high = ({(1, r): level + noise for r, noise in enumerate(NOISE)} for level in (0.5, 0.6))
    even = {(1, r): 0.5 - noise for r, noise in enumerate(NOISE)}
    assert none_better([Pair("same", even, low)]).holds
    assert none_better([Pair("worse", low, high)]).holds
    mixed = none_better([Pair("same", even, low), Pair("better", high, even)])
    assert not mixed.holds and "better +0.1000 (p " in mixed.why


def test_a_part_is_run_alone_in_a_place_of_its_own(tmp_path: Path) -> None:
    whole, linear = (prepare("thesis.figure4.3", ReproduceOptions(tmp_path, only=only)) for only in ({}, LINEAR))
    assert [t.recipe.ranker for t in whole.trials] == ["linear", "linear", "mlp", "mlp"]
    assert linear.trials == whole.trials[:2] and linear.directory != whole.directory
    assert [job.directory for job in linear.jobs] == [job.directory for job in whole.jobs[:2]]  # runs are shared
    with pytest.raises(
        ValueError, match=r"no run of thesis.figure4.3 has ranker=tree\. Its runs differ in ranker=linear, mlp;"
    ):
        prepare("thesis.figure4.3", ReproduceOptions(tmp_path, only={"ranker": "tree"}))


def test_a_part_may_be_one_of_two_data_sets(tmp_path: Path) -> None:
    part = options(tmp_path, INTENTS, only={"data": "intent-change-like"})
    found = reproduce(prepare("thesis.figure4.9", part), part, PoolOptions(1, in_process=True))
    assert found["data"]["name"] == "intent-change-like"
    assert {row["data"] for row in found["rows"]} == {"intent-change-like"}
    assert isinstance(found["findings"][0]["holds"], bool)


def test_a_quick_part_says_what_it_cannot_show_and_what_it_was(tmp_path: Path) -> None:
    part = options(tmp_path, INTENTS, only=LINEAR)
    found = reproduce(prepare("thesis.figure4.3", part), part, PoolOptions(1, in_process=True))
    assert {row["metric"] for row in found["rows"]} == {OFFLINE, ONLINE, PERSONAL}
    text = reproduction_text(found)
    assert "nothing about networks" in text and "Only the runs with ranker=linear" in text
    line = next(line for line in index_lines(tmp_path) if line["name"] == "thesis.figure4.3")
    assert "only ranker=linear" in line["why"]


def test_what_a_round_adds_is_told_beside_what_was_there_before(tmp_path: Path) -> None:
    part = options(tmp_path, FIVE, only={"interactions": 5}, changes={"clicks": "perfect"})
    found = prepare("thesis.figure4.5", part)
    reproduce(found, part, PoolOptions(1, in_process=True))
    skewed_job = found.jobs[1]
    trial = Finished(
        found.trials[1].cell, skewed_job.directory, json.loads((skewed_job.directory / "result.json").read_text())
    )
    said = chapter4.tell_learnt(Trials((trial,)), {"distribution": "non-iid"})
    gained = fmean(trial.values("perfect").values()) - fmean(trial.values_after("perfect", 0).values())
    assert said.startswith(f"Over the ranker before the first round ({gained:+.4f} on average): Paired t-tests")


def test_what_was_not_run_is_not_judged() -> None:
    outcome = Trials((control(0.66, 0.32), skewed(0.66, 0.34)))
    with pytest.raises(NotJudged, match=r"Not run: ranker=mlp\."):
        chapter4.steps_indifferent(outcome)
    with pytest.raises(NotJudged, match=r"Not run: remedy=data-sharing\."):
        chapter4.data_sharing_helps(outcome)


def test_preferences_need_data_with_intents() -> None:
    with pytest.raises(ValueError, match="has the same grades for everybody, and Type 1 needs grades by intent"):
        thesis_intents.intents(DataChoice("mq2008", "mq2008-like", is_stand_in=True), ReproductionSize())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "only"),
    [
        ("figure4.4", INTENTS, {"ranker": "mlp"}),
        ("figure4.6", FIVE, LINEAR),
        ("figure4.7", FIVE, {"ranker": "mlp"}),
        ("figure4.8", FIVE, {}),
        ("figure4.9", FIVE, {"data": "mslr-like"}),
        ("figure4.9", INTENTS, {"data": "intent-change-like"}),
    ],
)
def test_every_type_is_run_and_judged_with_networks(
    name: str, data: str, only: dict[str, object], tmp_path: Path
) -> None:
    """Six rounds: the machinery, not the claims."""
    changes = {"data": data, "rounds": 6, "folds": (1,)}
    small = ReproduceOptions(tmp_path, scale=ReproductionSize(repeats=2), changes=changes, only=only)
    found = reproduce(prepare(f"thesis.{name}", small), small, PoolOptions(1, in_process=True))
    open_claims = {f["why"] for f in found["findings"] if f["holds"] is None}
    assert open_claims <= {"Not run: remedy=data-sharing."}


@pytest.mark.slow
def test_five_grades_give_1589_23_at_full_length(tmp_path: Path) -> None:
    full = ReproduceOptions(
        tmp_path, scale=ReproductionSize(repeats=1), changes={"folds": (1,)}, only={**LINEAR, "interactions": 2}
    )
    prepared = prepare("thesis.table4.3", full)
    found = reproduce(prepared, full, PoolOptions(1, in_process=True))
    rows = [row for row in found["rows"] if row["ours"] is not None and row["distribution"] == "non-iid"]
    assert {round(row["ours"], 2) for row in rows} == {1589.23} and found["findings"][0]["holds"]
