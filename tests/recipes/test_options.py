"""A registered method may have settings of its own: recipe keys at once, without a change anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hushrank.aggregation.named import RULES
from hushrank.attacks.named import ATTACKS
from hushrank.keys import above_zero, at_least, key, make_method
from hushrank.learners.named import LEARNERS
from hushrank.recipes.files import find_recipe, read_recipe
from hushrank.recipes.grid import expand, find_grid, parse_axes
from hushrank.recipes.options import list_options, options_for
from hushrank.recipes.recipe import NAMED, Recipe, as_json, change_recipe, hash_recipe, recipe_from_json
from hushrank.recipes.values import parse_assignments
from hushrank.reproduce.reproduce import change_trial
from hushrank.reproduce.reproduction import Trial
from hushrank.runs.directory import make_directory, read_recipe_file
from hushrank.types import Array


@dataclass(frozen=True)
class Trim:
    n_trimmed: int = key(1, "left out at each end", check=at_least(0))
    softness: float | None = key(None, "of the edges")

    def __post_init__(self) -> None:
        if self.n_trimmed > 100:
            raise ValueError(f"n_trimmed is {self.n_trimmed}, which leaves nothing.")

    def __call__(self, updates: Array, weights: Array) -> Array:
        raise NotImplementedError  # never called here


@dataclass(frozen=True)
class Loud:
    loudness: float = key(2.0, "how loud", check=above_zero)
    n_trimmed: int = key(0, "that the server is thought to trim")


@dataclass(frozen=True)
class Taken:
    rounds: int = key(1, "a name that every recipe has")


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    registries: list[dict[str, Any]] = [LEARNERS, RULES, ATTACKS]
    before = [dict(registry) for registry in registries]
    RULES.update({"trim": Trim, "trim-too": Trim})
    ATTACKS.update({"loud": Loud})
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)


def trim(**changes: object) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {"aggregation": "trim", **changes})


def test_an_option_is_a_key_like_others() -> None:
    recipe = change_recipe(NAMED["fpdgd"], parse_assignments(["aggregation=trim", "n_trimmed=3", "softness=1"]))
    assert recipe.options == {"n_trimmed": 3, "softness": 1.0}
    values = as_json(recipe)
    assert (values["n_trimmed"], values["softness"]) == (3, 1.0) and "options" not in values
    assert recipe_from_json(values) == recipe
    assert make_method(RULES, recipe.aggregation, options_for(recipe, "aggregation")) == Trim(3, 1.0)


def test_an_option_at_its_default_is_left_out() -> None:
    assert trim(n_trimmed=1) == trim() and "n_trimmed" not in as_json(trim(n_trimmed=1))
    assert hash_recipe(trim(n_trimmed=1)) == hash_recipe(trim()) != hash_recipe(trim(n_trimmed=2))
    taken_back = change_recipe(trim(n_trimmed=2, softness=0.5), parse_assignments(["n_trimmed=none", "softness=none"]))
    assert taken_back == trim()
    assert change_recipe(trim(n_trimmed=2), {"aggregation": "mean", "n_trimmed": "none"}) == NAMED["fpdgd"]
    both = trim(attack="loud", n_malicious=1)  # whose defaults of n_trimmed differ
    assert change_recipe(change_recipe(both, {"n_trimmed": 1}), {"n_trimmed": None}) == both


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_trimmed": 2}, "n_trimmed is for aggregation=trim or trim-too or attack=loud; here aggregation is 'mean'"),
        ({"aggregation": "trim", "loudness": 2}, "loudness is for attack=loud; here attack is None."),
        ({"aggregation": "trim", "n_trimed": 2}, "no recipe key is called 'n_trimed'; did you mean 'n_trimmed'"),
        ({"aggregation": "trim", "n_trimmed": "all"}, "n_trimmed is 'all', must be a whole number"),
        ({"aggregation": "trim", "n_trimmed": -1}, "n_trimmed is -1, must be at least 0"),
        ({"aggregation": "trim", "n_trimmed": 101}, "n_trimmed is 101, which leaves nothing"),
        ({"aggregation": "gone", "n_gone": 2}, "aggregation is 'gone'; available: mean, .*trim, trim-too"),
    ],
)
def test_an_option_that_cannot_be_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        change_recipe(NAMED["fpdgd"], changes)


def test_an_option_of_two_methods_goes_to_both() -> None:
    recipe = trim(attack="loud", n_malicious=1, n_trimmed=0, loudness=3)
    assert options_for(recipe, "aggregation") == {"n_trimmed": 0}
    assert options_for(recipe, "attack") == {"n_trimmed": 0, "loudness": 3.0}
    assert options_for(recipe, "learner") == {}
    assert list_options()["n_trimmed"] == {"aggregation": ["trim", "trim-too"], "attack": ["loud"]}


def test_an_option_may_not_have_the_name_of_a_key() -> None:
    RULES["taken"] = Taken  # type: ignore[assignment]
    with pytest.raises(ValueError, match="aggregation=taken declares rounds, which every recipe has"):
        change_recipe(NAMED["fpdgd"], {"aggregation": "taken"})


def test_options_stand_in_grids_in_tables_and_in_resumed_runs(tmp_path: Path) -> None:
    grid = find_grid("fpdgd", axes=parse_axes(["n_trimmed=1,2"]), changes={"aggregation": "trim"})
    assert [(p.label, dict(p.recipe.options)) for p in expand(grid)] == [
        ("n_trimmed=1", {}),
        ("n_trimmed=2", {"n_trimmed": 2}),
    ]
    file = tmp_path / "r.toml"
    file.write_text('recipe = "fpdgd"\n[aggregation]\nrule = "trim"\nn_trimmed = 2\n')
    assert find_recipe(str(file)) == trim(n_trimmed=2)
    make_directory(tmp_path / "run", trim(n_trimmed=2))
    assert read_recipe_file(tmp_path / "run") == read_recipe(tmp_path / "run" / "recipe.json") == trim(n_trimmed=2)
    with pytest.raises(ValueError, match=r"belongs to another recipe \(n_trimmed was 2, is None"):
        make_directory(tmp_path / "run", trim())


def test_a_method_that_no_plugin_brought_is_told_before_its_options(tmp_path: Path) -> None:
    make_directory(tmp_path / "run", trim(n_trimmed=2))
    del RULES["trim"], RULES["trim-too"], ATTACKS["loud"]
    with pytest.raises(ValueError, match="aggregation is 'trim'; available: mean"):
        read_recipe_file(tmp_path / "run")


def test_a_ranker_from_labels_has_no_options() -> None:
    with pytest.raises(ValueError, match="aggregation is for learning from clicks"):
        change_recipe(NAMED["mse"], {"aggregation": "trim", "n_trimmed": 2})
    trial = Trial({}, NAMED["mse"])
    assert change_trial(trial, {"aggregation": "trim", "n_trimmed": 2, "seed": 3}).seed == 3
