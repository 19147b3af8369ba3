"""t-tests by hand and against scipy.stats."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hushrank.metrics.significance import bonferroni, equivalence_test, independent_t_test, paired_t_test

OURS, THEIRS = [0.71, 0.70, 0.73, 0.69, 0.72], [0.70, 0.70, 0.70, 0.68, 0.70]
results = st.lists(st.integers(0, 1000).map(lambda i: i / 1000), min_size=3, max_size=12)


def test_paired_test_by_hand() -> None:
    # differences 1, 0, 3, 1, 2: mean 1.4, variance (.16 + 1.96 + 2.56 + .16 + .36) / 4 = 1.3, error sqrt(1.3 / 5)
    found = paired_t_test([1.0, 0.0, 3.0, 1.0, 2.0], [0.0] * 5)
    assert found.mean_difference == pytest.approx(1.4) and found.n == 5
    assert found.statistic == pytest.approx(1.4 / sqrt(1.3 / 5))
    reach = 2.776445 * sqrt(1.3 / 5)  # 97.5 % point of t with 4 degrees of freedom, from any printed table
    assert found.interval == pytest.approx((1.4 - reach, 1.4 + reach), abs=1e-6)


def test_paired_test_equals_scipy() -> None:
    found, theirs = paired_t_test(OURS, THEIRS), stats.ttest_rel(OURS, THEIRS)
    assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)))


@pytest.mark.parametrize("equal_variance", [False, True])
def test_independent_test_equals_scipy_also_for_unequal_numbers(equal_variance: bool) -> None:
    found = independent_t_test(OURS, THEIRS[2:], equal_variance=equal_variance)
    theirs = stats.ttest_ind(OURS, THEIRS[2:], equal_var=equal_variance)
    assert (found.statistic, found.p, found.degrees_of_freedom) == pytest.approx(
        (theirs.statistic, theirs.pvalue, theirs.df)
    )
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)))


def test_equivalence_takes_the_larger_of_two_one_sided_tests() -> None:
    found = equivalence_test(OURS, THEIRS, margin=0.03)
    differences = np.subtract(OURS, THEIRS)
    above = stats.ttest_1samp(differences, -0.03, alternative="greater")
    below = stats.ttest_1samp(differences, 0.03, alternative="less")
    assert found.p == pytest.approx(max(above.pvalue, below.pvalue))
    assert found.statistic == pytest.approx(below.statistic) and found.margin == 0.03


@given(results, results, st.sampled_from([0.01, 0.05, 0.2]))
def test_equivalent_at_5_percent_exactly_when_the_90_percent_interval_is_inside_the_margin(
    a: list[float], b: list[float], margin: float
) -> None:
    n = min(len(a), len(b))
    found = equivalence_test(a[:n], b[:n], margin=margin)
    inside = -margin < found.interval[0] and found.interval[1] < margin
    assert inside == (found.p < 0.05) or found.p == pytest.approx(0.05)


@given(results, results)
def test_swapping_the_sides_changes_only_the_sign(a: list[float], b: list[float]) -> None:
    n = min(len(a), len(b))
    one, other = paired_t_test(a[:n], b[:n]), paired_t_test(b[:n], a[:n])
    assert one.p == other.p and one.mean_difference == -other.mean_difference


def test_results_without_spread_are_either_equal_or_surely_different() -> None:
    same = paired_t_test([0.5, 0.25], [0.5, 0.25])
    assert (same.statistic, same.p, same.interval) == (0.0, 1.0, (0.0, 0.0))
    shifted = paired_t_test([1.5, 1.25], [0.5, 0.25])
    assert (shifted.statistic, shifted.p) == (inf, 0.0)
    assert independent_t_test([1.0, 1.0], [1.0, 1.0]).p == 1.0


def test_bonferroni_multiplies_by_the_number_of_tests() -> None:
    assert bonferroni([0.01, 0.5, 0.2]) == pytest.approx((0.03, 1.0, 0.6))
    assert bonferroni([0.01], n_tests=12) == pytest.approx((0.12,))


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="same folds and repeats"):
        paired_t_test([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="at least two"):
        paired_t_test([1.0], [1.0])
    with pytest.raises(ValueError, match="margin is 0"):
        equivalence_test(OURS, THEIRS, margin=0)
    with pytest.raises(ValueError, match="not finite"):
        paired_t_test([1.0, float("nan")], [1.0, 2.0])
    for confidence in (95, 1.0, 0.0, -0.95):
        with pytest.raises(ValueError, match=f"confidence is {confidence}, must be between 0 and 1"):
            paired_t_test(OURS, THEIRS, confidence=confidence)
    with pytest.raises(ValueError, match="n_tests is 1"):
        bonferroni([0.1, 0.2], n_tests=1)
