"""What docs/live.md says was measured follows from the measurements beside it."""

from __future__ import annotations

import json
from typing import Any

from shown_blocks import ROOT

PAGE = " ".join((ROOT / "docs" / "live.md").read_text(encoding="utf-8").split())


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "docs" / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_chaos() -> None:
    found = read("chaos")
    killed = found["killed"]
    assert f"the server died {killed['server']} times and clients {killed['clients']} times" in PAGE
    assert f"all {found['acknowledged']:,} acknowledged updates" in PAGE
    assert f"{found['rounds_abandoned']} rounds ended below their quorum" in PAGE
    assert f"the clients of the {found['not_counted_and_free_again']} answers in them" in PAGE
    assert f"each of the {found['rankers_equal_bit_for_bit'] - 1} rankers" in PAGE
    assert found["acknowledged_lost"] == found["counted_twice"] == 0


def test_load() -> None:
    found = read("live_load")
    load, latency = found["load"], found["load"]["update_latency"]
    assert f"{load['updates_per_second']:,.0f} updates per second ({load['requests_per_second']:,.0f} requests)" in PAGE
    assert f"within {latency['p50_ms']:.0f} ms and 99 of 100 within {latency['p99_ms']:.0f} ms" in PAGE
    assert f"a round of two clients took {found['two_clients']['mean_ms']:.0f} ms" in PAGE
