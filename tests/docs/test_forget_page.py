"""What docs/howto/forget.md says about ways to forget follows from the kept measurements."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "docs" / "benchmarks"
USERS = ("perfect", "navigational", "informational")
CASES: dict[str, Any] = json.loads((DATA / "forgetting.json").read_text())["cases"]


def quality(case: str, way: str) -> list[float]:
    return [fmean(CASES[case]["ways"][way]["test"][user]) for user in USERS]


@pytest.mark.parametrize("case", CASES)
def test_fresh_takes_no_more_work_than_the_eraser_and_ends_nearer_to_retraining(case: str) -> None:
    fresh, eraser = (CASES[case]["ways"][way] for way in ("fresh", "eraser"))
    assert (fresh["rounds"], fresh["searches"], fresh["bytes"]) == (
        eraser["rounds"],
        eraser["searches"],
        eraser["bytes"],
    )
    assert fresh["distance"]["l2"] < eraser["distance"]["l2"]


def test_fresh_is_better_among_a_thousand_and_never_much_worse() -> None:
    assert all(
        f > e + 0.005 for f, e in zip(*(quality("50 of 1,000", way) for way in ("fresh", "eraser")), strict=True)
    )
    sound = "50 of 1,000, sound, epsilon 4"
    gaps = [f - e for f, e in zip(quality(sound, "fresh"), quality(sound, "eraser"), strict=True)]
    assert min(gaps) > -0.0015 and 0.0085 < max(gaps) < 0.0095
    worst = min(f - e for case in CASES for f, e in zip(quality(case, "fresh"), quality(case, "eraser"), strict=True))
    assert worst > -0.006


def test_a_leaver_who_did_harm_is_forgotten_by_all_but_subtraction() -> None:
    case = "1 of 10, who sent -2 times its ranker"
    for way in ("eraser", "fresh", "continue", "rollback"):
        gaps = zip(quality(case, way), quality(case, "retrain"), quality(case, "before"), strict=True)
        assert all(found - harmed > (goal - harmed) / 2 for found, goal, harmed in gaps)
    assert max(quality(case, "subtract")) < min(quality(case, "retrain")) - 0.01


def test_under_sound_privacy_not_forgetting_is_retraining() -> None:
    case = "50 of 1,000, sound, epsilon 4"
    both = zip(quality(case, "before"), quality(case, "retrain"), strict=True)
    assert all(abs(before - goal) < 0.002 for before, goal in both)
    assert CASES[case]["ways"]["before"]["distance"]["rbo"] > 0.98


def interval(case: str, user: str, way: str) -> tuple[float, float]:
    found = json.loads((DATA / "membership.json").read_text())["cases"][case]["users"][user][way]
    return found["membership/auc_low"], found["membership/auc_high"]


def differs(case: str, user: str, way: str, other: str = "twin") -> tuple[float, float]:
    """The interval of the rounds to relearn, less those of another ranker."""
    found = json.loads((DATA / "membership.json").read_text())["cases"][case]["users"][user][way]
    return found[f"relearning/minus_{other}_low"], found[f"relearning/minus_{other}_high"]


@pytest.mark.parametrize("user", ["perfect", "informational"])
def test_who_was_not_forgotten_or_only_waited_for_is_learnt_again_sooner(user: str) -> None:
    for way in ("not forgotten", "continue"):
        assert differs("5 clients", user, way)[1] < 0
    for way, other in (("eraser", "twin"), ("retrain, another seed", "retrained")):
        low, high = differs("5 clients", user, way, other)
        assert low < 0 < high
    assert differs("5 clients", user, "subtract")[0] > 0
    for way in ("eraser", "subtract"):
        low, high = differs("5 clients, sound, epsilon 4", user, way)
        assert low < 0 < high


@pytest.mark.parametrize("user", ["perfect", "informational"])
def test_the_leaver_is_found_where_it_was_not_forgotten_and_nowhere_else(user: str) -> None:
    for way in ("not forgotten", "continue"):
        assert interval("5 clients", user, way)[0] > 0.5
    for way in ("retrain", "eraser", "fresh", "rollback"):
        low, high = interval("5 clients", user, way)
        assert low < 0.5 < high
    assert interval("5 clients, sound, epsilon 4", user, "not forgotten")[0] < 0.5
