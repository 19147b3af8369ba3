"""The box of a report says who learns what, in every mode, with the words that matter."""

from __future__ import annotations

from typing import Any

import pytest

from hushrank.privacy.disclosure import Disclosure
from hushrank.recipes.disclosure import who_learns
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve_method


def learn_about(recipe: str, **changes: Any) -> Disclosure:
    chosen: Recipe = change_recipe(NAMED[recipe], {"rounds": 20, **changes} if recipe != "mse" else changes)
    return who_learns(chosen, resolve_method(chosen, n_features=46))


SOUND = {"privacy": "sound", "epsilon": 1, "n_clients": 50}
ESSENTIAL: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "fpdgd none": (
        {},
        ("No guarantee.", "the server sees every client's update as it is"),
        ("who sent it", "work out queries and clicks", "how many searches"),
    ),
    "fpdgd none, few clients": ({"n_clients": 3}, ("No guarantee.",), ("moved by the mean of 3 clients", "so few")),
    "fpdgd paper": (
        {"privacy": "paper", "epsilon": 4.5},
        ("A weaker promise than the stated epsilon 4.5", "none against the server"),
        ("nearly as open as without noise", "needs L1", "up to 30.52", "every further round spends as much again"),
    ),
    "fpdgd sound": (
        SOUND,
        ("One client's whole history", "all 20 rounds", "epsilon 0.999", "(zero-out, delta 1e-05)", "but the server"),
        (
            "must be trusted",
            "one client's data is replaced by none",
            "Whether the client takes part, and when it is silent, is not hidden",
            "not against the server",
            "an update of zeros says that nothing was learnt",
        ),
    ),
    "fpdgd sound, no noise": (
        {"privacy": "sound", "noise_multiplier": 0},
        ("No guarantee: updates are clipped, but carry no noise",),
        ("without noise, and who sent it",),
    ),
    "fpdgd sound, noise at clients": (
        {**SOUND, "noise_at": "clients", "n_honest": 40},
        ("One client's whole history", "everybody who sees only sums, which the server does not"),
        ("with its share of the noise", "One share hides little", "suggests that nothing was learnt", "40 clients add"),
    ),
    "fpdgd sound, secure sum": (
        {**SOUND, "noise_at": "clients", "n_honest": 40, "secure_sum": True},
        ("everybody, the server included, as long as 40 clients add their noise",),
        ("Who took part, and the sum", "Each of them is masked", "by not following the protocol"),
    ),
    "fpdgd none, secure sum": (
        {"secure_sum": True, "n_clients": 50},
        ("No guarantee in numbers, but nobody sees a single update",),
        ("Each of them is masked", "carries no noise", "mean of 50 clients"),
    ),
    "fpdgd paper, secure sum": (
        {"privacy": "paper", "epsilon": 4.5, "secure_sum": True},
        ("A weaker promise than the stated epsilon 4.5.",),
        ("Each of them is masked", "The published noise is in the sum", "needs L1"),
    ),
    "foltr-es": (
        {"p": 0.9, "interactions": 4},
        ("Each search is protected on the device", "against everybody", "epsilon 4.5", "all 20 rounds spends 360"),
        ("a seed and two mean rewards", "how high the first clicked result stood", "probability 0.9", "who sent them"),
    ),
    "foltr-es p = 1": ({"p": 1}, ("No guarantee: with p = 1 every reward is told as it was",), ("as it was",)),
    "foltr-es one direction": ({"antithetic": False, "reward": "nDCG"}, ("Each search",), ("a mean reward", "(nDCG)")),
    "pdgd": ({}, ("No protection: one learner sees every query, document and click",), ("every click of everybody",)),
    "mse": ({}, ("No protection", "relevance label"), ("the learner", "Nothing bounds")),
}


@pytest.mark.parametrize("case", ESSENTIAL)
def test_the_box_says_the_essential(case: str) -> None:
    changes, promised, told = ESSENTIAL[case]
    found = learn_about(case.split()[0], **changes)
    for words in promised:
        assert words in found.promise
    text = "\n".join(f"{who}: {learns}" for who, learns in found.lines)
    for words in told:
        assert words in text


@pytest.mark.parametrize("case", ESSENTIAL)
def test_every_line_is_a_sentence(case: str) -> None:
    found = learn_about(case.split()[0], **ESSENTIAL[case][0])
    for text in (found.promise, *(learns for _, learns in found.lines)):
        assert text[0].isupper() and text.endswith(".") and ".." not in text and "None" not in text and "  " not in text


def test_only_what_is_promised_is_promised() -> None:
    """No word of protection where there is none; never a word that the server learns nothing."""
    for case, (changes, promised, _) in ESSENTIAL.items():
        found = learn_about(case.split()[0], **changes)
        is_open = promised[0].startswith(("No guarantee", "No protection"))
        assert ("protected" in found.promise) == (not is_open and "paper" not in case), case
        assert "nothing" not in dict(found.lines).get("the server", "").replace("nothing was learnt", "")


def test_a_federation_says_that_it_was_simulated_and_where_its_clicks_came_from() -> None:
    assert "A simulation of people" in dict(learn_about("fpdgd").lines)["this run"]
    assert "from a click log" in dict(learn_about("fpdgd", log="log.jsonl", clicks="log").lines)["this run"]
    assert "this run" not in dict(learn_about("pdgd").lines)
