"""What the page says of claims about liars that did not hold is what the kept verdicts say."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from shown_blocks import ROOT

from hushrank.recipes.recipe import change_recipe
from hushrank.reproduce.listing import _RUN_SECONDS, estimate_training
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.named import REPRODUCTIONS
from hushrank.reproduce.reproduction import ReproductionSize, choose_data

KEPT = ROOT / "docs" / "benchmarks" / "chapter5"
_CASE = re.compile(r"\S*-?(?:like|mq2008) (?:linear |mlp )?(\w+) ?([^;:.]*?) ([+-]\d\.\d+) \(p ([\d.e-]+)\)")


def fail(part: str, claim: str) -> list[tuple[str, str]]:
    """(user, case) of every comparison of a verdict's first test that is not significant."""
    findings = json.loads((KEPT / f"{part}.json").read_text(encoding="utf-8"))["findings"]
    (found,) = (finding for finding in findings if finding["claim"].startswith(claim))
    first = found["why"].split("Paired t-tests, not corrected")[0]
    cases = _CASE.findall(first)
    assert len(cases) >= 3
    return [(user, case) for user, case, difference, p in cases if difference[0] == "-" or float(p) >= 0.05]


def test_most_claims_that_are_not_held_fail_among_perfect_users_alone() -> None:
    mslr, mq2007 = "mslr-like-2000.figure5.2", "short-lists-1000.figure5.5"
    assert fail(mslr, "Without a defence") == [("perfect", "0 % over 10 %"), ("perfect", "10 % over 20 %")]
    assert fail("mslr-like-2000-network.figure5.2", "Without a defence") == [("perfect", "0 % over 10 %")]
    assert {user for user, _ in fail(mq2007, "Without a defence")} == {"perfect"}
    assert fail(mslr, "Krum gives a better ranker") == [("perfect", "20 %"), ("perfect", "30 %")]
    assert fail(mslr, "Krum and Multi-Krum withstand") == [("perfect", "krum over trimmed-mean")]
    assert fail("mslr-like-4000.figure5.4", "Without an attack Median") == [("perfect", "0 %")]
    assert [user for user, _ in fail("three-grades-1000.figure5.3", "LIE does less harm")] == ["perfect"]


def test_full_knowledge_adds_nothing_where_partial_knowledge_has_ruined_the_ranker() -> None:
    assert fail("three-grades-1000.figure5.3", "Fang's attack does more harm with full") == [("informational", "20 %")]
    rows = json.loads((KEPT / "three-grades-1000.figure5.3.json").read_text(encoding="utf-8"))["rows"]
    chosen = {"attack": "fang-krum", "n_malicious": 2, "clicks": "informational"}
    ruined = [row["ours"] for row in rows if chosen.items() <= row.items()]
    assert len(ruined) == 2 and max(ruined) < 0.35


def compare_time(part: str) -> float:
    """How many times as long a kept command took as `hushrank reproduce --list` would say on two cores."""
    found = json.loads((KEPT / f"{part}.json").read_text(encoding="utf-8"))
    (choice,) = choose_data(find_result(found["name"]).data, None)
    seconds = 0.0
    for trial in REPRODUCTIONS[found["name"]].trials(choice, ReproductionSize(repeats=5)):
        recipe = change_recipe(trial.recipe, found["changes"])
        if recipe.ranker == found["only"].get("ranker", recipe.ranker):
            n_trainings = len(recipe.users) * 5 * recipe.repeats
            seconds += n_trainings * estimate_training(replace(trial, recipe=recipe)) + _RUN_SECONDS
    return found["seconds"] / (seconds / 2)


def test_rules_and_attacks_come_on_top_of_the_estimate_as_the_page_says() -> None:
    liars, networks = compare_time("mslr-like-2000.figure5.3"), compare_time("mslr-like-2000-network.figure5.2")
    page = " ".join((ROOT / "docs" / "howto" / "reproduce.md").read_text(encoding="utf-8").split())
    assert f"took {liars:.1f} times as long as `--list` says" in page
    assert f"networks under the mean {networks:.1f} times" in page
