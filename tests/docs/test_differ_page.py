"""What docs/howto/differ.md says in words and draws follows from the measurements and from the partitions."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shown_blocks import ROOT

from hushrank.partitions.alike import IID
from hushrank.partitions.named import PARTITIONS
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.remedies.named import NONE, REMEDIES

DOCS = ROOT / "docs"
PAGE = (DOCS / "howto" / "differ.md").read_text(encoding="utf-8")
FOUND: dict[str, Any] = json.loads((DOCS / "benchmarks" / "differ.json").read_text(encoding="utf-8"))
MEASURED = runpy.run_path(str(DOCS / "measured.py"))
DIFFER = runpy.run_path(str(DOCS / "measured_differ.py"))
USERS = ("perfect", "navigational", "informational")
QUALITY, ONLINE = "personal/nDCG@10", "online/nDCG@10"


def means(setting: str, user: str, metric: str = QUALITY) -> dict[str, float]:
    """{remedy: mean}"""
    row = DIFFER["find_rows"](DOCS / "benchmarks", setting, metric)[user]
    return {remedy: found["mean"] for remedy, found in row["remedies"].items()}


def p(setting: str, user: str, remedy: str) -> float:
    """Against averaging."""
    row = DIFFER["find_rows"](DOCS / "benchmarks", setting)[user]
    return float(row["remedies"][remedy]["p against averaging"])


def gain(setting: str, user: str, remedy: str, metric: str = QUALITY) -> float:
    found = means(setting, user, metric)
    return found[remedy] - found["averaging"]


def test_every_measured_setting_is_on_the_page_once() -> None:
    begins = list(DIFFER["SETTINGS"].values())
    for setting in {row["setting"] for row in FOUND["rows"]}:
        assert sum(setting.startswith(begin) for begin in begins) == 1, setting
    assert all(PAGE.count(f"<!-- measured: {name} -->") == 1 for name in DIFFER["TABLES"])


def test_the_page_names_every_partition_and_runs_every_remedy() -> None:
    assert all(f"`partition={name}`" in PAGE for name in PARTITIONS if name != IID)
    assert all(f"--set remedy={name} " in PAGE for name in REMEDIES if name != NONE)


def test_the_page_says_how_many_lists_of_two_labels_have_both() -> None:
    changes = {"data": "mq2008-like", "partition": "labels-2", "n_clients": 3, "folds": [1]}
    parts = [group.train for group in resolve(change_recipe(NAMED["fpdgd"], changes)).groups_of(0, 0)]
    shares = [np.mean([np.ptp(part.grades[part.rows(q)]) > 0 for q in range(part.n_queries)]) for part in parts]
    first, second, third = (f"{share:.2f}".removeprefix("0") for share in shares)
    assert f"have both: {first}, {second} and {third} of the three clients' lists" in PAGE


def test_the_threat_model_says_what_every_remedy_tells() -> None:
    text = (DOCS / "threat_model.md").read_text(encoding="utf-8")
    table = text.split("| remedy | what else a message says |")[1].split("\n\n")[0]
    named = [line.split("|")[1] for line in table.splitlines()[1:]]
    assert all(any(f"`{name}`" in cell for cell in named) for name in REMEDIES if name != NONE)


def test_a_changed_measurement_changes_its_table_alone(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DOCS / "benchmarks", tmp_path / "benchmarks"))
    changed = json.loads((data / "differ.json").read_text())
    rows = [row for row in changed["rows"] if row["setting"].startswith("network") and row["metric"] == QUALITY]
    rows[0]["remedies"]["fedper"]["mean"] += 0.1
    (data / "differ.json").write_text(json.dumps(changed))
    before, after = (re.split("<!-- measured: ", text) for text in (PAGE, MEASURED["fill_page"](PAGE, data)))
    assert {a.split(" ")[0] for a, b in zip(before, after, strict=True) if a != b} == {
        "differ-network",
        "differ-claims",
    }


def test_a_picture_is_the_skew_that_a_run_measures() -> None:
    for partition in ("intents", "labels-1", "labels-2", "clicks", "quantity"):
        part = PAGE.split(f"<!-- measured: differ-skew-{partition} -->")[1].split("<!-- end -->")[0]
        skew = DIFFER["measure_skew"](partition)
        shown = f"{skew.value:.3f}".removeprefix("0")
        assert f"Skew {shown}: the {skew.measure}." in part and part.count("<svg class=") == 2
        assert all(kind in part for kind, _ in skew.rows)


def test_the_skew_of_intents_does_not_tell_whether_a_taste_carries_over() -> None:
    values = [DIFFER["measure_skew"]("intents", carry=carry).value for carry in (0.0, 0.5, 1.0)]
    assert max(values) - min(values) < 0.003 and round(values[0], 1) == 0.8


def test_four_clients() -> None:
    best = [max(means("four", user).items(), key=lambda item: item[1])[0] for user in USERS]
    assert best == ["tastes", "tastes", "interpolation"]
    assert all(gain("four", user, "tastes") > 0 and p("four", user, "tastes") < 0.05 for user in USERS)
    assert round(gain("four", "navigational", "tastes"), 3) == 0.021 and p("four", "navigational", "local") > 0.05
    settings = ("four", "carry-0-four", "carry-1-four", "other-four")
    apart = [abs(found["local"] - found["ceiling"]) for found in (means(*each) for each in product(settings, USERS))]
    assert max(apart) < 0.01


def test_a_thousand_clients() -> None:
    row = DIFFER["find_rows"](DOCS / "benchmarks", "many")["informational"]["remedies"]
    assert row["tastes"]["closed"] == 0.79
    assert row["local"]["mean"] < row["averaging"]["mean"] > row["interpolation"]["mean"]
    other = DIFFER["find_rows"](DOCS / "benchmarks", "other-many")["informational"]
    assert other["remedies"]["tastes"]["closed"] == 0.45 and other["data_sets"] == 2


def test_what_tastes_should_do_holds_in_these_cases_and_not_in_the_others() -> None:
    lines = [line.strip("|").split(" | ") for line in DIFFER["claims"](DOCS / "benchmarks").splitlines()[2:]]
    verdicts = [line[-1].strip() for line in lines]
    found = {setting: verdicts[3 * i : 3 * i + 3] for i, setting in enumerate(DIFFER["CLAIMED"])}
    never = ["no"] * 3
    assert found == {
        "four": ["yes", "yes", "no"],
        "many": ["yes"] * 3,
        "private": ["yes", "yes", "no"],
        "private-many": ["no", "yes", "no"],
        **dict.fromkeys(("other-four", "other-many", "network", "network-linear"), never),
    }
    for user in USERS:
        assert means("network", user)["tastes"] < means("network", user)["fedper"]
    above = [means("network-linear", user)["tastes"] - means("network", user)["fedper"] for user in USERS]
    assert min(above) > 0.0195 and max(above) < 0.0335


def test_local_training_is_better_for_four_noisy_clients_whose_taste_always_carries_over() -> None:
    row = DIFFER["find_rows"](DOCS / "benchmarks", "carry-1-four")["informational"]["remedies"]
    assert (round(row["tastes"]["mean"], 3), round(row["local"]["mean"], 3)) == (0.549, 0.58)
    assert row["tastes"]["p against local"] < 0.0015
    for user in USERS:
        assert means("carry-1-many", user)["tastes"] > means("carry-1-many", user)["local"]
    costs = [gain(s, user, "tastes") for s, user in product(("carry-0-four", "carry-0-many"), USERS)]
    assert round(min(costs), 3) == -0.024 and max(costs) <= 0


def test_what_shares_of_labels_and_queries_cost_is_what_was_measured_beside_clients_alike() -> None:
    rows = json.loads((DOCS / "benchmarks" / "expelled.json").read_text(encoding="utf-8"))["rows"]
    found = {(row["case"], row["user"]): row["average"] for row in rows if row["labels"] == "everybody's"}
    lost = {
        case: [f"{found['alike', user] - found[f'{case}, 10 clients', user]:.3f}".lstrip("0") for user in USERS]
        for case in ("dirichlet", "queries")
    }
    first, second, third = lost["dirichlet"]
    assert f"Somewhat: {first}, {second} and {third} below clients that are alike" in PAGE
    assert f"Hardly: {min(lost['queries'])} to {max(lost['queries'])} below" in PAGE


def test_noisy_clicks_open_tastes_late() -> None:
    rows = json.loads((DOCS / "benchmarks" / "differ_opening.json").read_text(encoding="utf-8"))["rows"]
    beyond = {row["round"]: round(row["own"] - row["shared"], 4) for row in rows}
    assert list(beyond) == list(range(0, 1001, 100))
    assert all(beyond[n] == 0 for n in range(0, 401, 100)) and [round(beyond[n], 3) for n in (500, 600)] == [-0.001] * 2
    late = [beyond[n] for n in range(700, 1001, 100)]
    assert late == sorted(late) and late[0] > 0


def test_privacy() -> None:
    for user in USERS[:2]:
        for setting, remedy in (("private", "tastes"), ("private", "interpolation"), ("private-many", "tastes")):
            assert gain(setting, user, remedy) > 0 and p(setting, user, remedy) < 0.05
    assert gain("private", "informational", "ceiling") < 0
    assert all(abs(gain(s, "informational", "tastes")) < 0.002 for s in ("private", "private-many"))
    assert all(gain("private-many", user, "ceiling") < 0 for user in USERS)


def test_without_a_taste_that_carries_over_personal_rankers_lose_on_new_queries_and_gain_on_known_ones() -> None:
    for setting, user in product(("carry-0-four", "carry-0-many"), USERS):
        is_closed = (setting, user) == ("carry-0-many", "informational")
        assert gain(setting, user, "local") < 0 and gain(setting, user, "ceiling") < 0
        assert gain(setting, user, "tastes") == 0 if is_closed else gain(setting, user, "tastes") < 0
        online = gain(setting, user, "tastes", ONLINE)
        assert online == 0 if is_closed else online > 0


def test_networks() -> None:
    shown = {
        (setting, remedy): [f"{means(setting, user)[remedy]:.3f}".removeprefix("0") for user in USERS]
        for setting, remedy in (("network", "fedper"), ("network", "tastes"), ("network-linear", "tastes"))
    }
    for first, second, third in shown.values():
        assert f"{first}, {second} and {third}" in PAGE
    for user in USERS:
        found = means("network", user)
        assert max(found.items(), key=lambda item: item[1])[0] == "fedper"
        assert means("network-linear", user)["tastes"] > found["fedper"]


@pytest.mark.parametrize("setting", ["alike-four", "alike-many"])
def test_tastes_cost_nothing_where_clients_are_alike(setting: str) -> None:
    rows = DIFFER["find_rows"](DOCS / "benchmarks", setting)
    assert all(rows[user]["equivalent_within_.002_p"] < 0.05 for user in USERS)
