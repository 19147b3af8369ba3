"""The study of why federated training ends below: what it reads from trainings, and what it chooses."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import federated_gap
from hushrank.reproduce.papers import fedps


def training(test: list[float], *, best: int, users: float) -> dict[str, Any]:
    curve = dict(enumerate(test, 1))
    level = {1: users - 0.01, 2: users, 3: users + 0.01}
    return {"best": best, "rounds": len(test), "users": level, "vali/MAP": curve, "offline/MAP": curve}


def test_the_setting_with_the_highest_validation_map_is_chosen() -> None:
    names = list(federated_gap.SETTINGS)
    found = {("central", seed): training([0.5, 0.6], best=2, users=0.6) for seed in federated_gap.SEEDS}
    for place, name in enumerate(names):
        for seed in federated_gap.SEEDS:
            found[name, seed] = training([0.4, 0.5 + 0.01 * (place == 2)], best=2, users=0.59)
    said = federated_gap.describe_htps(found)
    assert said["chosen"] == names[2] and said["chosen_keys"] == federated_gap.SETTINGS[names[2]]
    assert said["margin"] == 0.012 and said["rows"][0]["difference"] == pytest.approx(-0.01)
    assert said["rows"][0]["n_users"] == 6 and said["central"]["test"] == 0.6


def test_a_round_is_chosen_by_short_lists_and_by_long_ones() -> None:
    cells = federated_gap.list_lists()
    found = {place: training([0.3, 0.35, 0.32], best=3, users=0.3) for place in cells}
    row = federated_gap.describe_lists(found)["rows"][2]
    assert (row["model"], row["trained_on"]) == ("hrnn", 20)
    assert (row["flat"]["chosen_by_short"], row["flat"]["chosen_by_50"]) == (0.32, 0.35)
    assert row["flat"]["rounds_by_50"] == [2, 2] and {keys["lists"] for keys in cells.values()} == {
        "n_short=5,",
        "n_short=20,",
    }


def test_the_usual_setting_is_that_of_table_3_and_users_are_of_no_table() -> None:
    every = federated_gap.list_htps()
    usual = every[federated_gap.USUAL, federated_gap.SEEDS[0]]
    assert usual["rounds"] == fedps.ROUNDS["aol"] * fedps.LONGER["htps"] and usual["lists"] == fedps.EQUAL_LISTS
    assert len(every) == (len(federated_gap.SETTINGS) + 1) * len(federated_gap.SEEDS)
    assert min(federated_gap.SEEDS) >= 2000
