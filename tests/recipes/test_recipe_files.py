"""Recipes in files: flat keys, tables of keys, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from hushrank.keys import keys_of
from hushrank.recipes.files import flatten_tables, list_table, read_recipe
from hushrank.recipes.grid import expand, read_grid
from hushrank.recipes.recipe import KEYS, NAMED, Recipe, change_recipe
from hushrank.recipes.rooms import ROOMS

GROUPED = """
recipe = "fpdgd"
rounds = 3
[data]
name = "tiny"
folds = [1, 2]
[clicks]
users = ["perfect", "own"]
[clicks.tables.own]
click = [0.1, 0.5, 0.9]
eta = 1
[population]
n_clients = 5
[ranker]
name = "mlp"
hidden = 3
[learner]
name = "pdgd"
learning_rate = 1
[aggregation]
rule = "mean"
[server]
optimiser = "adam"
rate = 0.1
[attack]
name = "sign-flip"
n_malicious = 1
"""
FLAT = """
recipe = "fpdgd"
rounds = 3
data = "tiny"
folds = [1, 2]
clicks = ["perfect", "own"]
n_clients = 5
ranker = "mlp"
hidden = 3
learning_rate = 1
server_optimiser = "adam"
server_rate = 0.1
attack = "sign-flip"
n_malicious = 1
[click_tables.own]
click = [0.1, 0.5, 0.9]
eta = 1
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_tables_and_flat_keys_make_the_same_recipe(tmp_path: Path) -> None:
    grouped, flat = (read_recipe(write(tmp_path / f"{i}.toml", text)) for i, text in enumerate((GROUPED, FLAT)))
    assert grouped == flat and grouped.server_optimiser == "adam" and grouped.users == ("perfect", "own")


def test_privacy_in_a_table() -> None:
    values = flatten_tables({"privacy": {"mode": "sound", "epsilon": 1}, "evolution": {"sigma": 0.1}})
    assert values == {"privacy": "sound", "epsilon": 1, "sigma": 0.1}


def test_a_grid_file_may_have_tables(tmp_path: Path) -> None:
    text = 'recipe = "fpdgd"\n[population]\nn_clients = 5\n[server]\nrate = 2\n[grid]\nrounds = [1, 2]\n'
    points = expand(read_grid(write(tmp_path / "g.toml", text)))
    assert [(p.recipe.n_clients, p.recipe.server_rate, p.recipe.rounds) for p in points] == [(5, 2.0, 1), (5, 2.0, 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "n_clients = 5\n[population]\nn_clients = 6",
            r"n_clients is given twice, as n_clients and as n_clients in \[population\]: keep one",
        ),
        (
            "server_rate = 5\n[server]\nrate = 6",
            r"server_rate is given twice, as server_rate and as rate in \[server\]",
        ),
        (
            "[server]\nrate = 6\nserver_rate = 6",
            r"twice, as rate in \[server\] and as server_rate in \[server\]",
        ),
        ("[agregation]\nrule = 'mean'", r"no table of a recipe is called \[agregation\]; did you mean 'aggregation'"),
        ("[aggregation]\nrul = 'mean'", r"no key of the table \[aggregation\] is called 'rul'; did you mean 'rule'"),
        (
            "[aggregation]\nn_clients = 5",
            r"no key of the table \[aggregation\] is called 'n_clients'; known: .*rule",
        ),
        ("[rounds]\nn = 5", r"rounds is {'n': 5}, must be a whole number"),
        ("[aggregation]\nrule = 'mine'\nn_mine = 1", r"aggregation is 'mine'; available: mean"),
        ("[aggregation]\nrule = 'mine'", r"aggregation is 'mine'; available: mean, .*\. Load your own with --plugin\."),
    ],
)
def test_what_stands_in_the_wrong_place_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_recipe(write(tmp_path / "r.toml", f'recipe = "fpdgd"\n{text}\n'))


def test_json_of_something_else_is_refused(tmp_path: Path) -> None:
    for text in ("[]", "{}", '{"format": 1}', "no"):
        with pytest.raises(ValueError, match="is not the recipe of a run"):
            read_recipe(write(tmp_path / "r.json", text))
    with pytest.raises(ValueError, match="no recipe key is called 'more'"):
        read_recipe(write(tmp_path / "r.json", '{"recipe": "fpdgd", "more": 1}'))
    with pytest.raises(ValueError, match="recipe is 'other', must be one of fpdgd, pdgd"):
        read_recipe(write(tmp_path / "r.json", '{"recipe": "other"}'))


def test_every_key_is_declared_by_one_room() -> None:
    of_rooms = [name for room in ROOMS.values() for name in keys_of(room)]
    assert len(set(of_rooms)) == len(of_rooms)
    assert {f.name for f in fields(Recipe)} == {*KEYS, "options"} == {"recipe", *of_rooms, "options"}
    assert all(issubclass(Recipe, room) for room in ROOMS.values())
    assert all(key.help and not key.help.endswith(".") for key in KEYS.values())


def test_no_table_calls_two_keys_the_same() -> None:
    for table, room in ROOMS.items():
        names = [name for declared in keys_of(room).values() for name in {declared.name, declared.alias} - {None}]
        assert len(set(names)) == len(names) and set(list_table(table)) >= set(names)


def test_a_wrong_value_of_a_room_is_refused_in_its_words() -> None:
    with pytest.raises(ValueError, match=r"folds is \[1, 1\], must be different numbers from 1 on"):
        change_recipe(NAMED["fpdgd"], {"folds": [1, 1]})
    with pytest.raises(ValueError, match="seed is -1, must be a whole number from 0 to 2"):
        change_recipe(NAMED["fpdgd"], {"seed": -1})
    with pytest.raises(ValueError, match="max_weight is for learning from a click log"):
        change_recipe(NAMED["fpdgd"], {"max_weight": 1})
    with pytest.raises(ValueError, match=r"clip_norm is 0\.0, must be > 0"):
        change_recipe(NAMED["fpdgd"], {"privacy": "sound", "epsilon": 1, "clip_norm": 0})
