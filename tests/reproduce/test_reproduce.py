"""Published results, rerun: the list agrees with the data files, rows stand beside, claims are tested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hushrank.recipes.files import find_recipe
from hushrank.reproduce.listing import list_results
from hushrank.reproduce.literature import published_results
from hushrank.reproduce.named import PAPERS, REPRODUCTIONS, names_to_run
from hushrank.reproduce.papers import foltr_es
from hushrank.reproduce.reproduce import (
    Prepared,
    ReproduceOptions,
    index_lines,
    make_rows,
    prepare,
    reproduce,
)
from hushrank.reproduce.reproduction import DataChoice, Reproduction, ReproductionSize, choose_data
from hushrank.reproduce.rows import beside, join_variants
from hushrank.reproduce.verdicts import Pair, Trials, all_better, all_equal
from hushrank.runs.pool import PoolOptions

SMALL = {"data": "tiny", "n_clients": 4}


def options(out: Path, **changes: Any) -> ReproduceOptions:
    return ReproduceOptions(out, scale=ReproductionSize(quick=True), changes=SMALL | changes)


def test_the_list_is_that_of_the_data_files() -> None:
    listed = list_results(cores=2)
    assert [line["name"] for line in listed] == list(published_results())
    assert {line["name"] for line in listed if line["can_run"]} == set(REPRODUCTIONS)
    assert all(line["can_run"] or line["why_not"].startswith("needs ") for line in listed)
    assert {result.paper for result in published_results().values()} == set(PAPERS)


def test_an_estimate_counts_what_a_run_costs_beside_its_interactions() -> None:
    """Quick, Figure 4.8 is four runs of a few thousand searches, whose start takes longer than they do."""
    (line,) = (line for line in list_results(cores=1) if line["name"] == "thesis.figure4.8")
    assert line["quick_seconds"] > 4 * 3


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_claim_that_is_tested_is_one_of_the_paper(name: str) -> None:
    published, ours = published_results()[name], REPRODUCTIONS[name]
    claims = {claim.id for claim in published.findings}
    assert set(ours.findings) <= claims
    assert set(ours.findings) == claims or ours.compute


@pytest.mark.parametrize("name", REPRODUCTIONS)
@pytest.mark.parametrize("quick", [True, False])
def test_every_trial_is_a_recipe_of_its_own(name: str, quick: bool, tmp_path: Path) -> None:
    prepared = prepare(name, ReproduceOptions(tmp_path, scale=ReproductionSize(quick=quick)))
    directories = [job.directory.name for job in prepared.jobs]
    assert len(set(directories)) == len(directories)
    assert len(directories) >= 2 or prepared.reproduction.compute
    once = [trial.recipe.is_offline or trial.recipe.is_personal for trial in prepared.trials]
    repeats = [trial.recipe.repeats for trial, is_once in zip(prepared.trials, once, strict=True) if not is_once]
    assert set(repeats) <= {2 if quick else 5}


def test_a_figure_rerun_gives_rows_findings_pages_and_a_line_of_the_index(tmp_path: Path) -> None:
    prepared = prepare("thesis.figure3.10", options(tmp_path))  # an alias
    found = reproduce(prepared, options(tmp_path), PoolOptions(2, run={"workers": 1}))
    assert found["name"] == "fpdgd.figure6"
    assert [(row["interactions"], row["clicks"]) for row in found["rows"][:2]] == [(2, "perfect"), (2, "navigational")]
    assert all(row["published"] is None and row["n"] == 4 for row in found["rows"])
    trainings = [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all([(v["fold"], v["repeat"]) for v in row["values"]] == trainings for row in found["rows"])
    assert {finding["id"]: type(finding["holds"]) for finding in found["findings"]} == dict.fromkeys(
        ("batch-matters-little-at-equal-budget", "small-batch-better-early", "small-batch-slightly-better-online"), bool
    )
    line = next(line for line in index_lines(tmp_path) if line["name"] == "fpdgd.figure6")
    assert line["state"] == "run" and line["held"] + line["not_held"] == 3 and line["is_stand_in"]
    assert (tmp_path / line["page"]).is_file()
    assert "fpdgd.figure6" in (tmp_path / "index.html").read_text()
    again = reproduce(prepared, options(tmp_path), PoolOptions(1))  # nothing is run again
    same = [key for key in found if key not in ("seconds", "when")]
    assert {key: again[key] for key in same} == {key: found[key] for key in same}


def test_one_training_gives_numbers_and_says_what_it_cannot_judge(tmp_path: Path) -> None:
    one = ReproduceOptions(
        tmp_path, scale=ReproductionSize(quick=True, repeats=1), changes={**SMALL, "folds": (1,), "rounds": 4}
    )
    found = reproduce(prepare("foltr-es.figure5", one), one, PoolOptions(1))
    assert all(row["ours"] > 0 and row["std"] is None and row["n"] == 1 for row in found["rows"])
    by_id = {finding["id"]: finding for finding in found["findings"]}
    tested = by_id["as-good-as-ranking-svm"]
    assert tested["holds"] is None and tested["why"].startswith("Could not be judged: one result has no spread")
    assert isinstance(by_id["best-baseline-reached-informational"]["holds"], bool)  # of means, not of tests


def test_a_claim_about_users_who_were_not_asked_is_not_judged(tmp_path: Path) -> None:
    perfect = options(tmp_path, clicks="perfect", rounds=4)
    found = reproduce(prepare("foltr-es.figure5", perfect), perfect, PoolOptions(1))
    reasons = {finding["id"]: finding["why"] for finding in found["findings"] if finding["holds"] is None}
    assert reasons == dict.fromkeys(
        ("two-layer-above-linear-informational", "best-baseline-reached-informational"),
        "Not run with informational users.",
    )


def test_a_run_that_fails_leaves_the_others_and_says_so(tmp_path: Path) -> None:
    small = options(tmp_path, rounds=4)
    prepared = prepare("fpdgd.figure6", small)
    blocked = prepared.jobs[0].directory
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a directory should be")
    with pytest.raises(ValueError, match=r"failed: .* \(1 of 3 runs failed\)\. What has finished is kept; repeat"):
        reproduce(prepared, small, PoolOptions(1, in_process=True))
    assert [job.is_finished for job in prepared.jobs] == [False, True, True]


def test_a_table_that_needs_no_training_is_computed(tmp_path: Path) -> None:
    plain = ReproduceOptions(tmp_path)
    found = reproduce(prepare("foltr-es.table2", plain), plain, PoolOptions(1))
    assert [round(row["ours"], 2) for row in found["rows"][:6]] == [0.51, 1.61, 2.71, 3.81, 4.55, 6.20]
    assert all(abs(row["difference"]) < 0.005 for row in found["rows"]) and len(found["rows"]) == 18
    assert all(finding["holds"] for finding in found["findings"])


def test_what_is_changed_has_a_place_of_its_own(tmp_path: Path) -> None:
    places = {
        prepare(
            "fpdgd.figure4", ReproduceOptions(tmp_path, scale=ReproductionSize(quick=quick, seed=seed), changes=changes)
        ).directory
        for quick in (True, False)
        for seed in (0, 1)
        for changes in ({}, {"server_rate": 10})
    }
    assert len(places) == 8


def test_one_thing_can_be_changed_everywhere(tmp_path: Path) -> None:
    prepared = prepare("fpdgd.figure4", ReproduceOptions(tmp_path, changes={"server_rate": 10}))
    assert {trial.recipe.server_rate for trial in prepared.trials} == {10.0}
    run = prepare("fpdgd.figure6", options(tmp_path)).trials[0].recipe
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps({"format": 1, "recipe": "fpdgd", "data": "tiny", "rounds": run.rounds}))
    assert find_recipe(str(file)).rounds == run.rounds


def test_what_a_figure_varies_itself_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"n_clients is what the runs of fpdgd.figure4 differ in\. Leave it out of --set"
    ):
        prepare("fpdgd.figure4", options(tmp_path))
    prepare("fpdgd.figure5", options(tmp_path))  # its batches differ, its clients do not


def published_row() -> tuple[Prepared, Any]:
    """FPDGD's Table 2, whose first row is MQ2007, perfect, epsilon 1.2: 296.03."""
    result = published_results()["fpdgd.table2"]
    reproduction = Reproduction("fpdgd.table2")
    return Prepared(result, reproduction, (DataChoice("mq2007", "mq2007-like", True),), (), Path()), result


class Fake:
    """A finished trial with one value per user."""

    users = ("perfect",)
    is_diverged = False

    def __init__(self, **cell: Any) -> None:
        self.cell = cell

    def metric(self, user: str, name: str) -> dict[str, Any]:
        del user, name
        return {"mean": 300.0, "std": None, "values": [{"fold": 1, "repeat": 0, "value": 300.0}]}


def test_the_published_number_of_the_same_cell_stands_beside_ours() -> None:
    prepared, result = published_row()
    ours = Fake(data="mq2007-like", method="fpdgd", epsilon=1.2, sensitivity=3)
    rows = make_rows(prepared, Trials((ours,)))  # type: ignore[arg-type] # what make_rows reads of a trial
    assert (rows[0]["ours"], rows[0]["published"]) == (300.0, 296.03)
    assert rows[0]["difference"] == pytest.approx(3.97)
    assert rows[0]["data"] == "mq2007-like"
    assert len(rows) == len(result.rows)
    assert {(row["ours"], row["why"]) for row in rows[1:]} == {
        (None, "not a trial of ours"),
        (None, "not run on mslr-web10k"),
    }


def test_published_numbers_that_we_have_not_run_keep_their_split() -> None:
    table = published_results()["foltr-es.table3"]
    reproduction = REPRODUCTIONS["foltr-es.table3"]
    rows = make_rows(Prepared(table, reproduction, (), (), Path()), Trials(()))
    assert {(row["split"], row["metric"]) for row in rows} == {("train", foltr_es.TRAIN), ("test", foltr_es.TEST)}


@pytest.mark.parametrize(("name", "n_published"), [("foltr-es.table3", 2), ("fpdgd.table2", 4)])
def test_tables_with_printed_numbers_are_also_run_as_published(name: str, n_published: int, tmp_path: Path) -> None:
    trials = prepare(name, ReproduceOptions(out=tmp_path)).trials
    told = {trial.cell["data"]: 0 for trial in trials}
    for trial in trials:
        assert trial.recipe.variant == trial.cell.get("variant", "paper")
        told[trial.cell["data"]] += trial.recipe.variant == "published-code"
    assert set(told.values()) == {n_published}


def test_a_variant_is_not_set_where_both_are_run(tmp_path: Path) -> None:
    changed = ReproduceOptions(tmp_path, changes={"variant": "published-code"})
    with pytest.raises(ValueError, match=r"variant is what the runs of fpdgd.table2 differ in"):
        prepare("fpdgd.table2", changed)
    assert {trial.recipe.variant for trial in prepare("fpdgd.figure3", changed).trials} == {"published-code"}


def test_a_variant_stands_beside_ours_and_not_below() -> None:
    named = {"data": "mq2008", "clicks": "perfect", "metric": "m", "why": ""}
    ours = {**named, **beside({"mean": 0.4, "std": 0.1, "values": [{"value": 1}]}, 0.3)}
    other = {**named, "variant": "published-code", **beside({"mean": 0.31, "std": 0.2, "values": [{"value": 1}]}, 0.3)}
    alone = {**ours, "clicks": "informational"}
    assert join_variants([ours, alone, other]) == [{**ours, "as_published": 0.31, "as_published_std": 0.2}, alone]
    own = {**ours, "variant": "something of ours"}
    assert join_variants([ours, other, own])[1:] == [own]  # in a row of its own


def test_a_claim_is_judged_by_our_trial_and_not_by_the_one_as_published() -> None:
    ours = Fake(data="mq2008", method="foltr-es", ranker="linear")
    published = Fake(data="mq2008", method="foltr-es", ranker="linear", variant="published-code")
    outcome = Trials((published, ours))  # type: ignore[arg-type] # what find reads of a trial
    assert outcome.find(data="mq2008", ranker="linear").cell == ours.cell
    assert outcome.find(data="mq2008", variant="published-code").cell == published.cell


def test_no_number_without_a_run() -> None:
    nothing: dict[str, Any] = {"ours": None, "std": None, "n": 0, "published": 0.5, "difference": None, "values": []}
    assert beside(None, 0.5) == nothing


def test_a_row_keeps_what_each_training_found_to_five_decimals() -> None:
    trainings = [{"fold": fold, "repeat": 0, "value": value} for fold, value in ((1, 0.1234567), (2, 0.3))]
    row = beside({"mean": 0.2, "std": 0.1, "values": trainings}, None)
    assert row["n"] == 2 and row["values"] == [
        {"fold": 1, "repeat": 0, "value": 0.12346},
        {"fold": 2, "repeat": 0, "value": 0.3},
    ]


def values(*found: float) -> dict[tuple[int, int], float]:
    return {(1, repeat): value for repeat, value in enumerate(found)}


def test_better_means_every_pair_and_corrected() -> None:
    clear = Pair("clear", values(0.6, 0.7, 0.65), values(0.5, 0.61, 0.54))
    unclear = Pair("unclear", values(0.6, 0.5, 0.7), values(0.5, 0.6, 0.6))
    assert all_better([clear]).holds
    assert not all_better([clear, unclear]).holds
    assert not all_better([Pair("reversed", clear.theirs, clear.ours)]).holds
    assert all_better([clear, clear]).p == pytest.approx(2 * all_better([clear]).p)  # type: ignore[operator] # not None


def test_equal_means_within_the_margin_and_not_merely_not_different() -> None:
    close = Pair("close", values(0.600, 0.702, 0.651), values(0.601, 0.701, 0.652))
    noisy = Pair("noisy", values(0.6, 0.5, 0.7), values(0.5, 0.6, 0.6))
    assert all_equal([close], margin=0.01).holds
    assert not all_equal([noisy], margin=0.01).holds  # no significant difference either, but nothing shown


def test_data_is_a_stand_in_a_set_or_a_folder_of_sets(tmp_path: Path) -> None:
    assert choose_data(("mq2007",), None) == (DataChoice("mq2007", "mq2007-like", True),)
    for split in ("train", "vali", "test"):
        path = tmp_path / "MQ2008" / "Fold1" / f"{split}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1 qid:1 1:0.5\n")
    one = DataChoice("mq2008", str(tmp_path / "MQ2008"), is_stand_in=False, n_folds=1)
    assert choose_data(("mslr-web10k",), tmp_path / "MQ2008") == (one,)
    assert choose_data(("mq2008",), tmp_path) == (one,)
    with pytest.raises(ValueError, match=r"has no mq2007\. Visit .*MQ2007\.rar"):
        choose_data(("mq2007",), tmp_path)
    with pytest.raises(ValueError, match=r"has no mq2007\..* To run on what is there alone: --data .*MQ2008$"):
        choose_data(("mq2007", "mq2008"), tmp_path)
    with pytest.raises(ValueError, match="nowhere is not a directory"):
        choose_data(("mq2007",), tmp_path / "nowhere")


def write_set(place: Path) -> Path:
    for split in ("train", "vali", "test"):
        path = place / "Fold1" / f"{split}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1 qid:1 1:0.5\n")
    return place


def test_a_data_set_keeps_its_name_behind_a_link_and_under_one(tmp_path: Path) -> None:
    real, other = write_set(tmp_path / "x" / "MQ2008"), write_set(tmp_path / "y" / "other")
    (tmp_path / "d").symlink_to(real)
    (tmp_path / "e").symlink_to(tmp_path / "d")
    (tmp_path / "MQ2007").symlink_to(other)
    (tmp_path / "mine").symlink_to(other)
    names = {link: choose_data(("mq2008",), tmp_path / link)[0].name for link in ("d", "e", "MQ2007", "mine")}
    assert names == {"d": "mq2008", "e": "mq2008", "MQ2007": "mq2007", "mine": "mine"}


def test_names_are_near_known_or_told_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_to_run([]) == list(REPRODUCTIONS)
    assert names_to_run(["fpdgd.figure4", "thesis.figure3.8"]) == ["fpdgd.figure4"]
    with pytest.raises(ValueError, match=r"no published result is called 'fpdgd.figur4'; did you mean 'fpdgd.figure4'"):
        names_to_run(["fpdgd.figur4"])
    monkeypatch.delitem(REPRODUCTIONS, "fedps.table2")
    with pytest.raises(ValueError, match=r"fedps.table2 cannot be rerun yet: it needs proxies"):
        names_to_run(["fedps.table2"])
    with pytest.raises(ValueError, match=r"is a table or figure: rerun it with hushrank reproduce fpdgd.figure4"):
        find_recipe("fpdgd.figure4")
