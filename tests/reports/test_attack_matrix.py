"""The matrix of attacks and rules: what is read, chosen and shown, and what a verdict on a rule is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.attacks import Task, run_task
from benchmarks.attacks_compare import describe, judge_rule, main
from hushrank.aggregation.named import RULES
from hushrank.files import read_json, write_json
from hushrank.keys import key
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.attack_matrix import MatrixLine, read_matrix, write_matrix
from hushrank.types import Combined, Gathered

USERS = ("perfect", "informational")
NOISE = (0.0, 0.001, -0.001, 0.0005, -0.0005)
ABOUT = {"data": "d", "users": list(USERS), "n_clients": 10, "interactions": 5, "rounds": 3, "repeats": 1, "folds": 5}
ABOUT |= {"assumed": 20.0}
LEVELS: dict[tuple[str, float], Mapping[str, float | None]] = {
    ("none", 0): {"mean": 0.7, "krum": 0.68, "bulyan": None, "watchful": 0.7},
    ("lies", 10): {"mean": 0.6, "krum": 0.65, "bulyan": 0.69, "watchful": 0.68},
    ("lies", 20): {"mean": 0.5, "krum": 0.66, "bulyan": None, "watchful": 0.66},
    ("lies", 40): {"mean": 0.3, "krum": 0.6, "bulyan": None, "watchful": 0.1},
}


def row(attack: str, share: float, rule: str, level: float | None) -> dict[str, Any]:
    """Trainings around a level; those of each rule lie otherwise, so that differences have a spread."""
    where = {"attack": attack, "share": share, "rule": rule, "seconds": 1.0}
    if level is None:
        return {**where, "state": "not defined", "why": "too few"}
    turn = len(rule) % 5
    values = {user: [level + noise for noise in NOISE[turn:] + NOISE[:turn]] for user in USERS}
    return {**where, "state": "run", "test": values, "vali": values}


def found(**changes: Mapping[str, float | None]) -> dict[str, Any]:
    levels = {place: {**rules, **changes.get(f"at_{place[1]}", {})} for place, rules in LEVELS.items()}
    cells = [row(*place, rule, level) for place, rules in levels.items() for rule, level in rules.items()]
    return {"format": 1, "about": ABOUT, "when": "2026-01-02T03:04:05+00:00", "cells": cells}


def test_the_best_rule_is_chosen_on_validation_among_those_defined_everywhere() -> None:
    matrix = read_matrix(found())
    ten, twenty = MatrixLine("lies", 10), MatrixLine("lies", 20)
    assert matrix.choose_rule([ten]) == "bulyan"
    assert matrix.choose_rule([ten, twenty]) == "watchful"
    assert matrix.choose_rule([ten, twenty], without=["watchful"]) == "krum"
    other = found()
    best = next(cell for cell in other["cells"] if cell["rule"] == "mean" and cell["share"] == 10)
    best["vali"] = {user: [0.9] * 5 for user in USERS}  # what is tested does not choose
    assert read_matrix(other).choose_rule([ten]) == "mean"


def test_the_page_has_a_map_for_each_user_and_says_what_is_not_defined(tmp_path: Path) -> None:
    broken = found()
    worst = {user: [0.0] * 5 for user in USERS}
    broken["cells"][-1] |= {"state": "diverged", "test": worst, "vali": worst}
    page = write_matrix(broken, tmp_path / "page.html").read_text()
    assert page.count('class="chart heat"') == 2
    assert ">n/d</text>" in page and ">div.</text>" in page and "krum, lies, 20 %: .6600 ± .0008, −.040 against" in page
    assert "1 attack against 4 rules on d." in page and "mean over 5 trainings" in page
    assert len(re.findall(r'class="[a-z0-9-]+ marked"', page)) == len(LEVELS) * len(USERS)  # one rule of every row
    assert "not defined" in page and 'download="attacks.csv"' in page


def test_an_empty_matrix_has_a_page(tmp_path: Path) -> None:
    page = write_matrix({**found(), "cells": []}, tmp_path / "page.html").read_text()
    assert "No cell has been run yet: python -m benchmarks.attacks" in page


def test_parts_of_one_matrix_are_joined_and_other_settings_refused() -> None:
    whole = found()
    parts = [{**whole, "cells": whole["cells"][8:]}, {**whole, "cells": whole["cells"][:8]}]
    assert read_matrix(*parts) == read_matrix(whole)  # peace first, whatever the order
    with pytest.raises(ValueError, match="the files differ in rounds: they are no parts of one matrix"):
        read_matrix(whole, {**whole, "about": {**ABOUT, "rounds": 4}})
    with pytest.raises(ValueError, match="newer hushrank"):
        read_matrix({**whole, "format": 2})


def test_a_rule_near_the_best_of_every_attack_passes() -> None:
    verdict = judge_rule(read_matrix(found()), "watchful")
    assert verdict["peace_holds"] and verdict["near_holds"] and verdict["worse_holds"]
    assert (verdict["n_cells"], verdict["n_near"], verdict["n_trainings"]) == (4, 4, 5)  # 40 % is not judged
    assert {(cell["best"], cell["difference"]) for cell in verdict["cells"]} == {("krum", 0.03), ("krum", 0.0)}


def test_cells_behind_the_chosen_rule_or_the_mean_are_counted_and_listed() -> None:
    behind = judge_rule(read_matrix(found(at_20={"watchful": 0.654})), "watchful")
    assert (behind["n_near"], behind["near_holds"], behind["worse_holds"]) == (2, False, True)
    assert "further from the chosen rule: lies 20 % perfect: −.0060 against krum, +.1540 against mean" in describe(
        behind
    )
    worse = judge_rule(read_matrix(found(at_10={"watchful": 0.59})), "watchful")
    assert worse["n_worse_than_mean"] == worse["n_lower_than_mean"] == 2 and not worse["worse_holds"]
    little = judge_rule(read_matrix(found(at_10={"watchful": 0.5955})), "watchful")
    assert little["worse_holds"]  # worse, but not by more than the margin


def test_peace_is_a_test_of_equality() -> None:
    assert not judge_rule(read_matrix(found(at_0={"watchful": 0.6975})), "watchful")["peace_holds"]
    assert judge_rule(read_matrix(found(at_0={"watchful": 0.6995})), "watchful")["peace_holds"]


def without(*places: tuple[str, float, str]) -> dict[str, Any]:
    whole = found()
    cells = [cell for cell in whole["cells"] if (cell["attack"], cell["share"], cell["rule"]) not in places]
    return {**whole, "cells": cells}


@pytest.mark.parametrize("rule", ["watchful", "mean", "krum"])  # the rule, the reference and the rule that is chosen
def test_what_was_not_run_is_named_and_not_judged(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "part.json"
    write_json(path, without(("lies", 20, rule)))
    verdict = judge_rule(read_matrix(read_json(path)), "watchful")
    assert verdict["near_holds"] is None and verdict["worse_holds"] is None and verdict["peace_holds"]
    assert verdict["missing"] == [{"attack": "lies", "share": 20, "rule": rule}]
    assert main([str(path)]) == 1
    said = capsys.readouterr().out
    assert f"missing: lies 20 % {rule}" in said and said.count("not judged") == 2


def test_attacks_that_were_never_run_are_named_and_the_others_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, some = tmp_path / "some.json", found()
    for cell in some["cells"]:
        cell["attack"] = cell["attack"].replace("lies", "promote")
    write_json(path, some)
    verdict = judge_rule(read_matrix(some), "watchful")
    assert verdict["near_holds"] and verdict["missing"] == [] and len(verdict["attacks_not_run"]) == 18
    assert main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "attack not run, so that nothing is said of it: tailored:full" in said and "of it: promote" not in said


def test_a_rule_that_is_not_defined_under_an_attack_is_not_judged() -> None:
    verdict = judge_rule(read_matrix(found()), "bulyan")
    assert verdict["missing"] == [{"attack": "lies", "share": 20, "rule": "bulyan"}]
    assert verdict["peace_holds"] is None and verdict["near_holds"] is None and verdict["worse_holds"] is None


@pytest.mark.parametrize("rule", ["watchful", "mean"])
def test_peace_is_not_judged_where_one_side_was_not_run(rule: str) -> None:
    verdict = judge_rule(read_matrix(without(("none", 0, rule))), "watchful")
    assert verdict["peace_holds"] is None and verdict["near_holds"] and verdict["worse_holds"]
    assert "(perfect not run; informational not run)" in describe(verdict)


def test_the_command_ends_with_1_where_something_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, out = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "verdict.json"
    write_json(good, found())
    write_json(bad, found(at_20={"watchful": 0.4}))
    assert main([str(good), "--json", str(out)]) == 0 and out.is_file()
    assert main([str(bad)]) == 1
    assert "at least 90% wanted: does not hold" in capsys.readouterr().out


@dataclass(frozen=True, slots=True)
class Exploding:
    """Averages, but steps beyond all numbers where the first number of the first round is above a level."""

    explodes_above: float = key(0.0, "of the first round")

    def __call__(self, gathered: Gathered) -> Combined:
        mean = gathered.updates.mean(axis=0)
        explodes = gathered.memory.get("explodes", np.array(mean[0] > self.explodes_above))
        return Combined(np.full_like(mean, 3e38) if explodes else mean, memory={"explodes": explodes})


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # NumPy warns before the score is refused
def test_only_trainings_that_diverged_count_as_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "exploding", Exploding)
    changes = {"n_clients": 2, "interactions": 1, "rounds": 2, "repeats": 2, "clicks": USERS, "folds": (1, 2)}
    base = change_recipe(NAMED["fpdgd"], {**changes, "data": "tiny", "eval_every": 2})
    some, none, all_of_them = (
        run_task(Task("none", 0.0, "exploding", base, {"aggregation": "exploding", "explodes_above": level}))
        for level in (0.0, 1e9, -1e9)
    )
    values = [(a, b) for user in USERS for a, b in zip(some["test"][user], none["test"][user], strict=True)]
    n_lost = sum(a == 0 for a, _ in values)
    assert some["state"] == none["state"] == "run" and 0 < n_lost < len(values) == 8
    assert some["n_diverged"] == n_lost and all(a in (0, b) for a, b in values)
    assert all_of_them["state"] == "diverged" and all_of_them["vali"] == {user: [0.0] * 4 for user in USERS}
