"""Attacks that know all that `watchful` remembers: what they hide, and what the page says they reach."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from seeds import pick_seed
from shown_blocks import ROOT

from benchmarks.white_box import RULES, SHARES, USERS, WAYS, Seen, WhiteBox, hide, main, train, unit
from hushrank.aggregation.watchful import Watchful, find_directions, measure_agreement, recall
from hushrank.streams import seed_key
from hushrank.types import Array, AttackView, Gathered

KEPT: dict[str, Any] = json.loads((ROOT / "docs" / "benchmarks" / "white_box.json").read_text(encoding="utf-8"))
N, P = 10, 8


def test_what_the_rule_would_see_is_taken_out() -> None:
    draws = np.random.default_rng(pick_seed(4))
    way, normal, push = draws.standard_normal((3, P))
    hidden = hide(push, Seen(1, way, normal, push, is_out=False))
    assert abs(hidden @ normal) < 1e-12 and hidden @ hidden == pytest.approx(1)
    assert not unit(np.zeros(P)).any()


@pytest.mark.parametrize("way", ["unseen", "sideways"])
def test_the_rule_finds_that_these_lies_agree_with_nobody_and_oppose_nobody(way: str) -> None:
    draws, attack, memory = np.random.default_rng(pick_seed(5)), WhiteBox(WAYS[way]), dict[str, Array]()
    agreed = []
    for round in range(1, 41):
        honest = np.linspace(0.1, 0.5, P) + draws.standard_normal((N, P))
        view = AttackView(np.zeros(P), round, N, 3, honest[:3], honest[3:])
        updates = np.concatenate([attack(view, key=seed_key(round)), honest[3:]])
        gathered = Gathered(updates, np.ones(N), np.arange(N), np.zeros(P), round, memory)
        cosines = measure_agreement(
            recall(gathered, forget_after=99), np.arange(N), find_directions(updates), np.arange(N)
        )
        agreed.append(np.abs(cosines[:3]).max() if cosines is not None else 0)
        memory = dict(Watchful()(gathered).memory)
    assert max(agreed[10:]) < 1e-6


@pytest.mark.parametrize("way", WAYS)
def test_each_attack_trains(way: str) -> None:
    row = train("tiny", way, "watchful", 30, "perfect", rounds=20)
    assert len(row["test"]) == 5 and 0 <= row["caught"] <= 1


def test_the_command_writes_what_the_page_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["--data", "tiny", "--rounds", "20", "--shares", "30", "--jobs", "1", "--json", str(tmp_path / "a")]) == 0
    )
    found = json.loads((tmp_path / "a").read_text(encoding="utf-8"))
    assert found == json.loads(capsys.readouterr().out) and found.keys() == KEPT.keys()
    assert len(found["rows"]) == len(USERS) * (1 + len(WAYS) * len(RULES))
    assert found["rows"][-1].keys() == KEPT["rows"][-1].keys()


def test_the_page_says_that_no_rule_withstands_them_all() -> None:
    rows = KEPT["rows"]
    assert {(row["attack"], row["share"]) for row in rows} == {("none", 0), *((w, s) for w in WAYS for s in SHARES)}
    lowest = {rule: min(fmean(row["test"]) for row in rows if row["rule"] == rule) for rule in RULES}
    assert lowest["watchful"] < 0.3 and all(value < 0.65 for value in lowest.values())
    page = (ROOT / "docs" / "howto" / "which-rule.md").read_text(encoding="utf-8")
    assert "**Such liars beat `watchful`**" in page and "No rule here withstands all of them" in page
