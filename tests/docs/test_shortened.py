"""The reason of a verdict in short: counted by the claim's own level, and no sentence lost."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

DATA = ROOT / "docs" / "benchmarks"
SHORTEN = runpy.run_path(str(ROOT / "docs" / "measured.py"))["shorten_test"]
KEPT = sorted(path for path in DATA.rglob("*.json") if '"findings"' in path.read_text(encoding="utf-8"))


def test_comparisons_are_counted_by_the_level_that_the_claim_names() -> None:
    pairs = "a +0.0500 (p 0.0015); b +0.0400 (p 0.00034); c +0.0300 (p 0.2)"
    strict, usual = (f"Paired t-tests{at}, corrected: {pairs}." for at in (" at level 0.001", ""))
    words = "Paired t-tests at level .001, corrected: significantly above in 1 of 3 cases"
    assert SHORTEN({"why": strict, "p": 0.2}).startswith(words)
    assert "significantly above in 2 of 3 cases" in SHORTEN({"why": usual, "p": 0.2})


def test_a_sentence_that_begins_with_a_number_is_not_taken_for_a_comparison() -> None:
    equal = "Two one-sided tests within 0.0066: a +0.0100. 3 of 18 trainings were best in their last round."
    assert SHORTEN({"why": equal, "p": 0.2}) == (
        "Two one-sided tests within .0066: 1 difference +.0100, p .20. 3 of 18 trainings were best in their last round."
    )


def test_of_tests_for_equality_it_is_counted_how_many_hold_where_their_p_were_kept() -> None:
    equal = "Two one-sided tests within 0.05: a +0.0100 (p 0.001); b -0.0400 (p 0.3)."
    assert SHORTEN({"why": equal, "p": 0.3}) == (
        "Two one-sided tests within .05: equal in 1 of 2 cases, differences \u2212.0400 to +.0100, p .30."
    )
    lower = "One-sided tests, lower by less than 0.005: a -0.0010 (p 0.01)."
    assert "shown in 1 of 1 case, difference \u2212.0010, p .01" in SHORTEN({"why": lower, "p": 0.01})


def list_findings(found: dict[str, Any]) -> list[dict[str, Any]]:
    return list(found.get("findings", [])) + list(found.get("table2", {}).get("findings", []))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_every_kept_reason_has_as_many_sentences_in_short(path: Path) -> None:
    for claim in list_findings(json.loads(path.read_text(encoding="utf-8"))):
        assert SHORTEN(claim).count(". ") == claim["why"].count(". ")
