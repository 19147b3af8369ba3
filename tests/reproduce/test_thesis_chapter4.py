"""Clients that differ, as in Chapter 4 of the thesis: who takes part, exact sums, and causes that verdicts name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hushrank.metrics.significance import paired_t_test
from hushrank.reports.reproduction import reproduction_text
from hushrank.reproduce.papers import thesis_chapter4 as chapter4
from hushrank.reproduce.papers import thesis_intents
from hushrank.reproduce.papers.thesis_skew import PERSONAL, RANKERS, USERS
from hushrank.reproduce.reproduce import ReproduceOptions, index_lines, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize
from hushrank.reproduce.verdicts import (
    OFFLINE,
    ONLINE,
    Finished,
    NotJudged,
    Pair,
    Trials,
    Verdict,
    all_better,
    both,
    none_better,
)
from hushrank.runs.pool import PoolOptions

FIVE = "mslr-like:n_queries=20,mean_length=20,longest=40,empty_share=0,grade_shares=.3/.3/.2/.1/.1"
FOUR = FIVE.replace(".3/.3/.2/.1/.1", ".3/.3/.2/.2")  # six pairs: 12 clients are three of each label, two of each pair
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


def control(union: float, own: float, ranker: str = "linear", **cell: Any) -> Finished:
    return finish({OFFLINE: union, PERSONAL: own}, ranker=ranker, distribution="iid", **cell)


def skewed(union: float, own: float, ranker: str = "linear", *, spread: float = 1, **cell: Any) -> Finished:
    """Its trainings lie the other way around, so that differences have a spread."""
    made = finish({OFFLINE: union, PERSONAL: own}, ranker=ranker, distribution="non-iid", **cell)
    for metric in made.result["metrics"].values():
        for row, noise in zip(metric["values"], NOISE, strict=True):
            row["value"] -= (1 + spread) * noise
    return made


def with_both(control_own: float, own: float, *, union: float = 0.66, **more: Any) -> Trials:
    """Both rankers of Figure 4.3."""
    pairs = [(control(0.66, control_own, ranker), skewed(union, own, ranker, **more)) for ranker in RANKERS]
    return Trials(tuple(trial for pair in pairs for trial in pair))


@pytest.mark.parametrize(
    ("name", "source", "one", "two"),
    [("mq2008", "mq2008-like", 3, 3), ("mslr-web10k", FIVE, 5, 10), ("four", FOUR, 4, 12)],
)
def test_there_are_as_many_clients_as_grades_or_pairs_of_grades(name: str, source: str, one: int, two: int) -> None:
    data, scale = DataChoice(name, source, is_stand_in=True), ReproductionSize()
    assert {trial.recipe.n_clients for trial in chapter4.one_label(data, scale)} == {one}
    assert {trial.recipe.n_clients for trial in chapter4.two_labels(data, scale)} == {two}
    mixed = [t.recipe for t in chapter4.quantities(data, scale) if t.recipe.partition == "labels-1"]
    assert [(recipe.n_clients, recipe.interactions) for recipe in mixed] == [(one, one)]  # 1 + 3 + 5 searches, or more


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
    assert found["findings"][0]["why"].startswith(
        "Held for linear B = 2; linear B = 5, linear B = 10, mlp B = 2, mlp B ="
    )
    rows = [row for row in found["rows"] if row["ours"] is not None and row["distribution"] == "non-iid"]
    expected = 0.8 * (1 - 0.9995**6) / 0.0005  # of six rounds; label 0 scores 0, the four others 1
    assert [row["ours"] for row in rows] == pytest.approx([expected] * 3)
    assert {row["published"] for row in rows} == {1589.23}


@pytest.mark.parametrize(("n_clients", "printed"), [(5, 1589.23), (3, 1324.36)])
def test_the_sum_after_ten_thousand_rounds_is_the_printed_one(n_clients: int, printed: float) -> None:
    def judge(level: float) -> Verdict:
        recipe = {"rounds": 10_000, "n_clients": n_clients}
        cells = [{"ranker": ranker, "interactions": b} for ranker in RANKERS for b in chapter4.STEPS]
        trials = [finish({ONLINE: level}, recipe, distribution="non-iid", **cell) for cell in cells]
        for row in (row for trial in trials for row in trial.result["metrics"][ONLINE]["values"]):
            row["value"] = level
        return chapter4.one_label_is_constant_online(Trials(tuple(trials)))

    assert judge(printed).holds and f"{printed}" in judge(printed).why
    assert not judge(printed + 0.02).holds


def test_a_gap_between_two_sets_of_labels_alone_is_named_as_that() -> None:
    verdict = thesis_intents.intents_hurt(with_both(0.32, 0.34))
    assert not verdict.holds
    assert verdict.why.startswith("The published gap is +0.32 on average; by the clients' own labels it is -0.02.")
    assert "So its sign comes from the two sets of labels" in verdict.why
    assert "it is nowhere above 0, and significantly below 0 in every case." in verdict.why
    even = thesis_intents.intents_hurt(with_both(0.339, 0.34, spread=5))
    assert "it is nowhere above 0." in even.why
    real = thesis_intents.intents_hurt(with_both(0.4, 0.34, union=0.6))
    assert real.holds and "sign comes from" not in real.why


def test_a_gap_of_the_published_sign_that_is_not_significant_is_not_shown_and_no_cause_is_named() -> None:
    verdict = thesis_intents.intents_hurt(with_both(0.341, 0.34, spread=5))
    assert not verdict.holds and "It is not shown by their own labels." in verdict.why
    assert "sign comes from" not in verdict.why


def test_two_gaps_of_two_measures_are_told_with_their_units_and_without_a_cause(tmp_path: Path) -> None:
    part = options(tmp_path, INTENTS, only=LINEAR, changes={"rounds": 10})
    found = reproduce(prepare("thesis.table4.2", part), part, PoolOptions(1, in_process=True))
    why = found["findings"][0]["why"]
    assert "in discounted sums of the nDCG@10" in why and "in nDCG@10 of the ranker, mean over the training." in why
    assert "sign comes from" not in why


def test_the_quality_during_a_training_is_not_judged_by_its_end(tmp_path: Path) -> None:
    part = options(tmp_path, INTENTS, only=LINEAR, changes={"eval_every": 6})
    (finding,) = reproduce(prepare("thesis.table4.2", part), part, PoolOptions(1, in_process=True))["findings"]
    assert finding["holds"] is None and finding["why"].startswith("personal/nDCG@10 was measured 1 time")


def test_what_held_for_one_ranker_alone_is_open_and_what_failed_for_one_is_refuted() -> None:
    with pytest.raises(NotJudged, match=r"^Held for linear; mlp not run\. The published gap") as held:
        thesis_intents.intents_hurt(Trials((control(0.66, 0.4), skewed(0.6, 0.34))))
    assert held.value.p is not None and held.value.p < 0.05
    assert not thesis_intents.intents_hurt(Trials((control(0.66, 0.32), skewed(0.66, 0.34)))).holds


@pytest.mark.parametrize("judge", [chapter4.two_labels_above_one, chapter4.two_labels_near_iid])
def test_two_labels_held_for_networks_alone_is_open(judge: Callable[[Trials], Verdict]) -> None:
    def with_users(trial: Finished) -> Finished:
        metrics = dict.fromkeys(USERS, trial.result["metrics"])
        return Finished(trial.cell, trial.directory, {"recipe": {"clicks": list(USERS)}, "metrics": metrics})

    def make(ranker: str) -> tuple[Finished, ...]:
        one, two = (
            skewed(union, 0.3, ranker, partition=name) for union, name in ((0.4, "labels-1"), (0.7, "labels-2"))
        )
        for row, noise in zip(two.result["metrics"][OFFLINE]["values"], NOISE, strict=True):
            row["value"] += noise
        return tuple(map(with_users, (control(0.7, 0.3, ranker, partition="labels-1"), one, two)))

    assert judge(Trials(make("linear") + make("mlp"))).holds
    with pytest.raises(NotJudged, match=r"^Held for mlp; linear not run\. "):
        judge(Trials(make("mlp")))


def test_a_remedy_that_closes_a_gap_refutes_and_without_a_gap_only_gains_count() -> None:
    def judge(own_control: float, own_fedprox: float) -> Verdict:
        linear, mlp = (with_remedy(ranker, own_control, own_fedprox) for ranker in RANKERS)
        return thesis_intents.fedprox_closes_no_gap(Trials(linear + mlp))

    assert judge(0.4, 0.34).holds
    assert not judge(0.4, 0.4).holds
    assert judge(0.32, 0.34).holds and "none to close" in judge(0.32, 0.34).why
    assert not judge(0.32, 0.38).holds


def test_a_gap_of_one_ranker_must_stay_though_the_other_has_none() -> None:
    """Less is gained than counts, and yet the gap of the linear ranker is closed."""
    without = with_remedy("mlp", 0.32, 0.34)
    closed = thesis_intents.fedprox_closes_no_gap(Trials(with_remedy("linear", 0.3415, 0.3415, spread=0) + without))
    assert not closed.holds and "is shown in 1 of 2 cases" in closed.why
    assert thesis_intents.fedprox_closes_no_gap(Trials(with_remedy("linear", 0.4, 0.34) + without)).holds


def with_remedy(ranker: str, control_own: float, own: float, *, spread: float = 1) -> tuple[Finished, ...]:
    """The control, plain averaging at .34, and FedProx."""
    return (
        control(0.66, control_own, ranker, remedy="none"),
        skewed(0.6, 0.34, ranker, spread=spread / 2, remedy="none"),
        skewed(0.6, own, ranker, spread=spread, remedy="fedprox", mu=1.0),
    )


def test_not_significantly_better_is_refuted_by_one_case() -> None:
    low, high = ({(1, r): level + noise for r, noise in enumerate(NOISE)} for level in (0.5, 0.6))
    even = {(1, r): 0.5 - noise for r, noise in enumerate(NOISE)}
    assert none_better([Pair("same", even, low)]).holds
    assert none_better([Pair("worse", low, high)]).holds
    mixed = none_better([Pair("same", even, low), Pair("better", high, even)])
    assert not mixed.holds and "better +0.1000 (p " in mixed.why


def test_p_of_a_claim_is_not_that_of_a_part_which_a_small_p_would_refute() -> None:
    low, high = ({(1, r): level + noise for r, noise in enumerate(NOISE)} for level in (0.5, 0.6))
    even = {(1, r): 0.5 - noise for r, noise in enumerate(NOISE)}
    better, not_better = all_better([Pair("better", high, even)]), none_better([Pair("same", even, low)])
    assert better.p is not None and not_better.p is not None and better.p < 0.05 < not_better.p
    for verdict in (both(better, not_better), both(not_better, better)):
        assert verdict.holds and verdict.p == better.p
    assert both(not_better, not_better).p is None


def test_many_comparisons_do_not_make_it_easier_to_be_not_significantly_better() -> None:
    ours, theirs = {(1, r): 0.5 + 3 * noise for r, noise in enumerate(NOISE)}, {(1, r): 0.4966 for r in range(5)}
    p = paired_t_test(list(ours.values()), list(theirs.values())).p
    assert 0.02 < p < 0.05
    assert not none_better([Pair(f"case {n}", ours, theirs) for n in range(15)]).holds


def test_a_little_worse_must_be_shown_to_be_worse() -> None:
    def judge(more: float, spread: float) -> Verdict:
        trials = []
        for b, made in ((2, control(0.5, 0.5)), (10, skewed(more, 0.5, spread=spread))):
            cell = {**made.cell, "distribution": "non-iid", "interactions": b}
            metrics = dict.fromkeys(USERS, made.result["metrics"])
            trials.append(Finished(cell, Path(), {"recipe": {"clicks": list(USERS)}, "metrics": metrics}))
        return chapter4.more_steps_hurt_a_little(Trials(tuple(trials)))

    assert judge(0.498, 0.0).holds
    assert not judge(0.4999, 0.0).holds
    assert not judge(0.48, 0.0).holds


def test_a_part_is_run_alone_in_a_place_of_its_own(tmp_path: Path) -> None:
    whole, linear = (prepare("thesis.figure4.3", ReproduceOptions(tmp_path, only=only)) for only in ({}, LINEAR))
    assert [t.recipe.ranker for t in whole.trials] == ["linear", "linear", "mlp", "mlp"]
    assert linear.trials == whole.trials[:2] and linear.directory != whole.directory
    assert [job.directory for job in linear.jobs] == [job.directory for job in whole.jobs[:2]]  # runs are shared
    with pytest.raises(
        ValueError, match=r"no run of thesis.figure4.3 has ranker=tree\. Its runs differ in ranker=linear, mlp;"
    ):
        prepare("thesis.figure4.3", ReproduceOptions(tmp_path, only={"ranker": "tree"}))


@pytest.mark.parametrize("name", ["thesis.figure4.8", "thesis.figure4.9"])
def test_figures_that_the_thesis_has_for_one_ranker_run_with_the_other_by_a_change(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no run of .* has ranker=mlp\..* with ranker=mlp, write --set ranker=mlp\.$"):
        prepare(name, ReproduceOptions(tmp_path, only={"ranker": "mlp"}))
    with pytest.raises(ValueError, match=r"All of them have ranker=linear: leave it out of --only\.$"):
        prepare(name, ReproduceOptions(tmp_path, only=LINEAR))
    networks = prepare(name, ReproduceOptions(tmp_path, changes={"ranker": "mlp"}))
    assert {trial.recipe.ranker for trial in networks.trials} == {"mlp"}


@pytest.mark.parametrize(("data", "source"), [("intent-change-like", INTENTS), ("mslr-like", FIVE)])
def test_a_part_may_be_one_of_two_data_sets(data: str, source: str, tmp_path: Path) -> None:
    """With intents it has the quality by own labels, which its verdict is about."""
    part = options(tmp_path, source, only={"data": data})
    found = reproduce(prepare("thesis.figure4.9", part), part, PoolOptions(1, in_process=True))
    assert found["data"]["name"] == data and {row["data"] for row in found["rows"]} == {data}
    assert isinstance(found["findings"][0]["holds"], bool)
    rows = {(row["partition"], row["distribution"], row["clicks"], row["metric"]) for row in found["rows"]}
    metrics = (OFFLINE, ONLINE, PERSONAL) if data.startswith("intent") else (OFFLINE, ONLINE)
    assert rows == {(*row[:3], metric) for row in rows for metric in metrics}
    assert all(len(row["values"]) == row["n"] for row in found["rows"])


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
    assert {why for why in open_claims if not why.startswith("Held for")} <= {"Not run: remedy=data-sharing."}


@pytest.mark.slow
def test_five_grades_give_1589_23_at_full_length(tmp_path: Path) -> None:
    full = ReproduceOptions(
        tmp_path, scale=ReproductionSize(repeats=1), changes={"folds": (1,)}, only={**LINEAR, "interactions": 2}
    )
    prepared = prepare("thesis.table4.3", full)
    found = reproduce(prepared, full, PoolOptions(1, in_process=True))
    rows = [row for row in found["rows"] if row["ours"] is not None and row["distribution"] == "non-iid"]
    assert {round(row["ours"], 2) for row in rows} == {1589.23} and found["findings"][0]["why"].startswith("Held for")
