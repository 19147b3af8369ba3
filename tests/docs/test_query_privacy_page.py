"""What docs/howto/query-privacy.md says follows from the code and from the measurements beside it."""

from __future__ import annotations

import json
import runpy
from typing import Any

import pytest
from shown_blocks import ROOT

from hushrank.live.queries.fetch import TIMEOUT_S
from hushrank.live.queries.messages import MOST_ANSWER, MOST_LISTED, SEARCH
from hushrank.live.queries.relay import MOST_AT_ONCE, MOST_PER_ADDRESS
from hushrank.personal.features import N_FEATURES
from hushrank.personal.queries.light import STARTING_WEIGHTS
from hushrank.personal.queries.observed import N_SHARING
from hushrank.privacy.cover_words import MOST_DIFFERENCE, N_TRIES
from hushrank.privacy.covers import LONGEST_PAUSE_S, N_COVERS

KEPT = runpy.run_path(str(ROOT / "docs" / "fedps_kept.py"))
PARTS, COVERS = ("aol-like", "commercial-like"), "cover-queries-cost-nothing"
DATA = ROOT / "docs" / "benchmarks"
PAGE = (ROOT / "docs" / "howto" / "query-privacy.md").read_text(encoding="utf-8")
FOUND: dict[str, Any] = json.loads((DATA / "queries.json").read_text(encoding="utf-8"))
ROWS = {(row["data"], row["method"], row["metric"]): row["ours"] for row in FOUND["table2"]["rows"]}


def test_the_page_names_the_constants_of_the_code() -> None:
    assert (N_COVERS, N_TRIES, N_SHARING, N_FEATURES) == (1, 10, 100, 23)
    assert f"at most {MOST_DIFFERENCE} nats" in PAGE and f"at most {LONGEST_PAUSE_S} s by default" in PAGE
    assert f"POST {SEARCH}" in PAGE and f"too long ({MOST_ANSWER >> 10} KB)" in PAGE and "slower than 10 s" in PAGE
    assert TIMEOUT_S == 10 and set(STARTING_WEIGHTS)


@pytest.mark.parametrize("data", PARTS)
def test_what_the_page_says_of_table_2(data: str) -> None:
    kl, epsilon, map_ = (
        {way: value for (which, way, name), value in ROWS.items() if which == data and name == metric}
        for metric in ("KL-divergence", "KL-divergence/epsilon", "offline/MAP")
    )
    for found in (kl, epsilon):
        baselines = max(found["group-user"], found["cover-query"])
        assert min(found["fedps-flat"], found["fedps-proxy"]) > baselines and found["fedps-proxy"] < found["fedps-flat"]
    assert 0 < kl["fedps-flat"] - kl["no-clicks"] < 0.1 and epsilon["fedps-flat"] < epsilon["no-clicks"]  # covers add
    assert map_["cover-query"] > 0.95 * map_["central"] > map_["group-user"]
    assert abs(map_["fedps-flat"] - map_["central"]) < 0.002  # "none that shows"; that of proxies is assigned
    assert (map_["group-user"] < map_["original-order"]) == (data == "aol-like")
    (finding,) = FOUND["table2"]["findings"]
    assert finding["holds"] and finding["p"] < 0.001


def test_the_page_says_what_of_the_price_of_proxies_is_assigned_and_what_is_measured() -> None:
    assigned = {(row["data"], row["method"], row["metric"]) for row in FOUND["table2"]["rows"] if row["why"]}
    assert assigned == {(data, "fedps-proxy", "offline/MAP") for data in PARTS}
    assert PAGE.count("as central by construction |") == 2 and "next to none" not in PAGE
    aol, commercial = (KEPT["compare_late"](DATA, part, "") for part in PARTS)
    covers = KEPT["compare"](KEPT["find_result"](DATA, PARTS[0], "table3"), COVERS)
    assert max(aol.values()) < covers["aol-like peps cover-query over central"].difference < 0
    assert min(commercial.values()) > 0
    assert "On `aol-like` PEPS pays for FedPS, and more than for CoverQuery" in PAGE


@pytest.mark.parametrize("part", PARTS)
def test_the_price_of_proxies_is_the_same_by_way_of_both_baselines(part: str) -> None:
    """Proxies over GroupUser and over CoverQuery, and each of these less central training: four kept differences."""
    result = KEPT["find_result"](DATA, part, "table3")
    over, open_ = (KEPT["compare"](result, id) for id in ("proxy-above-other-protections", COVERS))
    by_group = over[f"{part} peps fedps-proxy whole over group-user"].difference
    by_group -= open_[f"{part} peps central over group-user"].difference
    found = KEPT["compare_late"](DATA, part, "")
    assert found["fedps-proxy"] == pytest.approx(by_group, abs=2e-4)
    rows = {m: KEPT["find_row"](result, method=m, ranker="peps")["ours"] for m in ("central", "fedps-proxy")}
    assert found["fedps-proxy"] == pytest.approx(rows["fedps-proxy"] - rows["central"], abs=0.005)  # by searches


def test_what_the_relay_adds_is_on_the_page() -> None:
    relay = FOUND["relay_ms"]
    low, high = relay["added_quartiles"]
    assert f"{relay['added_median']:.2f} ms ({low:.2f} to {high:.2f})" in PAGE
    assert relay["added_median"] in relay["added_medians"] and low < relay["added_median"] < high


def test_engines_find_most_queries_behind_one_cover_and_a_trained_one_more_of_them() -> None:
    one = FOUND["guessed"][0]
    assert one["n_covers"] == 1 and one["trained"] > one["right"] > 0.65 and one["trained_without_memory"] > 0.65
    assert "lower bounds" in PAGE


def test_the_page_claims_no_more_than_the_code_does() -> None:
    assert "costs you nothing" not in PAGE and "log is never sent" not in PAGE
    assert f"at most {MOST_AT_ONCE} searches at once, and for {MOST_PER_ADDRESS} of one address" in PAGE
    assert f"always asks for {MOST_LISTED} documents" in PAGE and "pass the relay unchanged" in PAGE
    assert 'covers=None, account="' not in PAGE  # a relay gets no cookie of the engine
