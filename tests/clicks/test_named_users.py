"""The people of the literature by name, and a recipe's own."""

from __future__ import annotations

from typing import Any

import pytest

from hushrank.clicks.cascade import CascadeUser
from hushrank.clicks.named import USERS, cascade_user, named_user, own_user
from hushrank.clicks.position import PositionUser
from hushrank.clicks.table import ClickTable

# [fpdgd, Table 1; thesis, Tables 2.1, 2.2, 5.1]: P(click | grade), P(stop | click, grade), as printed
PUBLISHED = {
    ("perfect", 5): ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    ("perfect", 3): ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
    ("navigational", 5): ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    ("navigational", 3): ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
    ("informational", 5): ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    ("informational", 3): ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
}
OWN: dict[str, Any] = {
    "curious": {"click": [0.5, 0.6, 0.7], "stop": [0.1, 0.1, 0.1]},
    "tired": {"click": [0.1, 0.8, 0.9], "eta": 1.5},
}


@pytest.mark.parametrize(("name", "n_grades"), PUBLISHED)
def test_the_published_tables(name: str, n_grades: int) -> None:
    assert named_user(name, n_grades=n_grades) == CascadeUser(*PUBLISHED[name, n_grades])


@pytest.mark.parametrize("n_grades", [2, 3, 5])
def test_poison_is_perfect_reversed_and_never_stops(n_grades: int) -> None:
    poison, perfect = (cascade_user(name, n_grades) for name in ("poison", "perfect"))
    assert poison == CascadeUser(perfect.click[::-1], (0.0,) * n_grades)


def test_the_tables_of_two_grades() -> None:
    assert named_user("perfect", n_grades=2) == CascadeUser((0.0, 1.0), (0.0, 0.0))
    assert named_user("navigational", n_grades=2) == CascadeUser((0.05, 0.95), (0.2, 0.9))
    assert named_user("informational", n_grades=2) == CascadeUser((0.3, 0.7), (0.1, 0.5))


def test_data_with_four_grades_take_the_table_of_five() -> None:
    assert named_user("perfect", n_grades=4) == named_user("perfect", n_grades=5)
    assert named_user("perfect", n_grades=1) == named_user("perfect", n_grades=2)  # data without a relevant document


def test_position_based_people_click_like_perfect_ones_where_they_look() -> None:
    assert named_user("pbm-0.5", n_grades=3) == PositionUser((0.0, 0.5, 1.0), eta=0.5)
    assert [named_user(name, n_grades=3) for name in USERS if name.startswith("pbm")] == [
        PositionUser((0.0, 0.5, 1.0), eta=eta) for eta in (0.0, 0.5, 1.0, 1.5, 2.0)
    ]


def test_grades_beyond_every_published_table_are_refused() -> None:
    with pytest.raises(ValueError, match=r"grades go up to 5, but the published tables of clicks=perfect end at 4"):
        named_user("perfect", n_grades=6)
    with pytest.raises(ValueError, match=r"give your own table under \[click_tables\]"):
        named_user("pbm-1", n_grades=6)


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"no click model is called 'navigatonal'; did you mean 'navigational'\?"):
        named_user("navigatonal", n_grades=3)
    with pytest.raises(ValueError, match=r"did you mean 'curious'\?"):
        named_user("curius", n_grades=3, own_tables=OWN)
    with pytest.raises(ValueError, match=r"no click model is called 'xyz'; available: perfect, .*pbm-2"):
        named_user("xyz", n_grades=3)


def test_a_recipe_brings_its_own_people() -> None:
    assert named_user("curious", n_grades=3, own_tables=OWN) == CascadeUser((0.5, 0.6, 0.7), (0.1, 0.1, 0.1))
    assert named_user("tired", n_grades=2, own_tables=OWN) == PositionUser((0.1, 0.8, 0.9), eta=1.5)
    renamed = {"perfect": OWN["curious"]}
    assert named_user("perfect", n_grades=3, own_tables=renamed) == CascadeUser(
        (0.5, 0.6, 0.7), (0.1, 0.1, 0.1)
    )  # its own table comes first


def test_own_tables_with_fewer_grades_than_the_data_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"clicks=curious has a table of 3 grades, .* go up to 4: give 5 probabilities"
    ):
        named_user("curious", n_grades=5, own_tables=OWN)


@pytest.mark.parametrize("keys", [("click",), ("stop", "eta"), ("click", "stop", "eta"), ("click", "stop", "look")])
def test_own_tables_with_the_wrong_keys_are_refused(keys: tuple[str, ...]) -> None:
    table = {key: [0.5, 0.5] for key in keys}
    with pytest.raises(ValueError, match=r"the click table 'odd' has \[.*\]; it needs click, and stop .* or eta"):
        own_user("odd", table)


@pytest.mark.parametrize(
    "table",
    [{"click": 0.5, "stop": [0, 0]}, {"click": ["often", "never"], "stop": [0, 0]}, {"click": [0, 1], "eta": [1]}],
)
def test_own_tables_that_hold_no_numbers_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the click table 'odd': click and stop are lists of numbers, eta is one"):
        own_user("odd", table)


def test_own_probabilities_outside_0_to_1_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the click probability of grade 1 is 1\.2, must be from 0 to 1"):
        own_user("odd", {"click": [0.5, 1.2], "stop": [0.0, 0.0]})


def test_one_table_holds_either_kind_of_person() -> None:
    cascade = CascadeUser((0.1, 0.9), (0.2, 0.3)).as_table(3)
    assert cascade == ClickTable(examine=(1.0, 1.0, 1.0), click=(0.1, 0.9), stop=(0.2, 0.3))
    position = PositionUser((0.1, 0.9), eta=1.0).as_table(2)
    assert position == ClickTable(examine=(1.0, 0.5), click=(0.1, 0.9), stop=(0.0, 0.0))
