"""What distances from made-up documents say about who was in the training set."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.leaks.closeness import compare_distances, find_distances, measure_closeness, measure_sums


def test_the_area_by_hand() -> None:
    """Pairs: 1 < 2, 1 < 4, 2 = 2 (half), 2 < 4, 5 > 2, 5 > 4: 3.5 of 6."""
    assert compare_distances(np.array([1.0, 2.0, 5.0]), np.array([2.0, 4.0])) == pytest.approx(3.5 / 6)


def test_distances_are_those_of_the_nearest_and_equal_documents_are_0_apart() -> None:
    real = np.array([[0.1, 0.2], [0.9, 0.9]])
    assert find_distances(real, np.array([[0.1, 0.2], [0.5, 0.9]])).tolist() == pytest.approx([0, 0.16])
    assert find_distances(real, real).tolist() == [0, 0]


def test_copies_betray_all_and_unrelated_documents_nothing() -> None:
    generator = np.random.default_rng(2)
    members, outsiders, others = (generator.normal(size=(2000, 5)) for _ in range(3))
    copied = measure_closeness(members, members, outsiders)
    assert copied["auc"] == 1 and copied["identical"] == 1 and copied["found"] == 1
    unrelated = measure_closeness(others, members, outsiders)
    assert abs(unrelated["auc"] - 0.5) < 0.03  # standard error .009
    assert abs(unrelated["found"] - unrelated["chance"]) < 0.02 and unrelated["identical"] == 0


def test_a_tenth_of_the_members_copied_is_found() -> None:
    """The area is 1 for them and .5 for the others: .55."""
    generator = np.random.default_rng(4)
    members, outsiders = (generator.normal(size=(3000, 5)) for _ in range(2))
    found = measure_closeness(members[:300], members, outsiders)
    assert abs(found["auc"] - 0.55) < 0.03 and found["identical"] == pytest.approx(0.1)


def test_a_feature_that_never_differs_does_not_count() -> None:
    members, outsiders = np.array([[0.0, 7.0], [1.0, 7.0]]), np.array([[0.5, 7.0]])
    assert np.isfinite(measure_closeness(np.array([[0.0, 7.0]]), members, outsiders)["auc"])


def test_sums_of_few_documents_betray_them_and_of_many_do_not() -> None:
    """With d features and n members, these lie sqrt(d / n) deviations nearer to their own mean than others do."""
    generator = np.random.default_rng(6)
    reference, outsiders = (generator.normal(size=(20_000, 20)) for _ in range(2))
    few, many = (generator.normal(size=(n, 20)) for n in (100, 20_000))
    assert measure_sums(few, reference, outsiders) > 0.58  # Phi(sqrt(.2 / 2)) = .62, standard error .03
    assert abs(measure_sums(many, reference, outsiders) - 0.5) < 0.03  # Phi(sqrt(.002 / 2)) = .51
