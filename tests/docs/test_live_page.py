"""What docs/live.md says was measured follows from the measurements beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shown_blocks import ROOT

PAGE = " ".join((ROOT / "docs" / "live.md").read_text(encoding="utf-8").split())


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "docs" / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_chaos() -> None:
    runs = read("chaos")["runs"]
    assert [run["method"] for run in runs] == ["fpdgd", "foltr-es"]
    for run in runs:
        assert run["acknowledged_lost"] == run["counted_twice"] == 0
        assert run["rankers_equal_bit_for_bit"] == run["rounds_closed"] + 1 == 301  # and the first ranker
        assert sum(run["killed"].values()) == 200 and run["restored"] == 10
        assert sum(run["clones_stopped_by"].values()) == 6 and sum(run["clock_jumps"].values()) == 20


def test_load() -> None:
    found = read("live_load")
    load, latency = found["load"], found["load"]["update_latency"]
    assert f"{load['updates_per_second']:,.0f} updates per second ({load['requests_per_second']:,.0f} requests)" in PAGE
    assert f"within {latency['p50_ms']:.0f} ms and 99 of 100 within {latency['p99_ms']:.0f} ms" in PAGE
    assert f"a round of two clients took {found['two_clients']['mean_ms']:.0f} ms" in PAGE


def test_load_beside_the_version_before() -> None:
    found = read("live_ratio")
    ratio = found["ratio"]
    assert ratio["median"] >= 1
    assert f"{ratio['median']:.2f} times as many updates per second of the server's processor" in PAGE
    spread = f"half of them between {ratio['quarter']:.2f} and {ratio['three_quarters']:.2f}"
    assert f"(median of {found['turns']} turns; {spread};" in PAGE


def test_soak() -> None:
    load = read("soak")["load"]
    assert f"{load['updates']:,} updates were acknowledged in {load['rounds']:,} rounds" in PAGE
    memory = load["server_memory_mb_over_time"]
    assert (memory[0], memory[-1]) == (73, 74) and max(memory) == 74 and load["seconds"] > 1800


def test_what_is_said_of_the_live_poisoner_was_measured() -> None:
    runs = [row for row in read("live_poison")["runs"] if row["rule"] in ("multi-krum", "detector")]
    assert all(row["rounds"] == 50 and row["refused"] == {} for row in runs) and len(runs) == 20
    seen = {(row["rule"], row["lie"], row["fold"]): row["distrusted"] for row in runs}
    liars = {row["fold"]: row["liar"] for row in runs if (row["rule"], row["lie"]) == ("multi-krum", "sign-flip")}
    for fold, liar in liars.items():
        (named,), (in_peace,) = seen["multi-krum", "sign-flip", fold], seen["multi-krum", "none", fold]
        assert (named["client"], named["low_since"], named["n_low"], in_peace["n_low"]) == (liar, 1, 50, 1)
        assert seen["detector", "sign-flip", fold] == []
    assert "Multi-Krum named the liar in every fold, from the first round on" in PAGE


def test_what_is_said_of_watchful_beside_a_live_poisoner_was_measured() -> None:
    runs = read("live_poison")["runs"]
    for lie, first, last in (("sign-flip", 18, 25), ("poisoned-clicks", 16, 16)):
        attacked = [row for row in runs if (row["rule"], row["lie"]) == ("watchful", lie)]
        assert all(row["named_alone"] for row in attacked) and len(attacked) == 5
        since = [row["distrusted"][0]["low_since"] for row in attacked]
        assert (min(since), max(since)) == (first, last)
        assert f"since {f'a round from {first} to {last}' if first < last else f'round {first}'} (`{lie}`)" in PAGE
    peace = {(row["rule"], row["fold"]): row for row in runs if row["lie"] == "none"}
    for fold in range(1, 6):
        assert peace["watchful", fold]["distrusted"] == []
        assert peace["watchful", fold]["ndcg"] == pytest.approx(peace["mean", fold]["ndcg"], abs=1e-9)
