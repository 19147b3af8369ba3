"""What docs/audit.md says in words follows from the measurements beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks.audit import EPSILON, SOUND_ROUNDS, SOUND_RUNS, list_cases
from benchmarks.planted_bugs import BUGS, CLAIM, CONFIDENCE, DELTA, ROUNDS, RUNS

FOUND: dict[str, Any] = json.loads((ROOT / "docs" / "benchmarks" / "audit.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def test_every_sound_setting_was_audited_and_is_below_its_claim() -> None:
    cases = {(keys["mechanism"], keys["noise_at"], keys["adjacency"], sampling) for sampling, keys in list_cases()}
    rows = {
        (row["mechanism"], row["noise_at"], row["relation"], row["sampling"])
        for row in FOUND["sound"]
        if row["privacy"] == "sound"
    }
    assert rows == cases and len(FOUND["sound"]) == len(cases) + 3
    assert all(0 < row["lower_bound"] < row["claimed_epsilon"] and not row["is_above_claim"] for row in FOUND["sound"])


def test_clients_that_take_turns_were_audited() -> None:
    assert [row["relation"] for row in FOUND["turns"]] == ["zero-out", "replace-one"]
    assert all(0.4 < row["lower_bound"] / row["claimed_epsilon"] < 1 for row in FOUND["turns"])
    assert all(row["mechanism"] == "correlated" and row["confidence"] == 0.9995 for row in FOUND["turns"])


def test_the_whole_table_has_the_confidence_that_the_page_states() -> None:
    assert FOUND["confidence"] == 0.999
    assert (1 - FOUND["confidence_each"]) * len(FOUND["sound"]) == pytest.approx(0.001)
    assert {row["confidence"] for row in FOUND["sound"] if "confidence" in row} == {FOUND["confidence_each"]}


def test_every_planted_bug_was_found_as_it_was_fixed_before() -> None:
    planted = FOUND["planted"]
    assert [row["bug"] for row in planted["rows"]] == [bug.name for bug in BUGS] and len(BUGS) == 6
    assert all(
        row["lower_bound"] > row["claimed_epsilon"] and row["claimed_epsilon"] == pytest.approx(CLAIM, 0.002)
        for row in planted["rows"]
    )
    fixed = (planted["rounds"], planted["runs"], planted["delta"], planted["confidence"])
    assert fixed == (ROUNDS, RUNS, DELTA, CONFIDENCE) == (4, 400_000, 1e-5, 0.999)


def test_sizes_in_words_are_those_of_the_benchmark() -> None:
    assert (EPSILON, SOUND_ROUNDS, SOUND_RUNS) == (2.0, 2, 200_000)
    assert "two rounds, 200,000 runs of each federation, noise for epsilon 2" in PAGE
    assert "four rounds and 400,000 runs" in PAGE


def test_how_tight_bounds_are_is_what_the_page_says() -> None:
    rows = FOUND["tightness"]
    million = [row for row in rows if row["estimator"] == "runs" and row["rounds"] == 1]
    assert len(million) == 3 and all(0.5 < row["lower_bound"] / row["claimed_epsilon"] < 0.75 for row in million)
    assert all(row["lower_bound_if_normal"] > 0.9 * row["claimed_epsilon"] for row in million)
    long = [row for row in rows if row["estimator"] == "runs" and row["rounds"] == 50]
    assert {row["runs"] for row in million} == {1_000_000} and {row["runs"] for row in long} == {250_000}
    assert len(long) == 3 and all(0.4 < row["lower_bound"] / row["claimed_epsilon"] < 0.65 for row in long)
    one = {round(row["claimed_epsilon"]): row["lower_bound"] for row in rows if row["estimator"] == "one-run"}
    assert max(one[1], one[2]) < 0.1 and 0.2 < one[4] < 0.6
    nearly = [row for row in FOUND["sound"] if row["mechanism"] == "randomised-response"]
    assert len(nearly) == 1 and nearly[0]["lower_bound"] > 0.9 * nearly[0]["claimed_epsilon"]
