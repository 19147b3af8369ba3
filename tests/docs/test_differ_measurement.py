"""What benchmarks/differ.py keeps of each data set is what docs/howto/differ.md is made of."""

from __future__ import annotations

import json
import runpy
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t as student
from shown_blocks import ROOT

from benchmarks import differ
from benchmarks.differ import Asked, add_rows, name_setting
from benchmarks.differ_join import join_parts, put_rows
from hushrank.remedies import named

DIFFER = runpy.run_path(str(ROOT / "docs" / "measured_differ.py"))
SMALL = "intent-change-like:n_queries=10,shortest=10,mean_length=12,longest=15,n_features=8,grade_shares=.8/.2"
CHANGED = ["--set", "rounds=10", "--set", "folds=[1]"]


def ask(study: str = "four", data: str = "intent-change-like", carry: float = 0.5, **more: Any) -> Asked:
    return Asked(study, data, carry, more.pop("changes", {}), {}, more.pop("control", False))


def row_of(**remedies: dict[str, float]) -> dict[str, Any]:
    """Of four clients."""
    kept = {remedy.replace("_", "-"): {"values": values} for remedy, values in remedies.items()}
    return {"setting": "four clients; x", "user": "perfect", "metric": "personal/nDCG@10", "remedies": kept}


def test_means_and_tests_follow_from_what_each_data_set_gave() -> None:
    """Over 11, 12 and 13 the gap is .01, .02, .03: mean .02, standard error .01 / sqrt 3, so 3.46 of them."""
    row = row_of(
        averaging={"11": 0.30, "12": 0.31, "13": 0.32, "14": 0.9},
        ceiling={"11": 0.31, "12": 0.33, "13": 0.35},
        tastes={"11": 0.30, "12": 0.32, "13": 0.34},
    )
    found = DIFFER["complete"](row)
    assert found["data_sets"] == 3 and found["remedies"]["averaging"]["mean"] == pytest.approx(0.31)
    assert found["remedies"]["tastes"]["closed"] == pytest.approx(0.5)
    assert found["remedies"]["ceiling"]["p against averaging"] == pytest.approx(2 * student.sf(2 * sqrt(3), 2))
    assert DIFFER["find_gap"](found) == pytest.approx((0.02, 0.01 / sqrt(3)))


@pytest.mark.parametrize(("gaps", "has_gap"), [((0.01, 0.02, 0.03), True), ((-0.01, 0.02, 0.03), False)])
def test_a_share_is_given_of_gaps_above_two_standard_errors(gaps: tuple[float, ...], has_gap: bool) -> None:
    """Of -.01, .02 and .03 the mean is .0133 and the standard error .0120."""
    averaging = {"11": 0.30, "12": 0.31, "13": 0.32}
    ceiling = {one: value + gap for (one, value), gap in zip(averaging.items(), gaps, strict=True)}
    found = DIFFER["complete"](row_of(averaging=averaging, ceiling=ceiling, tastes=averaging))
    assert DIFFER["has_gap"](found) is has_gap
    kept = {name: {key: v for key, v in each.items() if key != "values"} for name, each in found["remedies"].items()}
    assert DIFFER["has_gap"]({**found, "remedies": kept}) is has_gap  # from p, as in older rows
    assert DIFFER["find_gap"]({**found, "remedies": kept}) == pytest.approx(DIFFER["find_gap"](found))


def test_new_values_join_those_that_were_kept_and_replace_rows_without() -> None:
    first, more = row_of(averaging={"11": 0.3}, fedper={"11": 0.4}), row_of(averaging={"12": 0.5})
    (joined,) = add_rows([first], [more])
    assert joined["remedies"] == {"averaging": {"values": {"11": 0.3, "12": 0.5}}, "fedper": {"values": {"11": 0.4}}}
    other, new = {**only_means(1), "user": "informational"}, row_of(averaging={"11": 0.5}, fedper={"11": 0.4})
    assert add_rows([only_means(1), other], [new]) == [new, other]


def only_means(n_sets: int) -> dict[str, Any]:
    """As rows were kept at first."""
    row = row_of(averaging={}, fedper={})
    return {**row, "data_sets": n_sets, "remedies": {name: {"mean": 0.3, "se": 0.1} for name in row["remedies"]}}


@pytest.mark.parametrize("add", [add_rows, put_rows])
@pytest.mark.parametrize(
    ("new", "message"),
    [
        (row_of(averaging={"11": 0.3}), r"averaging, fedper on 2 data sets, new are 1 .* have and not fedper\."),
        (row_of(averaging={"11": 0.3, "12": 0.3}), r"new are 2 that all remedies have and not fedper\. Nothing was"),
        (row_of(averaging={"11": 0.3, "12": 0.3}, fedper={"11": 0.3}), r"new are 1 that all remedies have\. Nothing"),
    ],
)
def test_a_row_is_not_replaced_by_one_with_less(add: Any, new: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        add([only_means(2)], [new])


def test_a_new_remedy_does_not_take_data_sets_from_the_others_of_its_row() -> None:
    kept = row_of(averaging={"11": 0.3, "12": 0.4}, local={"11": 0.3, "12": 0.4})
    with pytest.raises(ValueError, match=r"kept are averaging, local on 2 data sets, new are 1 that all remedies have"):
        add_rows([kept], [row_of(fedper={"11": 0.5})])


def test_nothing_holds_without_a_test_against_averaging_and_local_training() -> None:
    """Of one remedy alone nothing was compared: that is no yes."""
    low, high = {"1": 0.1, "2": 0.2, "3": 0.3}, {"1": 0.4, "2": 0.51, "3": 0.6}
    rows = [row_of(averaging=low, local=low, tastes=high), row_of(averaging=low, tastes=high), row_of(tastes=high)]
    rows = [DIFFER["complete"](row) for row in (*rows, row_of(averaging={"1": 0.1}, local={"1": 0.1}, tastes={"1": 1}))]
    judged = [DIFFER["judge"](row, DIFFER["compare_all"](Path(), "none", "perfect", row)) for row in rows]
    assert judged == ["yes", "not tested", "not tested", "not tested"]
    why = DIFFER["tell_failures"](Path(), "none", "perfect", rows[2])
    assert [each.partition(",")[0] for each in why] == [
        f"not tested against {o}" for o in ("averaging", "local training")
    ]
    assert DIFFER["tell_for_whom"](dict.fromkeys(("perfect", "informational"), "not tested")) == "not tested"
    assert DIFFER["tell_for_whom"]({"informational": "yes"}) == "holds for informational users"


def test_parts_of_a_study_are_joined_over_the_data_sets_that_all_remedies_have() -> None:
    parts = [
        [row_of(averaging={"31": 0.3, "32": 0.4, "33": 0.5}, fedper={"31": 0.1})],
        [row_of(tastes={"32": 0.5, "31": 0.4})],
    ]
    (row,) = join_parts(parts, least=2)
    kept = {"averaging": {"values": {"31": 0.3, "32": 0.4}}, "tastes": {"values": {"31": 0.4, "32": 0.5}}}
    assert row["remedies"] == kept  # FedPer has one data set alone
    assert join_parts(parts, least=3) == []
    other = {**row_of(averaging={"11": 0.9}), "user": "informational"}
    assert put_rows([row_of(averaging={"11": 0.2}), other], [row]) == [row, other]


def test_fedper_s_best_network_is_compared_over_the_data_sets_that_both_have() -> None:
    ours = DIFFER["complete"](row_of(averaging={"1": 0.1, "2": 0.2}, tastes={"1": 0.4, "2": 0.52}))
    theirs = DIFFER["complete"](row_of(averaging={"1": 0.1, "2": 0.2, "3": 0.3}, fedper={"1": 0.3, "2": 0.4, "3": 0.9}))
    difference, found = DIFFER["compare_with"](ours, "fedper", theirs)
    assert difference == pytest.approx(0.11) and found == pytest.approx(2 * student.sf(11, 1))  # .10 and .12


def test_a_row_without_a_data_set_that_all_remedies_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no data set has all of averaging, tastes\. Run the rest\."):
        DIFFER["complete"](row_of(averaging={"11": 0.3}, tastes={"12": 0.3}))


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("four", ask()),
        ("many", ask("many")),
        ("private", ask("private")),
        ("private-many", ask("private", changes={"n_intents": 20})),
        ("other-four", ask(data="intent-change-like:common=0.3,noise=1")),
        ("other-many", ask("many", "intent-change-like:common=0.3,noise=1")),
        ("carry-0-four", ask(carry=0.0)),
        ("carry-1-many", ask("many", carry=1.0)),
        ("network", ask("network")),
        ("network-linear", ask("network", changes={"ranker": "linear"})),
        ("alike-four", ask(control=True)),
        ("alike-many", ask("many", control=True)),
        ("four-long", ask(changes={"rounds": 30_000})),
        ("other-many-long", ask("many", "intent-change-like:common=0.3,noise=1", changes={"rounds": 3000})),
        ("many-network", ask("many", changes={"ranker": "mlp"})),
        ("private-network-3", ask("private", changes={"ranker": "mlp", "server_rate": 3.0})),
    ],
)
def test_a_setting_is_named_as_the_page_looks_for_it(setting: str, asked: Asked) -> None:
    name = name_setting(asked)
    assert [key for key, begin in DIFFER["SETTINGS"].items() if name.startswith(begin)] == [setting]
    changed = Asked(asked.study, asked.data, asked.carry, {**asked.changes, "rounds": 7}, {}, asked.control)
    assert not any(name_setting(changed).startswith(begin) for begin in DIFFER["SETTINGS"].values())
    kept = json.loads((ROOT / "docs" / "benchmarks" / "differ.json").read_text(encoding="utf-8"))["rows"]
    there = {row["setting"].partition(";")[0] for row in kept}
    assert name.partition(";")[0] in there or name.startswith("with ")  # the others were measured from the beginning


def test_the_command_writes_what_the_page_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "REMEDIES", dict(named.REMEDIES))  # it registers a ceiling
    place, out = tmp_path / "differ.json", str(tmp_path / "runs")
    for seeds in ("1,2", "3"):
        shared = ["--data", SMALL, *CHANGED, "--remedies", "averaging,tastes,fedper", "--out", out]
        differ.main([*shared, "--seeds", seeds, "--json", str(place)])
    rows = json.loads(place.read_text())["rows"]
    assert {(row["user"], row["metric"]) for row in rows} == {(u, m) for u in differ.USERS for m in differ.SHOWN}
    found = DIFFER["complete"](rows[0])
    assert found["data_sets"] == 3 and list(found["remedies"]) == ["averaging", "tastes"]  # FedPer needs a network
    assert found["setting"].startswith("with rounds=10, folds=[1]: other data (")


def test_the_opening_of_tastes_is_written_look_by_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "REMEDIES", dict(named.REMEDIES))
    place, small = tmp_path / "opening.json", ["--set", "n_clients=20", "--set", "rounds=10"]
    differ.main(
        ["--study", "opening", "--seeds", "1", "--data", SMALL, *small, "--out", str(tmp_path), "--json", str(place)]
    )
    rows = json.loads(place.read_text())["rows"]
    assert [row["round"] for row in rows] == list(range(11)) and set(rows[0]) == {"round", "own", "shared"}
