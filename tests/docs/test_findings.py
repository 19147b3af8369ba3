"""docs/findings.md follows from the measurements beside it, and these agree with each other."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t as student
from shown_blocks import ROOT

from benchmarks import central_controls
from hushrank.reproduce.literature import find_result

DOCS = ROOT / "docs"
DATA = DOCS / "benchmarks"
PAGE = (DOCS / "findings.md").read_text(encoding="utf-8")
MEASURED = runpy.run_path(str(DOCS / "measured.py"))
REPRODUCED = sorted((DATA / "reproduced").glob("*.json"))
CHAPTER4 = sorted((DATA / "chapter4").glob("*.json"))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(name: str) -> list[list[str]]:
    """The cells of a table on the page, its header left out; minus signs and spaces as they are typed."""
    block = re.findall(rf"<!-- measured: {name} -->(.*?)<!-- end -->", PAGE, re.DOTALL)[0]
    block = block.replace("\u2212", "-").replace("\u00a0", " ")
    lines = [line for line in block.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_pages_show_every_table_as_it_follows_from_the_measurements() -> None:
    pages = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
    assert all(MEASURED["fill_page"](page) == page for page in pages)
    shown = [name for page in pages for name in re.findall(r"<!-- measured: ([\w-]+) -->", page)]
    assert sorted(shown) == sorted(MEASURED["TABLES"])


def test_what_is_said_of_clients_that_lie_follows_from_the_verdicts() -> None:
    judged = read("attacks_judged")
    said = f"in {judged['n_near']} of {judged['n_cells']} combinations of attack, share and user"
    assert said in PAGE and "significantly above in 10 of 12 cases" in PAGE and "in 10 of 12 cases; up to 20 %" in PAGE


def test_a_changed_measurement_changes_the_page(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DATA, tmp_path / "benchmarks"))
    path = data / "reproduced" / "foltr-es.table3.json"
    path.write_text(path.read_text().replace('"holds": true', '"holds": false'))
    assert MEASURED["fill_page"](PAGE, data) != PAGE


def test_table_3_has_the_printed_numbers_of_mq2008_and_every_one_of_them() -> None:
    printed = {
        tuple(row.cell.get(key, "linear") for key in ("method", "ranker", "clicks", "split")): row.published
        for row in find_result("foltr-es.table3").rows
        if row.cell["data"] == "mq2008"
    }
    ours = {
        (row["method"], row["ranker"], row["clicks"], row["split"]): row
        for row in read("reproduced/foltr-es.table3")["rows"]
    }
    assert {key: row["published"] for key, row in ours.items()} == printed
    shown = [float(cell.split()[0]) for line in table("table3") for cell in (line[3], line[5])]
    assert sorted(shown) == sorted(printed.values())


def test_foltr_es_is_nowhere_below_its_printed_values_by_more_than_a_hundredth() -> None:
    rows = read("reproduced/foltr-es.table3")["rows"]
    assert min(row["difference"] for row in rows if row["method"] == "foltr-es") > -0.003
    assert max(abs(row["difference"]) for row in rows if row["method"] in ("mse", "ranking-svm")) < 0.01


@pytest.mark.parametrize("path", REPRODUCED, ids=lambda path: path.stem)
def test_every_claim_of_a_rerun_result_is_on_the_page_with_its_verdict(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert not found["data"]["is_stand_in"] and not found["quick"] and not found["changes"]
    verdicts = {line[0]: line[1].strip("*") for line in table("claims") if len(line) == 3}
    words = {True: "held", False: "not held", None: "not run"}
    for claim in found["findings"]:
        assert verdicts[claim["claim"]] == words[claim["holds"]]
    assert [claim.id for claim in find_result(found["name"]).findings] == [claim["id"] for claim in found["findings"]]


def test_differences_of_methods_are_those_of_their_means() -> None:
    means = {(row["method"], row["clicks"]): row["offline/nDCG@10"] for row in read("methods")["rows"]}
    for row in read("method_pairs")["rows"]:
        ours, theirs = (means[row[side], row["clicks"]] for side in ("method", "against"))
        assert row["difference"] == pytest.approx(ours - theirs, abs=1.5e-4)  # three numbers rounded to 1e-4
        assert row["interval"][0] < row["difference"] < row["interval"][1]
        assert (row["p"] < 0.05) == (row["interval"][0] > 0 or row["interval"][1] < 0)


def test_the_page_shows_what_was_measured_about_server_steps() -> None:
    cells = [cell for line in table("server-steps") for cell in line[1:]]
    shown = [[float(number) for number in re.findall(r"[+-]?\.\d{4}", cell)] for cell in cells]
    assert shown == [[row["difference"], *row["interval"]] for row in read("server_steps")["rows"]]


def test_a_test_in_short_says_how_many_comparisons_and_how_large() -> None:
    better = "Paired t-tests, corrected: a +0.0100 (p 0.01); b -0.0020 (p 1e-05); c +0.0300 (p 0.2)."
    equal = "Two one-sided tests within 0.05: a +0.0100; b=0.5 over b=1.0 -0.0020. And 3 of 3 learn."
    means = "Means: fold 1 0.7379 over 0.7371; fold 2 0.7311 over 0.7325."
    shorten = MEASURED["shorten_test"]
    assert shorten({"why": better, "p": 0.2}).endswith(
        "significantly above in 1 of 3 cases, differences \u2212.0020 to +.0300."
    )
    assert shorten({"why": equal, "p": 0.004}) == (
        "Two one-sided tests within .05: 2 differences \u2212.0020 to +.0100, p .004. And 3 of 3 learn."
    )
    assert (
        shorten({"why": means, "p": None})
        == "Means in the claimed order in 1 of 2 cases, differences \u2212.0014 to +.0008."
    )


def test_the_p_of_a_verdict_stands_beside_no_list_of_several() -> None:
    test = "One-sided tests, lower by less than 0.005: a"
    why = f"Alone (shown, p 0.0078): {test} +0.0025. Mixed (not shown, p 0.38): {test} +0.0000."
    short = MEASURED["shorten_test"]({"why": why, "p": 0.38})
    assert short.startswith("Alone (shown, p 0.0078): One-sided tests, lower by less than .005: 1 difference +.0025. ")
    assert short.count("p .38") == 0 and short.count("p 0.38") == 1


def test_a_claim_that_held_where_it_was_run_is_on_the_page_as_held_in_part() -> None:
    part = [line for line in table("chapter4-claims") if line[-1].startswith("Held for ")]
    assert part and {line[2] for line in part} == {"held in part"}


def test_a_sum_of_hundreds_is_not_told_to_its_fourth_decimal_and_one_case_is_not_many() -> None:
    why = "Paired t-tests, corrected: a over b +33.2699 (p 6e-24)."
    assert MEASURED["shorten_test"]({"why": why, "p": 6e-24}).endswith("in 1 of 1 case, difference +33.3.")


def fpdgd(figure: str) -> dict[tuple[Any, ...], float]:
    """{(method, epsilon or control, user): ours} of a rerun result of FPDGD."""
    rows = read(f"reproduced/fpdgd.{figure}")["rows"]
    return {(row["method"], row.get("control", row.get("epsilon")), row["clicks"]): row["ours"] for row in rows}


USERS = ("perfect", "navigational", "informational")


def test_what_the_page_says_about_epsilon_and_delta_is_what_was_measured() -> None:
    seen, kept = fpdgd("table2"), fpdgd("figure2")
    for user in USERS:
        for less, more in ((1.2, 2.3), (4.5, 10.0)):  # the same Delta
            assert abs(seen["fpdgd", more, user] - seen["fpdgd", less, user]) < 0.25
            assert abs(kept["fpdgd", more, user] - kept["fpdgd", less, user]) <= 0.0006
        assert 18 < seen["fpdgd", 4.5, user] - seen["fpdgd", 2.3, user] < 19.5
        cost = {epsilon: kept["fpdgd", None, user] - kept["fpdgd", epsilon, user] for epsilon in (1.2, 2.3, 4.5, 10.0)}
        assert all(0.0085 < cost[epsilon] < 0.0135 for epsilon in (1.2, 2.3))
        assert all(0.0025 < cost[epsilon] < 0.0065 for epsilon in (4.5, 10.0))


BUDGETS = (1.2, 2.3, 4.5, 10.0)


def test_foltr_es_beside_the_noise_learnt_from_clicks() -> None:
    seen = fpdgd("table2")
    for epsilon in BUDGETS:  # were its reward made of labels, the three users would be one training
        assert len({seen["foltr-es", epsilon, user] for user in USERS}) == 3


def test_foltr_es_shows_better_lists_than_fpdgd_and_ends_with_no_better_ranker() -> None:
    seen, kept = fpdgd("table2"), fpdgd("figure2")
    said = {"perfect": (31, 46), "navigational": (32, 46), "informational": (25, 39)}
    for user in USERS:
        leads = [seen["foltr-es", epsilon, user] - seen["fpdgd", epsilon, user] for epsilon in BUDGETS]
        assert (round(min(leads)), round(max(leads))) == said[user]
        over_silence = [seen["foltr-es", epsilon, user] - seen["fpdgd", None, user] for epsilon in BUDGETS[1:]]
        assert round(min(over_silence)) >= 8 and round(max(over_silence)) <= 22
        below_silence = [kept["fpdgd", None, user] - kept["foltr-es", epsilon, user] for epsilon in BUDGETS]
        assert min(below_silence) > 0.0045 and max(below_silence) < 0.0445


@pytest.mark.parametrize(("figure", "n_above", "n_significant"), [("figure2", 11, 5), ("figure3", 7, 4)])
def test_fpdgd_is_above_foltr_es_in_as_many_cases_as_the_page_says(
    figure: str, n_above: int, n_significant: int
) -> None:
    found = fpdgd(figure)
    leads = [found["fpdgd", epsilon, user] - found["foltr-es", epsilon, user] for epsilon in BUDGETS for user in USERS]
    assert sum(lead > 0 for lead in leads) == n_above
    claims = {claim["id"]: claim for claim in read(f"reproduced/fpdgd.{figure}")["findings"]}
    claim = claims["fpdgd-above-foltr-es" if figure == "figure2" else "same-trends-by-maxrr"]
    tests = re.findall(r"fpdgd over foltr-es ([+-][\d.]+) \(p ([^)]+)\)", claim["why"])
    assert len(tests) == len(leads)
    significant = [float(lead) for lead, p in tests if float(p) < 0.05]
    assert len(significant) == n_significant and min(significant) > 0
    assert claim["holds"] is False


def test_the_controls_of_both_files_are_the_same_trainings() -> None:
    kept = fpdgd("figure2")
    for row in read("central_controls")["rows"]:
        assert row["offline/nDCG@10"] == pytest.approx(kept["pdgd", row["control"], row["clicks"]], abs=5e-5)


def test_controls_are_read_off_finished_trials_alone(tmp_path: Path) -> None:
    data = tmp_path / "MQ2008"
    for name in ("train", "vali", "test"):
        data.mkdir(exist_ok=True)
        (data / f"{name}.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    with pytest.raises(SystemExit, match="has not finished: run hushrank reproduce"):
        central_controls.main(["--data", str(data), "--runs", str(tmp_path)])


def test_the_page_compares_differences_of_table_2_with_those_of_the_printed_numbers() -> None:
    printed = {
        (row.cell["method"], row.cell["epsilon"], row.cell["clicks"]): row.published
        for row in find_result("fpdgd.table2").rows
        if row.cell["data"] == "mq2007"
    }
    shown = next(line for line in table("fpdgd-steps") if line[0] == "FOLtR-ES less FPDGD, epsilon 4.5")
    for cell, user in zip(shown[1:], USERS, strict=True):
        gap = printed["foltr-es", 4.5, user] - printed["fpdgd", 4.5, user]
        assert float(re.findall(r"\(([+-]?[\d.]+)\)", cell)[0]) == pytest.approx(gap, abs=0.06)


def test_ten_clients_pay_most_for_noise_and_a_thousand_least() -> None:
    costs = [(line[1], float(line[4])) for line in table("fpdgd-clients")]
    span = {n: (min(c for m, c in costs if m == n), max(c for m, c in costs if m == n)) for n, _ in costs}
    assert span == {"10": (0.0667, 0.1157), "100": (0.0073, 0.0115), "1,000": (0.0033, 0.0059)}


def as_published(part: str) -> dict[tuple[str, str], dict[str, Any]]:
    """{(variant, user): row} of FOLtR-ES."""
    return {(row["variant"], row["clicks"]): row for row in read("as_published")["parts"][part]}


def test_with_the_published_seeds_the_linear_ranker_has_the_printed_values_and_with_ours_better_ones() -> None:
    found = as_published("foltr-es")
    for user in USERS:
        published, ours = found["published-code", user], found["paper", user]
        for split, metric in (("train", "train/MaxRR"), ("test", "offline/MaxRR")):
            printed = published["printed"][split]
            assert abs(published[metric]["mean"] - printed) < 0.005
            assert 0.007 < ours[metric]["mean"] - printed < 0.02


def test_with_the_published_seeds_foltr_es_declines_and_with_ours_it_does_not() -> None:
    for (variant, _), row in as_published("foltr-es").items():
        for metric, early in row["early"].items():
            assert (row[metric]["mean"] > early) == (variant == "paper")


def test_the_printed_values_beside_the_variants_are_those_of_the_paper() -> None:
    printed = {
        tuple(row.cell[key] for key in ("ranker", "clicks", "split")): row.published
        for row in find_result("foltr-es.table3").rows
        if row.cell["data"] == "mq2008" and row.cell["method"] == "foltr-es"
    }
    rows = [row for part in ("foltr-es", "foltr-es two-layer") for row in read("as_published")["parts"][part]]
    shown = {(row["ranker"], row["clicks"], split): row["printed"][split] for row in rows for split in row["printed"]}
    assert shown == printed


def test_the_published_bound_costs_less_and_has_the_pattern_of_the_printed_numbers() -> None:
    seen, kept = fpdgd("table2"), fpdgd("figure2")
    rows = {(row["epsilon"], row["clicks"]): row for row in read("as_published")["parts"]["fpdgd"]}
    assert set(rows) == {(epsilon, user) for epsilon in BUDGETS for user in USERS}
    for (epsilon, user), row in rows.items():
        assert seen["fpdgd", epsilon, user] < row["online/nDCG@10"]["mean"] < seen["fpdgd", None, user]
        assert kept["fpdgd", None, user] - row["offline/nDCG@10"]["mean"] < 0.004
    gains = {u: rows[4.5, u]["online/nDCG@10"]["mean"] - rows[2.3, u]["online/nDCG@10"]["mean"] for u in USERS}
    assert gains["perfect"] > 1.9 * max(gains["navigational"], gains["informational"])


def test_with_the_published_bound_a_hundred_clients_lose_less_and_ten_as_much() -> None:
    quiet = {
        (r["n_clients"], r["clicks"]): r["ours"]
        for r in read("reproduced/fpdgd.figure4")["rows"]
        if r["privacy"] == "none"
    }
    rows = {(row["n_clients"], row["clicks"]): row for row in read("as_published")["parts"]["fpdgd sizes"][:6]}
    costs = {cell: quiet[cell] - row["offline/nDCG@10"]["mean"] for cell, row in rows.items()}
    assert all(0.07 < costs[10, user] < 0.13 and 0.002 < costs[100, user] < 0.007 for user in USERS)


@pytest.mark.parametrize("path", CHAPTER4, ids=lambda path: path.stem)
def test_the_parts_of_chapter_4_have_the_claims_and_the_rounds_that_the_page_says(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    part, _, name = path.stem.partition(".")
    assert found["name"] == f"thesis.{name}"
    assert [claim.id for claim in find_result(found["name"]).findings] == [claim["id"] for claim in found["findings"]]
    parts = runpy.run_path(str(DOCS / "measured_chapter4.py"))["PARTS"]
    assert parts[part][1] == found["changes"].get("rounds", 10_000) and not found["quick"]


@pytest.mark.parametrize(("part", "share"), [("three-grades", 2 / 3), ("mslr-like", 4 / 5)])
def test_one_label_per_client_gives_the_sum_of_the_formula(part: str, share: float) -> None:
    rows = read(f"chapter4/{part}.table4.3")["rows"]
    ours = [row["ours"] for row in rows if row["distribution"] == "non-iid" and row["ours"] is not None]
    assert ours == pytest.approx([share * (1 - 0.9995**10_000) / 0.0005] * len(ours), abs=0.005) and ours


SAID = runpy.run_path(str(DOCS / "measured_chapter4_said.py"))
TYPE_1, TYPE_2, REMEDIES = "intents.figure4.3", "mslr-like-network.figure4.6", "three-grades.figure4.7"


def change(tmp_path: Path, name: str, edit: Callable[[dict[str, Any]], None]) -> Path:
    """The measurements with one kept result of chapter 4 changed."""
    data = Path(shutil.copytree(DATA, tmp_path / "benchmarks", dirs_exist_ok=True))
    path = data / "chapter4" / f"{name}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    edit(found)
    path.write_text(json.dumps(found), encoding="utf-8")
    return data


def line_of(data: Path, *words: str) -> str:
    """The first line under "What holds, and why" with all of these words; minus signs and spaces as they are typed."""
    text = SAID["reasons"](data).replace("\u2212", "-").replace("\u00a0", " ")
    return next(line for line in text.splitlines() if all(word in line for word in words))


def test_what_two_labels_cost_is_told_user_by_user_from_the_kept_rows(tmp_path: Path) -> None:
    def edit(found: dict[str, Any]) -> None:
        levels = {"perfect": 0.6, "navigational": 0.5004, "informational": 0.4}
        for row in found["rows"]:
            row["ours"] = levels[row["clicks"]] if row["partition"] == "labels-2" else 0.5

    data = change(tmp_path, TYPE_2, edit)
    line = line_of(data, "five grades, networks", "over one label")
    assert "perfect +.100, navigational .000, informational -.100;" in line
    kinds = runpy.run_path(str(DOCS / "measured_differ_kinds.py"))
    cost = kinds["two_labels_cost"](data).replace("\u2212", "-")
    assert "informational users -.100 (`mslr-like`, five grades, networks)" in cost
    assert "perfect users +" not in cost and "navigational users .000" not in cost


@pytest.mark.parametrize("part", ["intents", "intents-network"])
def test_clients_with_intents_are_told_by_three_ways_of_judging_as_the_tests_say(part: str) -> None:
    (claim,) = read(f"chapter4/{part}.figure4.3")["findings"]
    line = line_of(DATA, SAID["name_part"](part)[1:], "measured like this")
    told = re.split("; by the clients' own labels|; by the union of labels for both", line)
    sections = [("As published: ", "$"), ("Own labels for both: ", " As published"), ("Union for both: ", " Own")]
    for words, between in zip(told, sections, strict=True):
        cases = dict(SAID["read_cases"](claim, *between))
        assert set(cases) == set(USERS)
        is_below = [gap > 0 and p < 0.05 for gap, p in cases.values()]  # the claim has the control less the others
        is_above = [gap < 0 and p < 0.05 for gap, p in cases.values()]
        assert ("below the control" in words or "below it" in words) is any(is_below)
        assert ("above the control" in words or "above it" in words) is any(is_above)
        assert ("not shown to differ" in words) is not all(b or a for b, a in zip(is_below, is_above, strict=True))


def test_a_published_gap_is_called_one_of_labels_only_where_none_is_there_by_own_labels(tmp_path: Path) -> None:
    def edit(found: dict[str, Any]) -> None:
        tests = "; ".join(f"d linear {user} +0.0400 (p 0.001)" for user in USERS)
        found["findings"][0]["why"] = f"Union for both: {tests}. Own labels for both: {tests}. As published: {tests}."

    assert "not held" not in SAID["reasons"](change(tmp_path, TYPE_1, edit))
    assert "Type 1, intents: beside the control" in SAID["reasons"](change(tmp_path, TYPE_1, edit))
    assert SAID["is_of_labels"](DATA) is ("the published gap is one of labels" in SAID["reasons"](DATA))


def test_a_remedy_that_is_significantly_better_in_a_case_is_told(tmp_path: Path) -> None:
    def edit(found: dict[str, Any]) -> None:
        (claim,) = (claim for claim in found["findings"] if claim["id"] == "fedprox-does-not-help")
        claim |= {
            "holds": False,
            "why": "Paired t-tests, not corrected: d perfect +0.1 (p 0.01); d perfect -0.1 (p 0.01).",
        }

    line = line_of(change(tmp_path, REMEDIES, edit), "MQ2008, linear rankers", "FedProx is")
    assert "FedProx is significantly better in 1 of 2 cases" in line


def test_the_words_of_the_page_follow_from_every_kept_result() -> None:
    """No part is left out of what it is told under."""
    text = SAID["reasons"](DATA)
    for figure, first in {"4.3": "measured like this", "4.5": "to the control;", "4.6": "over one label"}.items():
        parts = SAID["find"](DATA, f"figure{figure}")
        lines = [line for line in text.splitlines() if first in line]
        assert parts and all(any(SAID["name_part"](part) in line for line in lines) for part in parts)
    n_quantity = len([line for line in text.splitlines() if ", alone: " in line or ", mixed with " in line])
    assert n_quantity == sum(len(SAID["read_quantity"](r)) for r in SAID["find"](DATA, "figure4.9").values())


def test_commands_are_those_that_the_kept_results_record() -> None:
    block = re.findall(r"<!-- measured: chapter4-commands -->(.*?)<!-- end -->", PAGE, re.DOTALL)[0]
    lines = [line.split() for line in block.splitlines() if line.strip()]
    for path in CHAPTER4:
        found = json.loads(path.read_text(encoding="utf-8"))
        options = [f"{key}={value}" for name in ("changes", "only") for key, value in found[name].items()]
        fitting = [line for line in lines if found["name"] in line and all(option in line for option in options)]
        fitting = [line for line in fitting if sum("=" in word for word in line) == len(options)]
        fitting = [line for line in fitting if ("--data" in line) is not found["data"]["is_stand_in"]]
        assert len(fitting) == 1, path.name
        n = max(row["n"] for row in found["rows"])
        assert int(fitting[0][fitting[0].index("--repeats") + 1]) * 5 == n


def keep_values(found: dict[str, Any]) -> None:
    """Differences .009, .010 and .011 of every row from its control."""
    for row in found["rows"]:
        lower = 0.4 if row["distribution"] == "iid" else 0.4 - 0.01
        noise = (0.0, 0.0, 0.0) if row["distribution"] == "iid" else (0.001, 0.0, -0.001)
        row["values"] = [{"fold": 1, "repeat": r, "value": lower + more} for r, more in enumerate(noise)]


def test_a_gap_has_p_where_the_values_of_its_trainings_are_kept(tmp_path: Path) -> None:
    """t = .01 / (.001 / sqrt 3) = 17.3, p .0033, and so often as there are rows; online quality is told once."""
    data = change(tmp_path, TYPE_1, keep_values)
    where = "generated `intent-change-like`, linear"
    gaps = runpy.run_path(str(DOCS / "measured_chapter4.py"))["gaps"]
    lines = [[cell.strip(" |") for cell in line.split(" | ")] for line in gaps(data).splitlines()[2:]]
    p = min(1, len(lines) * 2 * student.sf(10 * 3**0.5, 2))
    ours = [line for line in lines if line[0] in ("1", "1, own labels") and line[1] == where]
    assert len(ours) == 2 * len(USERS)
    assert all(f"(p\u00a0{p:.2f})".replace("0.", ".") in line[5] for line in ours)
    assert all(("(p" in line[7]) is (line[0] == "1") for line in ours)


def test_without_values_a_gap_has_no_p_and_welchs_test_is_online_alone(tmp_path: Path) -> None:
    def edit(found: dict[str, Any]) -> None:
        for row in found["rows"]:
            row.pop("values", None)

    data = change(tmp_path, TYPE_1, edit)
    gaps = runpy.run_path(str(DOCS / "measured_chapter4.py"))["gaps"]
    lines = [line.split(" | ") for line in gaps(data).splitlines()[2:]]
    ours = [line for line in lines if line[0] == "| 1" and line[1] == "generated `intent-change-like`, linear"]
    assert ours and not any("(p" in line[5] or "(u" in line[5] for line in ours)
    assert all("(u\u00a0" in line[7] for line in ours)


def test_mixtures_with_intents_have_rows_by_own_labels_where_these_are_kept(tmp_path: Path) -> None:
    def edit(found: dict[str, Any]) -> None:
        keep_values(found)
        offline = [row for row in found["rows"] if row["metric"] == "offline/nDCG@10"]
        found["rows"] = [row for row in found["rows"] if row["metric"] != "personal/nDCG@10"]
        found["rows"] += [{**row, "metric": "personal/nDCG@10"} for row in offline]

    data = change(tmp_path, "intents.figure4.9", edit)
    gaps = runpy.run_path(str(DOCS / "measured_chapter4.py"))["gaps"](data)
    assert gaps.count("| 4, intents+quantity, own labels | ") == len(USERS)
    assert gaps.count("| 4, intents, own labels | ") == len(USERS)


def test_what_unequal_searches_cost_follows_from_how_they_are_weighed() -> None:
    """The client with the most searches loses too: less where it weighs less; nothing is shown where all move alike.

    These are what the words below the table rest on.
    """
    _, *others = table("chapter4-quantity")
    lost = [[float(cell.partition(" ")[0]) for cell in row[2:]] for row in others]
    p_values = [[float(cell.partition("(p ")[2].strip("<) ")) for cell in row[2:5]] for row in others]
    assert all(cell < 0 for row in lost[:2] for cell in row)
    assert all(one < other for one, other in zip(lost[0], lost[1], strict=True))
    assert min(p_values[2]) > 0.05 > max(*p_values[0], *p_values[3]) and max(lost[3][:3]) < 0
    said = runpy.run_path(str(DOCS / "measured_chapter4.py"))["tell_quantity"](DATA).splitlines()
    assert len(said) == len(others)
    for line, ps in zip(said, p_values, strict=True):
        assert ("below equal searches for all users" in line) is (max(ps) < 0.05)
