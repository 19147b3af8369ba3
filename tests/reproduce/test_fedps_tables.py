"""FedPS's tables: one population's users stand beside each other, and claims are read at the best round."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from finished_searches import TINY, finish

from hushrank.recipes.recipe import change_recipe
from hushrank.reproduce.listing import estimate_search
from hushrank.reproduce.literature import PublishedResult, PublishedRow
from hushrank.reproduce.papers import fedps, fedps_reading
from hushrank.reproduce.reproduce import Prepared, ReproduceOptions, make_rows, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, Reproduction, ReproductionSize, choose_data
from hushrank.reproduce.rows import join_populations
from hushrank.reproduce.verdicts import Finished, NotJudged, Trials, Verdict
from hushrank.runs.pool import PoolOptions

AOL = DataChoice("aol", "aol-like", is_stand_in=True)
COMMERCIAL = DataChoice("commercial", "commercial-like", is_stand_in=True)


def overall(place: Path, *, federated: float = 0.5, knrm: float = 0.3) -> Trials:
    trials = []
    for seed in (11, 12):
        at = {"population": seed}
        trials.append(finish(place, {"method": "original-order", **at}, users=0.2))
        trials.append(finish(place, {"method": "knrm", **at}, users=knrm))
        for model in fedps.MODELS:
            trials.append(finish(place, {"method": "central", "ranker": model, **at}, users=0.5))
            trials.append(finish(place, {"method": "fedps", "ranker": model, **at}, users=federated))
    return Trials(tuple(trials))


def test_table_3_has_every_model_in_three_held_out_populations() -> None:
    every = [t for data in (AOL, COMMERCIAL) for t in fedps.overall(data, ReproductionSize())]
    trials = [t for t in every if "variant" not in t.cell]
    assert len(trials) == 2 * 3 * 13
    equal = [t for t in every if t.cell.get("variant") == fedps_reading.EQUAL]
    assert len(equal) == 3 * 13 and all("n_candidates=10,n_short=10" in t.recipe.data for t in equal)
    assert {t.recipe.data for t in trials if t.cell["data"] == "aol-like"} == {
        f"aol-like:n_users=300,seed={seed}" for seed in (11, 12, 13)
    }
    late_and_equal = [(t.cell["method"], t.recipe.offload) for t in equal if t.recipe.stragglers]
    assert late_and_equal == [("fedps-flat", None)] * 3 + [("fedps-proxy", "whole")] * 3
    late = [t for t in trials if t.recipe.stragglers]
    assert {t.cell["method"] for t in late} == {"fedps-flat", "fedps-proxy"}
    assert {t.recipe.stragglers for t in late} == {0.1}
    ways = {(t.recipe.topology, t.recipe.offload) for t in late}
    assert ways == {(None, None), ("proxy", "whole")}
    hidden = [t for t in every if t.recipe.hidden_by]
    assert {(t.cell["method"], t.cell["ranker"], t.recipe.topology) for t in hidden} == {
        ("group-user", "peps", "central"),
        ("cover-query", "peps", "central"),
    }
    assert all(t.cell["method"] == t.recipe.hidden_by for t in hidden) and len(hidden) == (2 + 1) * 3 * 2
    assert {t.recipe.cohort for t in trials} == {10} and {t.recipe.repeats for t in trials} == {1}


def test_federated_htps_trains_twice_as_long_with_as_many_looks() -> None:
    trials = [t for data in (AOL, COMMERCIAL) for t in fedps.overall(data, ReproductionSize(repeats=1))]
    federated = [t for t in trials if t.cell["method"] == "fedps"]
    assert {(t.cell["data"], t.cell["ranker"], t.recipe.rounds, t.recipe.eval_every) for t in federated} == {
        ("aol-like", "hrnn", 24, 2),
        ("aol-like", "htps", 48, 4),
        ("aol-like", "peps", 24, 2),
        ("aol-like", "knrm", 24, 2),
        ("commercial-like", "hrnn", 72, 6),
        ("commercial-like", "htps", 144, 12),
        ("commercial-like", "peps", 72, 6),
        ("commercial-like", "knrm", 72, 6),
    }
    assert {t.recipe.rounds for t in trials if t.recipe.topology == "central"} == {8}


def test_repeats_of_generated_users_are_populations_and_of_a_real_log_trainings() -> None:
    wanted = ReproductionSize(repeats=2)
    real = DataChoice("aol", "/logs/aol", is_stand_in=False, n_folds=1)
    assert [t.cell["population"] for t in fedps.local_epochs(AOL, wanted)[:3]] == [11, 12, 11]
    assert {(t.recipe.data, t.recipe.repeats) for t in fedps.local_epochs(real, wanted)} == {("/logs/aol", 2)}
    assert {t.recipe.rounds for t in fedps.cohorts(real, wanted)} == {fedps.PUBLISHED_ROUNDS}


def test_larger_steps_have_more_rounds_and_equally_many_looks() -> None:
    trials = fedps.cohorts(AOL, ReproductionSize(repeats=1))
    found = [(t.recipe.cohort, t.recipe.rounds, t.recipe.eval_every) for t in trials]
    assert found == [(5, 24, 2), (10, 24, 2), (20, 48, 4), (30, 72, 6), (100, 240, 20)]


def test_weeks_are_retrained_and_updated_in_the_two_other_ways() -> None:
    trials = fedps.weeks(AOL, ReproductionSize(repeats=1))
    assert [(t.cell["method"], t.recipe.updating) for t in trials] == [
        ("central", "retrain"),
        *(("fedps-flat", how) for how in ("retrain", "continue", "online")),
        ("fedps-proxy", "retrain"),
    ]
    assert {t.recipe.stages for t in trials} == {8}
    assert {t.recipe.data for t in trials} == {"aol-like:n_users=300,n_candidates=10,n_short=10,seed=11"}


def test_a_measure_is_read_at_the_round_that_validation_chooses(tmp_path: Path) -> None:
    trial = finish(tmp_path, {"n_sampled": 10})
    read = {
        name: fedps_reading.read_at_best(trial, "log", name)
        for name in ("offline/MAP", "rounds", "steps", "offline/MRR")
    }
    assert read["offline/MAP"] == {(1, 0): 0.5} and read["rounds"] == {(1, 0): 1} and read["offline/MRR"] == {}
    assert read["steps"] == {(1, 0): 30}  # 300 clients, ten at a time
    alone = finish(tmp_path, {"n_sampled": 299}, cohort=299)
    assert fedps_reading.steps_per_round(alone) == 1  # the one that is left joins the others


def test_federated_must_be_within_two_percent_of_central(tmp_path: Path) -> None:
    near = fedps.federated_equals_central(overall(tmp_path / "near", federated=0.496))
    assert near.holds and "Two one-sided tests within 0.01: aol-like hrnn fedps over central" in near.why
    assert "(by population -0.0040, -0.0040)" in near.why
    assert not fedps.federated_equals_central(overall(tmp_path / "far", federated=0.485)).holds


def test_knrm_on_clients_must_be_within_two_percent_of_knrm_in_one_place(tmp_path: Path) -> None:
    usual = overall(tmp_path / "usual", knrm=0.3)
    with pytest.raises(NotJudged, match=r"Not run: .*method=fedps, ranker=knrm"):
        fedps.federated_knrm_equals_central(usual)

    def judge(level: float) -> Verdict:
        place = tmp_path / str(level)
        cells = [{**fedps.FEDERATED_KNRM, "population": seed} for seed in (11, 12)]
        return fedps.federated_knrm_equals_central(
            Trials((*usual.finished, *(finish(place, cell, users=level) for cell in cells)))
        )

    near = judge(0.298)
    assert near.holds and "within 0.006: aol-like fedps knrm over knrm (by population -0.0020, -0.0020)" in near.why
    assert not judge(0.29).holds
    assert fedps.federated_equals_central(overall(tmp_path / "three", federated=0.496)).holds  # of the paper's three


def test_personalised_models_must_beat_both_general_orders_in_every_population(tmp_path: Path) -> None:
    found = fedps.personalised_above_general(overall(tmp_path / "above"))
    each, _, together = found.why.partition(fedps.TOGETHER)
    assert found.holds and each.count("over knrm") == each.count("over original-order") == 6
    assert together.count("over knrm") == together.count("over original-order") == 3
    assert [test.n for test in found.tests] == [20] * 12 + [40] * 6
    assert not fedps.personalised_above_general(overall(tmp_path / "equal", knrm=0.5)).holds
    part = Trials(tuple(t for t in overall(tmp_path / "part").finished if t.cell.get("ranker") in (None, "peps")))
    with pytest.raises(NotJudged, match="Held for peps; hrnn, htps not run"):
        fedps.personalised_above_general(part)


def by_cohort(
    place: Path, best: Mapping[int, int], levels: Mapping[int, float], populations: Sequence[int] = (11, 12, 13)
) -> Trials:
    """best: the round of 6 in which each size of a step is best; in the last population one round earlier."""
    trials = []
    for population in populations:
        for k, usual in best.items():
            at = usual - (population == 13)
            looks = [0.3 - 0.01 * abs(n - at) for n in range(7)]
            cell = {"n_sampled": k, "population": population}
            trials.append(finish(place, cell, users=levels[k], validation=looks, test=looks, cohort=k))
    return Trials(tuple(trials))


def test_larger_steps_are_fewer_take_more_rounds_and_end_lower(tmp_path: Path) -> None:
    usual = by_cohort(tmp_path / "usual", {5: 2, 10: 2, 100: 6}, {5: 0.5, 10: 0.5, 100: 0.4})
    fewer = fedps.fewer_steps(usual)
    # 120, 120 and 60 steps against 18, 18 and 15, with spreads of 34.6 and 1.7: t = 83 / sqrt(400 + 1) = 4.14
    assert fewer.p is not None and fewer.p == pytest.approx(0.053, abs=0.002) and not fewer.holds
    assert "n_sampled=5 over n_sampled=100 +83.0000" in fewer.why
    assert "n_sampled=5 100; n_sampled=10 50; n_sampled=100 17" in fewer.why
    assert "2 of 9 trainings were best in their last round." in fewer.why
    more = fedps.more_rounds(usual)
    assert more.holds and more.p is not None and more.p < 0.05  # 5.67 rounds over 1.67, t = 8.5
    assert fedps.smaller_cohort_better(usual).holds
    told = fedps.smaller_cohort_better(usual)
    assert "Beside it, of sizes between: " in told.why and [test.n for test in told.tests] == [60, 60]
    other = by_cohort(tmp_path / "other", {5: 6, 10: 2, 100: 4}, {5: 0.4, 10: 0.5, 100: 0.4})
    assert not fedps.more_rounds(other).holds and not fedps.smaller_cohort_better(other).holds
    with pytest.raises(NotJudged, match="Run with one n_sampled alone"):
        fedps.fewer_steps(Trials(usual.finished[:1]))


def test_means_alone_hold_nothing(tmp_path: Path) -> None:
    """In the claimed order, and as far apart as one training from the next."""
    near = by_cohort(tmp_path / "near", {5: 3, 100: 4}, {5: 0.5, 100: 0.5})
    rounds = fedps.more_rounds(near)
    assert not rounds.holds and rounds.p is not None and rounds.p > 0.05 and "n_sampled=100 3.667" in rounds.why
    epochs = fedps.epochs_save_rounds(by_epochs(tmp_path / "epochs", (4, 3, 3), (0.5, 0.48, 0.45)))
    assert not epochs.holds and epochs.p is not None and epochs.p > 0.05 and "epochs=1 3.667" in epochs.why
    once = by_cohort(tmp_path / "once", {5: 2, 100: 6}, {5: 0.5, 100: 0.4}, populations=(11,))
    with pytest.raises(NotJudged, match="One training alone"):
        fedps.more_rounds(once)


def by_epochs(place: Path, best: Sequence[int], levels: Sequence[float]) -> Trials:
    trials = by_cohort(place, dict(enumerate(best, 1)), dict(enumerate(levels, 1))).finished
    renamed = [{("epochs" if key == "n_sampled" else key): v for key, v in t.cell.items()} for t in trials]
    return Trials(tuple(Finished(cell, t.directory, t.result) for cell, t in zip(renamed, trials, strict=True)))


def test_every_number_of_epochs_beyond_one_must_save_rounds_and_cost_quality(tmp_path: Path) -> None:
    usual = by_epochs(tmp_path / "usual", (6, 2, 2), (0.5, 0.48, 0.45))
    assert fedps.epochs_save_rounds(usual).holds and fedps.epochs_cost_quality(usual).holds
    other = by_epochs(tmp_path / "other", (6, 2, 6), (0.5, 0.48, 0.52))
    assert not fedps.epochs_save_rounds(other).holds and not fedps.epochs_cost_quality(other).holds


def test_rows_of_populations_are_one_with_their_spread() -> None:
    row = {"data": "aol-like", "metric": "m", "why": "", "std": None, "n": 1, "published": 0.7}
    rows = [{**row, "ours": v, "difference": v - 0.7, "population": s} for s, v in ((11, 0.5), (12, 0.7))]
    (joined,) = join_populations(rows)
    assert "population" not in joined and (joined["ours"], joined["n"]) == (0.6, 2)
    assert joined["values"] == [{"population": 11, "value": 0.5}, {"population": 12, "value": 0.7}]
    assert joined["std"] == pytest.approx(0.02**0.5) and joined["difference"] == pytest.approx(-0.1)
    assert join_populations([row | {"ours": None}] * 2) == [row | {"ours": None}] * 2


def test_a_number_stands_beside_the_published_one_of_its_own_measure(tmp_path: Path) -> None:
    rows = tuple(PublishedRow({"n_sampled": 10}, v, None, m) for m, v in (("rounds", 3.0), ("offline/MAP", 0.7)))
    result = PublishedResult("fedps.table4", "fedps", (), "", ("aol",), "offline/MAP", (), "", rows, ())
    metrics: dict[str, Any] = {"offline/MAP": {}, "rounds": {}, "offline/MRR": {}}
    ours = Reproduction("fedps.table4", metrics=metrics, read=fedps_reading.read_at_best)
    trials = Trials((finish(tmp_path, {"n_sampled": 10}),))
    found = make_rows(Prepared(result, ours, (AOL,), (), tmp_path), trials)
    assert [(row["metric"], row["ours"], row["published"]) for row in found] == [
        ("offline/MAP", 0.5, 0.7),
        ("rounds", 1.0, 3.0),
    ]


def test_other_data_for_several_populations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data is what the runs of fedps\.table5 differ in"):
        prepare("fedps.table5", ReproduceOptions(tmp_path, changes={"data": "personal-like"}))


def write_population(directory: Path) -> None:
    """What names a log that was read."""
    directory.mkdir()
    periods, sizes = {"train": 1, "validation": 2, "test": 3}, {"test": 50, "other": 5}
    about = {"format": 1, "name": "aol", "n_users": 2, "periods": periods, "sizes": sizes}
    (directory / "population.json").write_text(json.dumps(about))


def test_a_log_that_was_read_into_a_directory_is_the_data(tmp_path: Path) -> None:
    write_population(tmp_path / "read")
    (choice,) = choose_data(("aol", "commercial"), tmp_path / "read")
    assert (choice.label, choice.source, choice.is_stand_in) == ("aol", str(tmp_path / "read"), False)
    prepared = prepare("fedps.table3", ReproduceOptions(tmp_path, data=tmp_path / "read"))
    assert {trial.recipe.data for trial in prepared.trials} == {str(tmp_path / "read")}
    # the engine's order, 4 models in two ways, 2 ways to hide, 2 with late ones
    assert len(prepared.trials) == 13


def test_a_directory_without_a_log_is_refused_in_words(tmp_path: Path) -> None:
    write_population(tmp_path / "aol")
    with pytest.raises(ValueError, match=r"has no commercial\. Read such a log into .* To run on what is there alone"):
        choose_data(("aol", "commercial"), tmp_path)


def test_table_5_runs_and_judges_its_claims(tmp_path: Path) -> None:
    small = ReproduceOptions(tmp_path, scale=ReproductionSize(quick=True), changes=TINY, only={"epochs": 2})
    found = reproduce(prepare("fedps.table5", small), small, PoolOptions(1, in_process=True, run={"workers": 1}))
    ours = [(row["metric"], row["published"]) for row in found["rows"] if row["ours"] is not None]
    assert ours == [("rounds", 3.0), ("steps", 7881.0), ("offline/MAP", 0.7091)]
    assert {row["why"] for row in found["rows"] if row["ours"] is None} == {"not a trial of ours"}
    assert {finding["why"] for finding in found["findings"]} == {"Run with one epochs alone."}
    page = (tmp_path / prepare("fedps.table5", small).directory.name / "report.html").read_text()
    assert "stand-in data: shaped like AOL" in page and "Users were generated from seed 11" in page


def test_an_estimate_of_personalised_search_counts_users_rounds_epochs_and_weeks() -> None:
    (one,) = fedps.local_epochs(AOL, ReproductionSize(repeats=1))[:1]
    long, often, weekly = (
        change_recipe(one.recipe, change)
        for change in ({"rounds": 2 * fedps.ROUNDS["aol"]}, {"epochs": 2}, {"updating": "retrain", "eval_every": None})
    )
    seconds = [estimate_search(recipe) for recipe in (one.recipe, often, long, weekly)]
    assert seconds == sorted(seconds) and seconds[-1] > 3 * seconds[0]
