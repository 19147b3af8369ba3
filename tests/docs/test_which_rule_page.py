"""What docs/howto/which-rule.md says in words follows from the measurements, and the command that takes them works."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks import attack_list, attacks
from benchmarks.attacks_compare import choose_rivals, judge_rule
from hushrank.aggregation.named import aggregation_names
from hushrank.attacks.named import ATTACKS, FunctionAttack, register_attack
from hushrank.reports.attack_matrix import PEACE, Matrix, MatrixLine, read_matrix

DOCS = ROOT / "docs"
PAGE = (DOCS / "howto" / "which-rule.md").read_text(encoding="utf-8")
FOUND: dict[str, Any] = json.loads((DOCS / "benchmarks" / "attacks.json").read_text(encoding="utf-8"))
MATRIX = read_matrix(FOUND)
TABLES = runpy.run_path(str(DOCS / "measured_attacks.py"))["TABLES"]
STANDING = (*attack_list.THESIS, *attack_list.OTHERS)
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
    found = judge_rule(read_matrix(read_kept("attacks_five")), "watchful")
    assert found == read_kept("attacks_judged") and found["n_trainings"] == 25 and found["missing"] == []
    assert f"{found['n_near']} of {found['n_cells']} combinations over five seeds" in PAGE
    assert found["attacks_not_run"] == [] and f"under all {len(STANDING)} attacks" in PAGE
    assert found["peace_holds"] and found["near_holds"] and found["worse_holds"]


def test_among_many_clients_the_watchful_server_loses_least_and_wrongs_nobody() -> None:
    found = read_kept("attacks_many")
    matrix = read_matrix(found)
    lowest = {rule: min(mean_losses(matrix, rule)) for rule in matrix.rules}
    assert lowest["watchful"] > -0.02 > -0.16 > lowest["median"] > lowest["mean"]
    told = [row for row in found["cells"] if row["rule"] == "watchful"]
    assert len(told) == 17 and all(set(row["wronged"].values()) == {0.0} for row in told)


def mean_losses(matrix: Matrix, rule: str) -> list[float]:
    """Against plain averaging with nobody malicious: every attack, share and user."""
    return [
        (matrix.mean_test(line, rule, user) or 0.0) - (matrix.peace(user) or 0.0)
        for line in matrix.lines
        for user in matrix.users
    ]


def test_liars_who_know_the_watchful_server_gain_little() -> None:
    matrix = read_matrix(read_kept("attacks_adaptive"))
    assert {line.attack for line in matrix.lines} == {PEACE, *attacks.ADAPTIVE}
    assert round(min(mean_losses(matrix, "watchful")), 3) == -0.014 and "at worst `watchful` is .014 below" in PAGE
    assert min(mean_losses(matrix, "mean")) < -0.2


def test_a_cohort_makes_rules_reckon_with_its_own_liars() -> None:
    """A fifth of ten clients lies, and a fifth of the five that are asked."""
    wanted = attacks.Wanted("tiny", ["median", "krum"], ["sign-flip"], changes={"cohort": 5})
    keys = [(task.changes["n_malicious"], task.changes["assumed_malicious"]) for task in wanted.list_tasks()]
    assert keys == [(2, 1), (2, 1)]


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


def test_in_peace_it_is_the_mean_over_fifty_trainings() -> None:
    peace = json.loads((DOCS / "benchmarks" / "attacks_peace.json").read_text(encoding="utf-8"))
    found = judge_rule(read_matrix(peace), "watchful")
    assert found["n_trainings"] == 50 and found["peace_holds"]


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
