"""Keys about liars that change nothing are named before a run, and stop none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushrank.recipes.grid import Grid, vary_grid
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.runs.liars import foresee_liars
from hushrank.runs.notices import notice_scores
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.types import Notice


def ten(**changes: object) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {"data": "tiny", "n_clients": 10, **changes})


@pytest.mark.parametrize("rule", ["mean", "median", "watchful", "detector"])
def test_a_number_of_liars_that_the_rule_does_not_ask_for_is_named(rule: str) -> None:
    (notice,) = foresee_liars(ten(aggregation=rule, assumed_malicious=2), n_asked=10)
    assert notice.line.startswith(
        f"warning: assumed_malicious is 2, but aggregation={rule} does not ask how many clients lie: it changes nothing"
    )
    assert "Rules that ask: krum, multi-krum, trimmed-mean, bulyan, mixing." in notice.advice
    assert foresee_liars(ten(aggregation=rule), n_asked=10) == []


@pytest.mark.parametrize("rule", ["krum", "trimmed-mean", "mixing"])
def test_a_rule_that_asks_for_it_is_told_in_silence(rule: str) -> None:
    assert foresee_liars(ten(aggregation=rule, assumed_malicious=0), n_asked=10) == []


def test_a_sweep_over_rules_may_fix_the_number_for_all_of_them() -> None:
    grid = vary_grid(
        Grid(NAMED["fpdgd"]),
        axes={"aggregation": ["mean", "krum"]},
        changes={"n_clients": 10, "assumed_malicious": 2},
        name="fpdgd",
    )
    assert dict(grid.axes)["aggregation"] == ("mean", "krum") and grid.recipe.assumed_malicious == 2


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"attack": "little-is-enough", "n_malicious": 1}, "z is -0.14 for 1 of 10 clients"),
        ({"attack": "little-is-enough", "n_malicious": 1, "knowledge": "full"}, "z is -0.14 for 1 of 10 clients"),
        ({"attack": "little-is-enough", "n_malicious": 2}, "z is 0.00 for 2 of 10 clients"),
        ({"attack": "little-is-enough", "n_malicious": 1, "z": 1.0}, "one malicious client alone knows one update"),
        ({"attack": "min-max", "n_malicious": 1}, "one malicious client alone knows one update"),
        ({"attack": "min-sum", "n_malicious": 1}, "one malicious client alone knows one update"),
        ({"attack": "fang-median", "n_malicious": 1}, "one malicious client alone knows one update"),
    ],
)
def test_an_attack_that_is_as_good_as_honest_is_named(keys: dict[str, object], said: str) -> None:
    (notice,) = foresee_liars(ten(**keys), n_asked=10)
    assert notice.name == "attack-harmless" and said in notice.sentence


@pytest.mark.parametrize(
    "keys",
    [
        {"attack": "little-is-enough", "n_malicious": 3},
        {"attack": "little-is-enough", "n_malicious": 2, "z": 1.0},
        {"attack": "little-is-enough", "n_malicious": 0},
        {"attack": "min-max", "n_malicious": 1, "knowledge": "full"},
        {"attack": "min-max", "n_malicious": 2},
        {"attack": "sign-flip", "n_malicious": 1},
        {"attack": "poisoned-clicks", "n_malicious": 1},
    ],
)
def test_an_attack_that_lies_is_not(keys: dict[str, object]) -> None:
    assert foresee_liars(ten(**keys), n_asked=10) == []


def test_among_those_asked_in_a_round_the_same_liars_may_do_harm() -> None:
    lying = ten(attack="little-is-enough", n_malicious=4, cohort=2, aggregation="mean")
    assert foresee_liars(lying, n_asked=8) == []  # Phi(z) = (8 - 5) / 4
    assert foresee_liars(lying, n_asked=2) == []  # z is far below 0: three standard deviations above the mean


def test_both_are_heard_where_a_run_begins(tmp_path: Path) -> None:
    heard: list[Notice] = []
    idle = {"attack": "little-is-enough", "n_malicious": 1, "assumed_malicious": 1}
    run_recipe(ten(folds=[1], rounds=2, **idle), RunOptions(out=tmp_path / "r", note=heard.append))
    assert [notice.name for notice in heard[:2]] == ["assumed-unused", "attack-harmless"]


def test_scores_that_grow_under_attack_are_first_laid_at_its_door() -> None:
    (lied,), (honest,) = (notice_scores([1.0], 1e30, has_liars=each) for each in (True, False))
    assert lied.advice.startswith("The attack may have done this: compare a run with n_malicious=0")
    assert lied.advice.endswith(f"Otherwise n{honest.advice[1:]}") and "attack" not in honest.advice
