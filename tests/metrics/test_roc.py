"""The ROC curve, its area, and how sure one may be of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc, roc_auc_score

from hushrank.metrics.roc import RatedGroup, area_under_roc, find_roc, measure_roc

VALUES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


def interval_of(groups: list[RatedGroup], **options: float) -> tuple[float, float]:
    found = measure_roc(groups, confidence=options.get("confidence", 0.95), seed=int(options.get("seed", 0)))
    assert found.interval is not None
    return found.interval


def test_a_curve_by_hand() -> None:
    """Positives 3, 2, 2 and negatives 2, 1: thresholds 3, 2, 1. Of 6 pairs 4 are won and 2 are ties: 5 / 6."""
    positives, negatives = np.array([3.0, 2.0, 2.0]), np.array([2.0, 1.0])
    roc = find_roc(positives, negatives)
    assert roc.false_alarms.tolist() == [0, 0, 0.5, 1]
    assert roc.found.tolist() == pytest.approx([0, 1 / 3, 1, 1])
    assert area_under_roc(positives, negatives) == pytest.approx(5 / 6)
    assert roc.found_at(0.05) == pytest.approx(1 / 3) and roc.found_at(0.5) == 1


def test_one_false_alarm_in_twenty_is_allowed_at_5_percent() -> None:
    negatives = np.arange(20.0)
    assert find_roc(np.array([18.5]), negatives).found_at() == 1
    assert find_roc(np.array([17.5]), negatives).found_at() == 0


@given(VALUES, VALUES)
def test_the_area_is_that_below_the_curve_and_scikit_learns(positives: list[float], negatives: list[float]) -> None:
    area = area_under_roc(np.array(positives), np.array(negatives))
    roc = find_roc(np.array(positives), np.array(negatives))
    assert auc(roc.false_alarms, roc.found) == pytest.approx(area)
    marks = [1] * len(positives) + [0] * len(negatives)
    assert roc_auc_score(marks, positives + negatives) == pytest.approx(area)


def test_the_interval_holds_chance_for_equal_kinds_and_not_for_others() -> None:
    generator = np.random.default_rng(3)
    equal = [RatedGroup(tuple(generator.normal(size=3)), tuple(generator.normal(size=3))) for _ in range(40)]
    apart = [RatedGroup(tuple(generator.normal(1, size=3)), tuple(generator.normal(size=3))) for _ in range(40)]
    low, high = interval_of(equal)
    assert low < 0.5 < high and high - low < 0.25
    low, high = interval_of(apart)
    assert 0.65 < low < measure_roc(apart).area < high  # Phi(1 / sqrt 2) = .76


def test_values_of_one_group_belong_together() -> None:
    """Ten equal values of a group say no more than one: the interval stays as wide."""
    generator = np.random.default_rng(4)
    pairs = generator.normal(size=(30, 2)).tolist()
    once = measure_roc([RatedGroup((a,), (b,)) for a, b in pairs])
    often = measure_roc([RatedGroup((a,) * 10, (b,) * 10) for a, b in pairs])
    assert once.interval is not None
    assert often.interval == pytest.approx(once.interval) and often.area == pytest.approx(once.area)
    assert (often.n_groups, often.n_positives, often.n_negatives) == (30, 300, 300)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """60 experiments with 40 groups whose values share a group's shift: a coverage of 95 % misses 0 to 8 of them."""
    generator, misses = np.random.default_rng(6), 0
    for _ in range(60):
        shifts = generator.normal(size=(40, 2))
        values = generator.normal(size=(40, 2, 3)) + shifts[..., None]
        low, high = interval_of([RatedGroup(tuple(a), tuple(b)) for a, b in values])
        misses += not low <= 0.5 <= high
    assert misses <= 8


def test_the_interval_repeats_moves_with_its_seed_and_widens_with_confidence() -> None:
    groups = [RatedGroup((float(i % 3),), (float(i * i % 7),)) for i in range(9)]
    usual, narrow = interval_of(groups), interval_of(groups, confidence=0.5)
    assert usual == interval_of(groups) != interval_of(groups, seed=1)
    assert usual[0] < narrow[0] < narrow[1] < usual[1]


def test_where_all_groups_agree_there_is_no_interval() -> None:
    """Two people who are found do not make the test certain."""
    found = measure_roc([RatedGroup((2.0, 3.0), (1.0,)), RatedGroup((4.0,), (0.0,))])
    assert found.area == 1 and found.interval is None


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([RatedGroup((1.0,), (0.0,))], "1 groups came, must be at least 2"),
        ([RatedGroup((1.0,), (0.0,)), RatedGroup((), (0.0,))], "group 1 lacks positives or negatives"),
        ([RatedGroup((1.0,), (float("nan"),))] * 2, "a value of group 0 is not finite"),
    ],
)
def test_values_that_cannot_be_judged_are_refused(groups: list[RatedGroup], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure_roc(groups)
    with pytest.raises(ValueError, match="confidence is 1"):
        measure_roc([RatedGroup((1.0,), (0.0,))] * 2, confidence=1)
