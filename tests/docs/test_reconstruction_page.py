"""The words of docs/reconstruction.md say what its measurements say."""

from __future__ import annotations

import json
from typing import Any

from shown_blocks import ROOT

DOCS = ROOT / "docs"
ROWS: list[dict[str, Any]] = json.loads((DOCS / "benchmarks" / "reconstruction.json").read_text())["rows"]
QUERY, CLICKS, ANYONE = "query_top1_if_learnt", "told_query_f1", "query_of_anyone"


def find(mode: str, metric: str, *, epsilon: Any = None, n: int = 1, ranker: str = "start") -> float:
    (found,) = (
        row[metric]
        for row in ROWS
        if (row["mode"], row["epsilon"], row["interactions"], row["ranker"]) == (mode, epsilon, n, ranker)
    )
    return float(found)


def test_what_does_not_protect() -> None:
    """In every case; three of four; hardly helps, whatever epsilon; the server names every query."""
    assert find("none", QUERY) == find("none", QUERY, ranker="trained") == 1.0 and 0.7 < find("none", QUERY, n=4) < 0.8
    assert all(find("paper", QUERY, epsilon=e) > 0.85 for e in (1.2, 2.3, 4.5, 10.0))
    assert all(find("sound-server", QUERY, epsilon=e) > 0.99 for e in (0.1, 0.25, 0.5, 1.0, 2.0, 4.5, 10.0, "inf"))


def test_what_noise_at_the_clients_does() -> None:
    """Nothing up to epsilon 2, nearly a third at 10; less than a hundredth among 100; F1 .17 at 1 and .53 at 4.5."""
    assert all(find("sound-clients-1000", QUERY, epsilon=e) == 0 for e in (0.1, 0.25, 0.5, 1.0, 2.0))
    assert 0.25 < find("sound-clients-1000", QUERY, epsilon=10.0) < 0.33
    assert find("sound-clients-100", QUERY, epsilon=10.0) < 0.01
    assert [round(find("sound-clients-1000", CLICKS, epsilon=e), 2) for e in (1.0, 4.5)] == [0.17, 0.53]
    assert round(find("sound-clients-1000", f"{CLICKS}_chance", epsilon=1.0), 2) == 0.08


def test_what_sums_hide() -> None:
    """Two of three and three of five, where chance has one of six; at chance with noise."""
    assert 0.6 < find("secure-sum-10", ANYONE) < 0.7 and 0.55 < find("secure-sum-100", ANYONE) < 0.65
    assert 0.15 < find("secure-sum-100", f"{ANYONE}_chance") < 0.2
    for n in (10, 100, 1000):
        assert all(find(f"secure-sum-noise-{n}", QUERY, epsilon=e) < 0.01 for e in (0.1, 1.0, 10.0))


def test_what_rewards_tell() -> None:
    """F1 .89, .79 and .22 of clicks, the query being known; hardly any query."""
    bounds = {1.0: "inf", 0.9: 4.4998, 0.25: 1.204}
    found = [round(find("foltr-es", CLICKS, epsilon=bounds[p], n=2), 2) for p in (1.0, 0.9, 0.25)]
    assert found == [0.89, 0.79, 0.22]
    assert all(find("foltr-es", QUERY, epsilon=bound, n=2) < 0.05 for bound in bounds.values())
