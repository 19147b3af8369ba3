"""What docs/howto/which-rule.md says in words follows from the measurements, and the command that takes them works."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks import attack_list, attacks
from benchmarks.attacks_compare import choose_rivals, judge_rule
from benchmarks.attacks_compare import main as compare
from hushrank.aggregation.named import aggregation_names
from hushrank.attacks.named import ATTACKS, FunctionAttack, register_attack
from hushrank.reports.attack_matrix import PEACE, Matrix, MatrixLine, read_matrix

DOCS = ROOT / "docs"
PAGE = (DOCS / "howto" / "which-rule.md").read_text(encoding="utf-8")
FOUND: dict[str, Any] = json.loads((DOCS / "benchmarks" / "attacks.json").read_text(encoding="utf-8"))
MATRIX = read_matrix(FOUND)
TABLES = runpy.run_path(str(DOCS / "measured_attacks.py"))["TABLES"]
STANDING = (*attack_list.THESIS, *attack_list.OTHERS)
CYCLE = ("cycle", "cycle:full", "cycle:short", "cycle:repaid")
SMALL = ["--data", "tiny", "--set", "rounds=3", "--set", "folds=[1]", "--jobs", "1"]


def worst(rule: str, share: float) -> float:
    """The largest loss, over attacks and users."""
    lines = [line for line in MATRIX.lines if line.share == share]
    losses = [
        (MATRIX.mean_test(line, rule, user) or 0.0) - (MATRIX.peace(user) or 0.0)
        for line in lines
        for user in MATRIX.users
    ]
    return min(losses)


def test_the_matrix_has_every_attack_and_rule() -> None:
    names = {attack.partition(":")[0] for attack in STANDING}
    assert names == set(ATTACKS) - set(attack_list.LEFT_OUT)
    assert ATTACKS["fang-median"] is ATTACKS["fang-trimmed-mean"]
    assert {line.attack for line in MATRIX.lines} == {PEACE, *STANDING}
    assert set(MATRIX.rules) == set(aggregation_names())
    assert {line.share for line in MATRIX.lines if line.attack in attack_list.THESIS} == {10, 20, 30, 40}


def test_the_page_has_every_table_once_and_names_every_rule() -> None:
    assert all(PAGE.count(f"<!-- measured: {name} -->") == 1 for name in TABLES)
    assert all(f"`{rule}`" in PAGE for rule in aggregation_names() if rule != "centred-clipping")
    assert all(f"\n{make(DOCS / 'benchmarks')}\n" in PAGE for make in TABLES.values())


def test_the_watchful_server_costs_nothing_in_peace() -> None:
    peace = MatrixLine(PEACE, 0)
    for user in MATRIX.users:
        assert abs((MATRIX.mean_test(peace, "watchful", user) or 0) - (MATRIX.peace(user) or 0)) < 0.002


def test_with_one_liar_of_ten_the_rules_that_the_page_names_lose_little_and_krum_much() -> None:
    assert all(worst(rule, 10) > -0.0105 for rule in ("mixing", "multi-krum", "trimmed-mean", "watchful"))
    assert worst("krum", 10) < -0.1


def test_the_watchful_server_is_near_the_chosen_rule_as_the_page_says() -> None:
    found = judge_rule(MATRIX, "watchful")
    assert (found["n_near"], found["n_cells"], found["n_worse_than_mean"], found["missing"]) == (103, 105, 0, [])
    assert found["attacks_not_run"] == []
    far = {(cell["attack"], cell["share"], cell["user"]) for cell in found["cells"] if not cell["is_near"]}
    assert far == {("gaussian", 20.0, "informational"), ("tailored:full", 20.0, "informational")}
    assert worst("watchful", 30) > -0.01 > worst("watchful", 40)


def read_kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_the_verdict_over_five_seeds_is_that_of_the_kept_cells() -> None:
    matrix, peaceful = (read_matrix(read_kept(name)) for name in ("attacks_five", "attacks_peace"))
    found = judge_rule(matrix, "watchful", peaceful=peaceful)
    assert found == read_kept("attacks_judged") and found["n_trainings"] == 25 and found["missing"] == []
    assert f"{found['n_near']} of {found['n_cells']} combinations over five seeds" in PAGE
    assert found["attacks_not_run"] == [] and f"so {len(STANDING)} variants" in PAGE
    assert found["peace_holds"] and found["near_holds"] and found["worse_holds"]


def test_the_pages_say_what_was_run_at_which_share_and_with_how_many_seeds() -> None:
    found = read_kept("attacks_judged")
    shares: dict[str, set[float]] = {}
    for cell in found["cells"]:
        shares.setdefault(cell["attack"], set()).add(cell["share"])
    assert all(shares[attack] == {10, 20, 30} for attack in attack_list.THESIS) and len(attack_list.THESIS) == 8
    assert all(shares[attack] == {20} for attack in attack_list.OTHERS) and len(attack_list.OTHERS) == 11
    names = [attack.partition(":")[0] for attack in STANDING]
    assert (len(set(names)), len(names) - len(set(names))) == (13, 6)
    said = " ".join((DOCS / "findings.md").read_text(encoding="utf-8").split())
    assert (
        f"in {found['n_near']} of {found['n_cells']} combinations of attack, share and user over five seeds: " in said
    )
    assert "the thesis' eight variants with 10, 20 and 30 % malicious clients, eleven others with 20 % alone" in said
    assert "(13 attacks, six of them with partial and with full knowledge)" in said


def test_beside_the_mean_and_the_watchful_server_one_rule_was_trained_over_five_seeds() -> None:
    five, rivals = read_matrix(read_kept("attacks_five")), choose_rivals(MATRIX, "watchful")
    assert (MATRIX.about["repeats"], five.about["repeats"]) == (1, 5)
    for attack, rival in rivals.items():
        rules = {rule for line, rule in five.cells if line.attack == attack}
        assert rules == {"mean", "watchful", rival}


def test_the_command_that_the_page_names_gives_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    ((file, peace),) = set(re.findall(r"benchmarks\.attacks_compare (docs/\S+?\.json) --peace (docs/\S+?\.json)", PAGE))
    assert compare([str(ROOT / file), "--peace", str(ROOT / peace)]) == 0
    assert "105 of 105 cells" in capsys.readouterr().out


def test_what_counts_as_zero_is_said_where_it_is_shown() -> None:
    lost = {
        name: {(c["attack"], c["share"], c["rule"]) for c in read_kept(name)["cells"] if c["state"] == "diverged"}
        for name in ("attacks", "attacks_five")
    }
    full = "fang-trimmed-mean:full"
    assert lost == {"attacks": {(full, 30.0, "mean"), (full, 40.0, "mean")}, "attacks_five": {(full, 30.0, "mean")}}
    assert PAGE.count("`div.`: every training diverged") == 1 and PAGE.count(" diverged counts as 0: ") == 2


def test_of_honest_updates_it_left_out_what_the_page_says() -> None:
    heavy: dict[bool, list[float]] = {True: [], False: []}
    for row in read_kept("expelled")["rows"]:
        heavy[row["case"].endswith(" times")].append(row["left_out"])
    assert f"left out up to {100 * max(heavy[False]):.1f} % of honest updates" in PAGE
    assert f"and up to {100 * max(heavy[True]):.1f} % where one client of six" in PAGE


def test_one_who_promotes_documents_harms_every_rule_that_the_page_names_for_one_liar() -> None:
    rules = read_kept("promote")["rules"]
    honest = rules["nobody"]["informational"]["offline/nDCG@10"]
    lost = {rule: honest - found["informational"]["offline/nDCG@10"] for rule, found in rules.items()}
    assert all(0.05 < lost[rule] < 0.065 for rule in ("mixing", "multi-krum", "trimmed-mean"))
    assert f"where `mean` lost .{1000 * lost['mean']:03.0f}" in PAGE
    assert abs(lost["detector"] - lost["mean"]) < 0.0005 and "it lost as much as `mean`" in PAGE


def test_among_many_clients_the_watchful_server_loses_least_and_wrongs_nobody() -> None:
    found = read_kept("attacks_many")
    matrix = read_matrix(found)
    lowest = {rule: min(mean_losses(matrix, rule)) for rule in matrix.rules}
    assert lowest["watchful"] > -0.02 > -0.16 > lowest["median"] > lowest["mean"]
    told = [row for row in found["cells"] if row["rule"] == "watchful"]
    assert len(told) == 17 and all(set(row["wronged"].values()) == {0.0} for row in told)


def mean_losses(matrix: Matrix, rule: str, lines: Sequence[MatrixLine] | None = None) -> list[float]:
    """Against plain averaging with nobody malicious: every attack, share and user; lines: default all."""
    return [
        (matrix.mean_test(line, rule, user) or 0.0) - (matrix.peace(user) or 0.0)
        for line in lines or matrix.lines
        for user in matrix.users
    ]


def test_liars_who_know_the_watchful_server_gain_little() -> None:
    found = read_kept("attacks_adaptive")
    matrix = read_matrix(found)
    framed = [row["wronged"] for row in found["cells"] if (row["attack"], row["rule"]) == ("framing", "watchful")]
    assert len(framed) == 2 and all(set(row.values()) == {0.0} for row in framed)
    assert {line.attack for line in matrix.lines} == {PEACE, *attacks.ADAPTIVE}
    others = [line for line in matrix.lines if line.attack not in CYCLE]
    assert round(min(mean_losses(matrix, "watchful", others)), 3) == -0.011
    assert "First the rows without `cycle`." in PAGE and "at worst `watchful` is .011 below" in PAGE
    assert min(mean_losses(matrix, "mean", others)) < -0.2


def test_liars_who_pay_for_their_lies_gain_little_as_the_pages_say() -> None:
    matrix = read_matrix(read_kept("attacks_adaptive"))
    lines = [line for line in matrix.lines if line.attack in CYCLE]
    assert {(line.attack, line.share) for line in lines} == {(name, share) for name in CYCLE for share in (10, 20, 30)}
    lost = {rule: -min(mean_losses(matrix, rule, lines)) for rule in ("mean", "watchful", "norm-bound", "multi-krum")}
    assert max(lost["norm-bound"], lost["multi-krum"]) < lost["watchful"] < 0.02 and lost["mean"] > 0.3
    texts = [PAGE, *((ROOT / name).read_text(encoding="utf-8") for name in ("docs/findings.md", "CHANGELOG.md"))]
    assert all(f"by up to .{1000 * lost['watchful']:03.0f}" in text and "30 % malicious" in text for text in texts)


def test_other_rules_lose_far_more_to_other_attacks_than_the_watchful_server_to_cycle() -> None:
    matrix = read_matrix(read_kept("attacks_adaptive"))
    most = -min(mean_losses(matrix, "watchful", [line for line in matrix.lines if line.attack in CYCLE]))
    assert all(-worst(rule, share) > 10 * most for rule in ("norm-bound", "multi-krum") for share in (20, 30))
    told = [
        row for row in read_kept("attacks_adaptive")["cells"] if row["rule"] == "watchful" and row["attack"] in CYCLE
    ]
    assert all(set(row["wronged"].values()) == {0.0} for row in told) and len(told) == 12


def test_the_page_says_that_its_two_matrices_are_of_two_versions() -> None:
    said = PAGE.partition("<!-- measured: attacks-versions -->")[2].partition("<!-- end -->")[0]
    dates = [read_kept(name)["when"][:10] for name in ("attacks", "attacks_five")]
    assert dates == sorted(dates) and f"one seed is of {dates[0]}, that over five seeds of {dates[1]}" in said
    assert "an earlier version of the engine and of `watchful`, so that single cells differ" in said


def test_a_cohort_makes_rules_reckon_with_its_own_liars() -> None:
    """A fifth of ten clients lies, and a fifth of the five that are asked; the median does not ask how many."""
    wanted = attacks.Wanted("tiny", ["median", "krum"], ["sign-flip"], changes={"cohort": 5})
    keys = [(task.changes["n_malicious"], task.changes.get("assumed_malicious")) for task in wanted.list_tasks()]
    assert keys == [(2, None), (2, 1)]


def test_the_chosen_rule_of_each_attack_is_run_beside_the_named_ones() -> None:
    rivals = choose_rivals(MATRIX, "watchful")
    wanted = attacks.Wanted("tiny", ["mean", "watchful"], chosen=rivals)
    assert wanted.rules_of("at-bound") == ["mean", "watchful", rivals["at-bound"]]
    assert wanted.rules_of("scaled") == ["mean", "watchful"] and rivals["scaled"] == "mean"


def test_a_promoted_document_rises_under_every_rule_but_the_watchful_one() -> None:
    found = json.loads((DOCS / "benchmarks" / "promote.json").read_text(encoding="utf-8"))["rules"]
    usual = {user: values["promote/rank"] for user, values in found["nobody"].items()}
    risen = {rule: max(usual[u] - v["promote/rank"] for u, v in of.items()) for rule, of in found.items()}
    assert risen.keys() == {"nobody", *aggregation_names()}
    assert abs(risen["watchful"]) < 0.5
    assert all(places > 4 for rule, places in risen.items() if rule not in ("nobody", "watchful"))


def test_in_peace_it_is_the_mean_over_two_hundred_trainings() -> None:
    found = judge_rule(read_matrix(read_kept("attacks_peace")), "watchful")
    assert found["n_trainings"] == 200 and found["peace_holds"]


def test_at_a_fifth_the_watchful_server_loses_least_at_its_worst() -> None:
    others = [rule for rule in MATRIX.rules if rule not in ("watchful", "bulyan")]
    assert worst("watchful", 20) > max(worst(rule, 20) for rule in others)


def test_bulyan_is_defined_for_one_liar_of_ten() -> None:
    states = {line.share: MATRIX.cells[line, "bulyan"].state for line in MATRIX.lines if line.attack != PEACE}
    assert states == {10: "run", 20: "not defined", 30: "not defined", 40: "not defined"}


def run(path: Path, *more: str, rules: str = "mean,krum,bulyan", names: str = "none,poisoned-clicks") -> dict[str, Any]:
    page = path.with_suffix(".html")
    options = ["--rules", rules, "--attacks", names, "--shares", "0,20", "--json", str(path), "--html", str(page)]
    assert attacks.main([*SMALL, *options, *more]) == 0 and page.is_file()
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_command_writes_what_the_page_reads_and_continues(tmp_path: Path) -> None:
    path = tmp_path / "attacks.json"
    found = run(path)
    assert found.keys() == FOUND.keys() and found["about"].keys() == FOUND["about"].keys()
    states = {(cell["attack"], cell["rule"]): cell["state"] for cell in found["cells"]}
    assert states == {
        (attack, rule): "not defined" if rule == "bulyan" else "run"
        for attack in ("none", "poisoned-clicks")
        for rule in ("mean", "krum", "bulyan")
    }
    again = run(path, "--resume", names="none,poisoned-clicks,fang-krum:full")
    assert again["cells"][:6] == found["cells"] and len(again["cells"]) == 9


def test_what_is_there_is_not_overwritten_nor_mixed(tmp_path: Path) -> None:
    path = tmp_path / "attacks.json"
    run(path, rules="mean", names="none")
    with pytest.raises(ValueError, match=r"exists\. Continue it with --resume"):
        run(path, rules="mean", names="none")
    with pytest.raises(ValueError, match="has another repeats"):
        run(path, "--resume", "--repeats", "2", rules="mean", names="none")
    with pytest.raises(ValueError, match="nonsense: no such rule"):
        run(tmp_path / "other.json", rules="nonsense")


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_a_training_that_diverges_is_a_cell_that_counts_as_nothing(tmp_path: Path) -> None:
    usual = ATTACKS.pop("scaled")
    register_attack("scaled", FunctionAttack(lambda view, *, key: 0 * view.own + 3e38 + 0 * key[0]))
    try:
        (cell,) = run(tmp_path / "a.json", rules="mean", names="scaled")["cells"]
    finally:
        ATTACKS["scaled"] = usual
    assert cell["state"] == "diverged" and set(cell["test"]["perfect"]) == {0.0}


def test_two_processes_find_the_same(tmp_path: Path) -> None:
    one, two = (run(tmp_path / f"{n}.json", "--jobs", n, rules="mean,krum") for n in ("1", "2"))
    same = [
        [{k: v for k, v in cell.items() if not k.endswith("seconds")} for cell in found["cells"]]
        for found in (one, two)
    ]
    assert same[0] == same[1]


def test_attacks_that_are_made_for_a_rule_do_what_the_page_says() -> None:
    """Each more harm than poisoned clicks, and those on the Krums more than those on Trimmed Mean and Median."""
    table = PAGE.partition("<!-- measured: attacks-fang -->")[2].partition("<!-- end -->")[0]
    lines = table.strip().splitlines()[2:]
    assert len(lines) == 5
    for line in lines:
        _, forged, beside, difference, p = (cell.strip() for cell in line.strip("|").split("|"))
        assert float(forged) > float(beside.split(":")[1]) and difference.startswith("+")
        assert p == "< .001" or float(p) < 0.05
