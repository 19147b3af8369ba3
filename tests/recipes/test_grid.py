"""A grid is many recipes, each checked before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushrank.recipes.files import find_recipe
from hushrank.recipes.grid import expand, find_grid, make_grid, parse_axes, read_grid
from hushrank.recipes.recipe import NAMED

FPDGD = NAMED["fpdgd"]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_every_combination_of_the_axes_the_last_one_fastest() -> None:
    points = expand(make_grid(FPDGD, {"rounds": [1, 2], "server_rate": [1, 10.0]}))
    assert [point.label for point in points] == [
        "rounds=1 server_rate=1",
        "rounds=1 server_rate=10",
        "rounds=2 server_rate=1",
        "rounds=2 server_rate=10",
    ]
    assert [(p.recipe.rounds, p.recipe.server_rate) for p in points] == [(1, 1), (1, 10), (2, 1), (2, 10)]
    assert len({point.directory for point in points}) == 4


def test_cases_are_alternatives_that_are_crossed_with_the_axes(tmp_path: Path) -> None:
    grid = read_grid(
        write(
            tmp_path / "g.toml",
            'recipe = "fpdgd"\nrounds = 3\n[grid]\nn_clients = [5, 6]\n'
            '[[case]]\nserver_optimiser = "adam"\nserver_rate = 0.1\n[[case]]\nserver_rate = 3\n',
        )
    )
    found = [(p.recipe.n_clients, p.recipe.server_optimiser, p.recipe.server_rate) for p in expand(grid)]
    assert found == [(5, "adam", 0.1), (6, "adam", 0.1), (5, "sgd", 3.0), (6, "sgd", 3.0)]
    assert all(point.recipe.rounds == 3 for point in expand(grid))


def test_a_list_of_users_is_one_value_of_an_axis() -> None:
    points = expand(make_grid(FPDGD, {"clicks": ["perfect", ["perfect", "informational"]]}))
    assert [point.recipe.users for point in points] == [("perfect",), ("perfect", "informational")]


def test_axes_from_the_command_line() -> None:
    assert parse_axes(["server_rate=1,10", "server_optimiser=sgd,adam", "folds=[[1], [2, 3]]"]) == {
        "server_rate": [1, 10],
        "server_optimiser": ["sgd", "adam"],
        "folds": [[1], [2, 3]],
    }
    grid = find_grid("fpdgd", axes=parse_axes(["rounds=5,6"]), changes={"n_clients": 7})
    assert [(p.recipe.rounds, p.recipe.n_clients) for p in expand(grid)] == [(5, 7), (6, 7)]


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"server_rat": [1, 2]}, r"no recipe key is called 'server_rat'; did you mean 'server_rate'\?"),
        ({"rounds": 5}, "grid key rounds is 5, must be a list"),
        ({"rounds": []}, r"grid key rounds is \[\], must be a list of one or more"),
        ({"rounds": [1, "many"]}, "rounds is 'many', must be a whole number"),
        ({"rounds": [5, 0]}, "rounds is 0, must be at least 1"),
        ({"rounds": [5, 5]}, "the same recipe twice: rounds=5, and rounds=5"),
        ({"server_rate": [None, 1.0], "server_optimiser": ["sgd"]}, None),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(axes: dict[str, object], said: str | None) -> None:
    if said is None:
        assert len(expand(make_grid(FPDGD, axes))) == 2  # the default and 1 are written differently, so both run
        return
    with pytest.raises(ValueError, match=said):
        make_grid(FPDGD, axes)


def test_a_key_in_the_grid_and_in_a_case_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rounds stands in \[grid\] and in a \[\[case\]\]"):
        make_grid(FPDGD, {"rounds": [1]}, [{"rounds": 2}])


def test_a_grid_file_is_no_recipe_and_a_recipe_varies_nothing(tmp_path: Path) -> None:
    file = write(tmp_path / "g.toml", 'recipe = "fpdgd"\n[grid]\nrounds = [1, 2]\n')
    with pytest.raises(ValueError, match=r"is a grid of recipes: run it with hushrank sweep"):
        find_recipe(str(file))
    with pytest.raises(ValueError, match="fpdgd: nothing to sweep"):
        find_grid("fpdgd", axes={}, changes={})
    with pytest.raises(ValueError, match="write the grid as"):
        read_grid(write(tmp_path / "h.toml", 'recipe = "fpdgd"\ngrid = 5\n'))
    with pytest.raises(ValueError, match="--grid 'rounds' has no '='"):
        parse_axes(["rounds"])
