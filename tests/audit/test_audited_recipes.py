"""Recipes under audit: which claim is compared, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hushrank.audit.audit import AuditOptions, choose_looks
from hushrank.audit.live_recipe import audit_live
from hushrank.audit.recipe import Question, audit_recipe, find_subject
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe

FEW = AuditOptions(runs=2000)
SOUND: dict[str, Any] = {"privacy": "sound", "epsilon": 4.0, "n_clients": 6, "rounds": 3}


def recipe_of(name: str = "fpdgd", **keys: Any) -> Recipe:
    return change_recipe(NAMED[name], keys)


def test_the_claim_is_that_of_the_whole_training_and_of_its_parts() -> None:
    found = audit_recipe(recipe_of(**SOUND), Question(), FEW)
    assert (
        found["claimed_epsilon"] == pytest.approx(4.0, rel=0.002)
        and found["relation"] == "zero-out"
        and found["rounds"] == 3
    )
    claims = [look["claimed_epsilon"] for look in found["looks"]]
    assert [look["rounds"] for look in found["looks"]] == [1, 2, 3] and claims == sorted(claims)
    assert (
        0 < found["lower_bound"] < found["lower_bound_if_normal"] < found["claimed_epsilon"]
        and not found["is_above_claim"]
    )


def test_the_relation_doubles_the_claim_where_the_canary_moves_twice_as_far() -> None:
    one, two = (find_subject(recipe_of(**SOUND), Question(relation)) for relation in ("zero-out", "replace-one"))
    assert two.claim(3) > 1.8 * one.claim(3)


def test_the_same_seed_gives_the_same_audit_and_another_another() -> None:
    options = [AuditOptions(runs=500, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (audit_recipe(recipe_of(**SOUND), Question(), each) for each in options)
    assert first == again and first["counts"] != other["counts"]


def test_one_run_has_a_canary_in_every_client() -> None:
    found = audit_recipe(recipe_of(**{**SOUND, "epsilon": 12.0, "n_clients": 500}), Question(), AuditOptions("one-run"))
    assert found["counts"]["canaries"] == 500 and 0.3 < found["lower_bound"] < found["claimed_epsilon"]


def test_a_reward_is_audited_search_by_search_without_delta() -> None:
    found = audit_recipe(NAMED["foltr-es"], Question(), AuditOptions(runs=50_000))
    assert found["claimed_epsilon"] == pytest.approx(4.4998, abs=1e-3) and found["delta"] is None  # ln(.9 * 10 / .1)
    assert 4.2 < found["lower_bound"] < found["claimed_epsilon"]


def test_one_run_shows_most_of_what_has_no_delta() -> None:
    found = audit_recipe(NAMED["foltr-es"], Question(), AuditOptions("one-run"))
    assert found["counts"]["canaries"] == 2000 and found["lower_bound"] == pytest.approx(3.6, abs=0.05)


def test_published_noise_is_audited_against_its_true_price() -> None:
    found = audit_recipe(recipe_of(privacy="paper", epsilon=1.2, n_clients=4, rounds=1), Question(), FEW)
    assert found["claimed_epsilon"] == pytest.approx(1.2 * 2**0.5, rel=1e-3)  # two numbers, clipped in L2
    assert 0.8 < found["lower_bound"] < found["claimed_epsilon"]


def test_published_noise_does_not_hide_a_client_that_counts_four_times_as_much() -> None:
    """Its price is for equal weights, and says so; the audit shows why it must."""
    keys: dict[str, Any] = {"privacy": "paper", "epsilon": 1.2, "n_clients": 4, "rounds": 1, "interactions": [1, 4]}
    found = audit_recipe(recipe_of(**keys), Question(n_params=1), AuditOptions(runs=50_000))
    assert found["claimed_epsilon"] == pytest.approx(1.2) and found["is_above_claim"] and found["lower_bound"] > 1.5


def test_looks_are_few_and_end_with_all_rounds() -> None:
    assert choose_looks(1) == [1] and choose_looks(3) == [1, 2, 3]
    many = choose_looks(1000)
    assert len(many) <= 9 and many[0] == 1 and many[-1] == 1000


@pytest.mark.parametrize(
    ("keys", "question", "options", "says"),
    [
        ({}, Question(), FEW, "nothing to audit"),
        (SOUND, Question("sideways"), FEW, "adjacency is 'sideways', must be one of"),
        (SOUND, Question(), AuditOptions("one-run", runs=3), "runs is for --estimator runs"),
        ({"privacy": "paper", "epsilon": 1.2}, Question("zero-out"), FEW, "promises something for replace-one only"),
    ],
)
def test_what_cannot_be_audited_says_why(
    keys: dict[str, Any], question: Question, options: AuditOptions, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        audit_recipe(recipe_of(**keys), question, options)


def test_trainings_in_one_place_promise_nothing() -> None:
    with pytest.raises(ValueError, match="recipe pdgd is trained in one place"):
        audit_recipe(NAMED["pdgd"], Question(), FEW)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"estimator": "many"}, "the estimator is 'many', must be one of runs, one-run"),
        ({"confidence": 1.0}, "confidence is 1.0, must be from .5 to below 1"),
        ({"runs": 1}, "runs is 1, must be at least 2"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        AuditOptions(**options)


@pytest.mark.parametrize(
    ("name", "keys", "says"),
    [
        ("fpdgd", {**SOUND, "n_clients": 1000}, "n_clients is 1000, must be from 2 to 50 in a live audit"),
        ("fpdgd", {**SOUND, "cohort": 4}, "every client takes part in every round"),
        ("foltr-es", {}, "a live audit is of updates behind noise"),
        ("fpdgd", {"privacy": "paper", "epsilon": 1.2, "n_clients": 4}, "a live audit is of updates behind noise"),
    ],
)
def test_live_audits_of_what_no_federation_does_are_refused(name: str, keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        audit_live(recipe_of(name, **keys), Question(), FEW)


def test_a_live_server_is_audited_through_the_wire() -> None:
    """200 runs of one round with nearly no noise: told apart as far as so many can show, and no further than the claim.
    (100 of each, half of which choose: 50 of 50 against 0 of 50 is ln(.859 / .141) = 1.81 at 99.9 %.)"""
    shares = list[float]()
    keys: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 0.1, "n_clients": 3, "rounds": 1}
    found = audit_live(recipe_of(**keys), Question(), AuditOptions(runs=100, report=shares.append))
    assert shares[-1] == 1.0 and found["estimator"] == "live"
    counts = found["counts"]
    assert counts["runs_with_canary"] + counts["runs_without_canary"] in (100, 101)
    seen = sorted([counts["events_with_canary"], counts["events_without_canary"]])
    assert seen[0] <= 5 and seen[1] >= 30  # the event was chosen on other runs, and may miss some
    assert 0.1 < found["lower_bound"] < 2.0 < found["claimed_epsilon"]
