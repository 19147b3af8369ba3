"""What the page says of lies about rewards follows from the measurement, and the command that takes it works."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

from shown_blocks import ROOT

from benchmarks.false_rewards import HONEST, LIES, SETTING, USERS, main
from hushrank.metrics.significance import paired_t_test

PAGE = (ROOT / "docs" / "howto" / "which-rule.md").read_text(encoding="utf-8")
FOUND = json.loads((ROOT / "docs" / "benchmarks" / "false_rewards.json").read_text(encoding="utf-8"))
QUALITY = {row["lie"]: row["test"] for row in FOUND["rows"]}


def test_every_lie_was_measured_with_the_setting_of_the_command() -> None:
    assert list(QUALITY) == list(LIES) and {key: FOUND[key] for key in SETTING} == SETTING
    assert all(len(found[user]) == 5 for found in QUALITY.values() for user in USERS)
    assert "with 100 clients, four searches each in 30 rounds, of whom 20 lie" in PAGE


def test_liars_who_choose_their_seeds_did_most_harm_and_swapped_rewards_none_that_shows() -> None:
    means = {lie: [fmean(found[user]) for user in USERS] for lie, found in QUALITY.items()}
    seeds = means.pop("one of 1,000 seeds")
    assert all(seeds[i] < min(each[i] for each in means.values()) for i in range(len(USERS)))
    ps = {lie: [paired_t_test(found[u], QUALITY[HONEST][u]).p for u in USERS] for lie, found in QUALITY.items()}
    perfect, informational = ps["one of 1,000 seeds"]
    assert f"(p {informational:.3f}; perfect users {perfect:.3f})".replace("0.", ".") in PAGE
    assert min(ps["swapped rewards"] + ps["extreme rewards"]) > 0.05 > informational


def test_the_command_writes_a_row_for_every_lie(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    assert main(["--data", "tiny", "--json", str(path), "--rounds", "1", "--clients", "5"]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [row["lie"] for row in found["rows"]] == list(LIES) and found["n_malicious"] == 1
