"""How many malicious clients a rule reckons with: the key, its default, and what is refused at the door."""

from __future__ import annotations

import re

import pytest

from hushrank.aggregation.tolerance import NotDefinedError
from hushrank.recipes.checks import rule_of
from hushrank.recipes.recipe import NAMED, Recipe, as_json, change_recipe, hash_recipe
from hushrank.recipes.resolve import resolve_method
from hushrank.runs.notices import notice_rule

PLAIN_RULES = ("krum", "multi-krum", "trimmed-mean", "mixing")


def ten(**changes: object) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {"n_clients": 10, **changes})


def assumed(recipe: Recipe) -> int:
    rule = rule_of(recipe)
    assert rule is not None
    return rule.assumed_malicious


@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_a_rule_reckons_with_as_many_as_there_are_unless_told_otherwise(rule: str) -> None:
    lying = {"aggregation": rule, "attack": "sign-flip", "n_malicious": 3}
    assert assumed(ten(**lying)) == 3
    assert assumed(ten(**lying, assumed_malicious=1)) == 1
    assert assumed(ten(**lying, assumed_malicious=0)) == 0


def test_a_rule_can_be_tried_in_peace() -> None:
    assert assumed(ten(aggregation="krum", assumed_malicious=2)) == 2


@pytest.mark.parametrize(("cohort", "n_malicious", "share"), [(10, 20, 2), (10, 21, 3), (100, 20, 20), (25, 1, 1)])
def test_of_a_sampled_cohort_the_expected_number_is_assumed(cohort: int, n_malicious: int, share: int) -> None:
    lying = {"n_clients": 100, "cohort": cohort, "attack": "sign-flip", "n_malicious": n_malicious}
    assert assumed(ten(aggregation="trimmed-mean", **lying)) == share  # 100 clients: cohort / 100 of the liars, up


def test_settings_of_a_rule_and_what_it_assumes_reach_the_method_together() -> None:
    recipe = ten(aggregation="multi-krum", distance="squared", assumed_malicious=2)
    rule = resolve_method(recipe, n_features=3).rule
    assert rule is not None and rule == rule_of(recipe)
    assert "assumed_malicious=2" in repr(rule.rule) and "'squared'" in repr(rule.rule)


def test_a_recipe_that_leaves_the_key_out_has_the_hash_that_it_had() -> None:
    assert as_json(NAMED["fpdgd"])["assumed_malicious"] is None
    assert hash_recipe(ten(assumed_malicious="none")) == hash_recipe(ten()) != hash_recipe(ten(assumed_malicious=1))


@pytest.mark.parametrize("number", [5, 11, -1])
@pytest.mark.parametrize("rule", ["mean", "median", *PLAIN_RULES])
def test_half_of_the_clients_or_more_is_refused(rule: str, number: int) -> None:
    said = (
        f"assumed_malicious is {number} of 10 clients that are asked in a round, must be at least 0 and fewer than half"
    )
    with pytest.raises(ValueError, match=said):
        ten(aggregation=rule, assumed_malicious=number)


def test_half_of_a_cohort_is_refused_where_a_rule_would_have_to_assume_it() -> None:
    lying = {"attack": "sign-flip", "n_malicious": 4, "cohort": 4}  # 1.6 of the four on average, so two
    with pytest.raises(ValueError, match="Its default is n_malicious"):
        ten(aggregation="krum", **lying)
    assert ten(aggregation="mean", **lying).n_malicious == 4  # the mean assumes nothing
    assert assumed(ten(aggregation="krum", **lying, assumed_malicious=1)) == 1


@pytest.mark.parametrize(
    ("rule", "n", "m", "needed"),
    [("krum", 3, 1, 4), ("multi-krum", 2, 0, 3), ("bulyan", 10, 2, 11), ("bulyan", 2, 0, 3)],
)
def test_too_few_clients_are_not_clamped(rule: str, n: int, m: int, needed: int) -> None:
    said = f"aggregation={rule} is not defined for {n} clients of which {m} are assumed malicious: it needs at least"
    with pytest.raises(NotDefinedError, match=f"{re.escape(said)} {needed}"):
        change_recipe(NAMED["fpdgd"], {"n_clients": n, "aggregation": rule, "assumed_malicious": m})


def test_krum_runs_below_the_number_of_its_theory_with_a_warning() -> None:
    rule = rule_of(ten(aggregation="krum", assumed_malicious=4))  # n - m - 2 = 4, but 2m + 3 = 11
    assert rule is not None and (rule.n_needed, rule.n_proven) == (9, 11)
    (notice,) = notice_rule(rule, n_asked=10)
    assert notice.line.startswith(
        "warning: aggregation=krum is proven to work with 4 malicious clients from 11 clients"
    )
    assert notice_rule(rule, n_asked=11) == []


def test_watchful_among_too_few_clients_to_judge_runs_with_a_warning() -> None:
    rule = rule_of(ten(aggregation="watchful"))
    assert rule is not None and (rule.n_needed, rule.n_proven, rule.n_judged) == (1, 0, 5)
    (notice,) = notice_rule(rule, n_asked=4)
    assert notice.line.startswith(
        "warning: aggregation=watchful judges nobody in a round of fewer than 5 clients; here 4 are asked in a round"
    )
    assert notice_rule(rule, n_asked=5) == []


def test_a_rule_after_mixing_keeps_its_own_needs() -> None:
    few = {"n_clients": 3, "aggregation": "mixing", "assumed_malicious": 1}
    assert rule_of(change_recipe(NAMED["fpdgd"], few)) is not None  # trimmed-mean: 2m + 1 = 3
    with pytest.raises(NotDefinedError, match="it needs at least 4"):
        change_recipe(NAMED["fpdgd"], {**few, "inner_rule": "krum"})  # m + 3


@pytest.mark.parametrize(
    ("rule", "setting", "said"),
    [
        ("krum", {"distance": "manhattan"}, "distance is 'manhattan', must be one of euclidean, squared"),
        ("median", {"distance": "squared"}, "distance is for aggregation=krum or multi-krum or bulyan; here"),
        ("norm-bound", {"norm_bound": 0}, "norm_bound is 0.0, must be > 0"),
        ("norm-bound", {"norm_factor": -1}, "norm_factor is -1.0, must be > 0"),
        ("centred-clipping", {"clip_radius": "inf"}, "clip_radius is 'inf', must be a number"),
        ("centred-clipping", {"clip_steps": 0}, "clip_steps is 0, must be at least 1"),
        ("geometric-median", {"weiszfeld_steps": 0}, "weiszfeld_steps is 0, must be at least 1"),
        ("mixing", {"inner_rule": "detector"}, "inner_rule is 'detector', must be one of trimmed-mean"),
        ("detector", {"detector_window": 0}, "detector_window is 0, must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(rule: str, setting: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ten(aggregation=rule, **setting)
