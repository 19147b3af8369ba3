"""What docs/findings.md says of personalised search follows from the kept results: its numbers, and its words."""

from __future__ import annotations

import json
import re
import runpy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks import late_clients, measured_users
from hushrank.engine.personal_schedule import measured_spans
from hushrank.personal.features import FEATURES, N_FEATURES
from hushrank.personal.population import population_named
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.papers import fedps
from hushrank.reproduce.verdicts import LEVEL

DATA = ROOT / "docs" / "benchmarks"
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Personalised search\n")[2].partition("\n## ")[0]
KEPT = runpy.run_path(str(ROOT / "docs" / "fedps_kept.py"))
SAID = runpy.run_path(str(ROOT / "docs" / "measured_fedps_said.py"))
USERS = json.loads((DATA / "fedps_users.json").read_text(encoding="utf-8"))["rows"]
PARTS = ("aol-like", "commercial-like")


def result(part: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "fedps" / f"{part}.{name}.json").read_text(encoding="utf-8"))
    return found


def claim(part: str, name: str, id: str) -> dict[str, Any]:
    return next(each for each in result(part, name)["findings"] if each["id"] == id)


def test_numbers_that_are_typed_into_the_section_are_those_of_the_code() -> None:
    text = re.sub(r"<!-- measured.*?<!-- end -->", "", SECTION, flags=re.DOTALL)
    assert f"three generated populations of {fedps.N_USERS} users each (seeds 11, 12 and 13)" in text
    assert (fedps.FIRST_SEED, fedps.N_POPULATIONS) == (11, 3)
    central, clients = fedps.WEEK_ROUNDS["central"], fedps.WEEK_ROUNDS["federated"]
    assert f"The rounds of Figure 4, {central} in one place and {clients} on clients" in text
    rounds = (fedps.CENTRAL_ROUNDS, fedps.ROUNDS["aol"], fedps.ROUNDS["commercial"])
    assert "({} in one place; {} on `aol-like` and {} on `commercial-like`".format(*rounds) in text
    assert fedps.LONGER == {"htps": 2} and "twice as many rounds for federated HTPS" in text
    assert f"A linear ranker** of {N_FEATURES} weights" in text and f"level of tests is {LEVEL:.2f}"[-3:] in text
    assert {"reciprocal_rank", "bm25"} <= set(FEATURES)


def test_week_6_of_figure_4_is_the_validation_week_of_table_3() -> None:
    periods = population_named("aol-like:n_users=1,n_documents=100,seed=11").periods
    assert measured_spans(periods, updating="retrain", training=6)["offline"] == (periods.validation, periods.test)
    assert "These are the searches of week 6 in the figure" in SECTION


def test_tests_rest_on_the_users_who_clicked_in_the_test_week() -> None:
    one = next(row for row in USERS if row["data"] == "commercial-like" and row["population"] == 11)
    assert measured_users.count_measured("commercial-like", "", 11, 300) == one
    assert [row["n_measured"] for row in USERS if row["data"] == "commercial-like"] == [181, 190, 186]
    by_lists = [[row["n_measured"] for row in USERS[first : first + 3]] for first in (0, 3)]
    assert by_lists[0] == by_lists[1]  # lists of 10 have the same searches
    assert [(row["data"], row["lists"]) for row in USERS[::3]] == [(k, v.rstrip(",")) for k, v in measured_users.DATA]


@pytest.mark.parametrize("path", sorted((DATA / "fedps").glob("*.json")), ids=lambda path: path.stem)
def test_every_claim_of_the_paper_has_a_finding(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [each.id for each in find_result(found["name"]).findings] == [each["id"] for each in found["findings"]]


def test_growth_is_not_held_where_means_fall_and_retraining_is_above_online_by_tests_of_the_rows() -> None:
    weeks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in result("aol-like", "figure4")["rows"]:
        weeks.setdefault((row["method"], row["updating"]), []).append(row)
    for (method, how), rows in weeks.items():
        if how == "retrain":
            n_up = sum(later["ours"] > row["ours"] for row, later in pairwise(rows))
            grows = claim("aol-like", "figure4", "quality-grows-with-data")
            assert n_up < len(rows) - 1 and not grows["holds"] and f"{method} retrain in {n_up} of 6" in grows["why"]
    retrain, online = (weeks["fedps-flat", how] for how in ("retrain", "online"))
    ps = [7 * KEPT["welch"](*pair) for pair in zip(retrain, online, strict=True)]
    above = claim("aol-like", "figure4", "retraining-above-online")
    assert above["holds"] and above["p"] == pytest.approx(max(ps)) and max(ps) < LEVEL


def test_the_order_of_federated_and_central_training_is_as_the_words_say() -> None:
    compare = KEPT["compare_federated"]
    for place in KEPT["LISTS"]:
        found = {model: compare(DATA, *place, model) for model in KEPT["MODELS"]}
        assert all(value < 0 for value in found["htps"][0].populations)
        within = [abs(each.difference) < margin for each, margin in found.values()]
        assert within == [place != ("aol-like", "")] * 3
        shares = {model: abs(each.difference) / margin for model, (each, margin) in found.items()}
        assert place == ("aol-like", "") or max(shares, key=shares.__getitem__) == "htps"
    peps = compare(DATA, "commercial-like", "", "peps")[0].populations
    assert peps[1] > 0.01 > max(peps[0], peps[2])
    gains = KEPT["gain_over_order"](DATA, "commercial-like", "peps").populations
    assert gains[1] == min(gains)
    assert not any(claim(part, "table3", "federated-equals-central")["holds"] for part in PARTS)
    assert "0 of 9 trainings were best" in claim("commercial-like", "table3", "federated-equals-central")["why"]


def test_the_linear_ranker_has_higher_means_than_every_model_and_knrm_is_below_the_order() -> None:
    light = KEPT["read_light"](DATA)
    for part in PARTS:
        gain = light[part, "central"]["ours"] - light[part, "original-order"]["ours"]
        assert gain > max(KEPT["gain_over_order"](DATA, part, model).by_population for model in KEPT["MODELS"])
        assert KEPT["gain_of_knrm"](DATA, part) < 0
    for part, variant in KEPT["LISTS"]:
        found = result(part, "table3")
        knrm, order = (KEPT["find_row"](found, method=m, variant=variant) for m in ("knrm", "original-order"))
        assert knrm["ours"] < order["ours"] and KEPT["welch"](knrm, order) < LEVEL
        cells = [{"method": "central", "ranker": model, "variant": variant} for model in KEPT["MODELS"]]
        means = [KEPT["find_row"](found, **cell)["ours"] for cell in cells]
        assert means[0] == max(means)  # HRNN


def test_other_words_about_what_is_unlike_the_paper() -> None:
    unlike = SAID["unlike"](DATA)
    protected = {part: KEPT["compare"](result(part, "table3"), "proxy-above-other-protections") for part in PARTS}
    signs = {part: {v.difference > 0 for k, v in each.items() if "over cover" in k} for part, each in protected.items()}
    assert signs == {"aol-like": {False}, "commercial-like": {True}}
    sizes = [row["ours"] for row in result("aol-like", "table4")["rows"] if row["metric"] == "offline/MAP"]
    assert any(later > size for size, later in pairwise(v for v in sizes if v is not None))
    printed = [row["published"] for row in result("aol-like", "table5")["rows"] if row["metric"] == "offline/MAP"]
    assert printed[0] - printed[1] == pytest.approx(0.0021) and "difference of .0021" in unlike
    assert not claim("aol-like", "table3", "cover-queries-cost-nothing")["holds"]
    assert claim("commercial-like", "table3", "cover-queries-cost-nothing")["holds"]
    assert "lists of one length it holds" in claim("aol-like", "table3", "cover-queries-cost-nothing")["why"]


def test_words_about_weeks() -> None:
    weeks = SAID["read_weeks"](DATA)
    longer = json.loads((DATA / "fedps_weeks.json").read_text(encoding="utf-8"))["gains"]
    central, proxy = weeks["central", "retrain"], weeks["fedps-proxy", "retrain"]
    assert central[0] < proxy[0] - 0.05 and longer[0] == pytest.approx(proxy[0], abs=0.005)
    assert all(four < min(two, p) for four, two, p in zip(longer[1:], central[1:], proxy[1:], strict=True))
    retrain, online, on = (weeks["fedps-flat", how] for how in ("retrain", "online", "continue"))
    assert [gain < 0 for gain in online] == [True] * 5 + [False] * 2
    assert all(a > b for a, b in zip(retrain, online, strict=True))
    assert [a > b for a, b in zip(retrain, on, strict=True)] == [False] * 5 + [True] * 2
    assert all(sum(gains[4:]) < sum(gains[1:4]) for (_, how), gains in weeks.items() if how == "retrain")


def test_late_clients_keep_every_users_map() -> None:
    flat = {(14, 0): 0.5, (14, 3): 0.25, (15, 1): 0.75, (15, 2): 0.5}
    proxy = {place: value + 0.01 * place[1] for place, value in flat.items()}
    found = late_clients.compare(flat, proxy)
    assert found["users"]["14"] == {"flat": [0.5, 0.25], "proxy": [0.5, 0.28]}
    assert found["difference"] == pytest.approx(0.015) and found["n_users"] == 4  # (0 + .03 + .01 + .02) / 4
