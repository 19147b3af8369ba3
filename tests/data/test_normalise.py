"""Normalisation: worked by hand, its limits, its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hushrank.data import normalise
from hushrank.data.normalise import normalise_queries, query_minmax
from hushrank.types import QuerySet


def make_set(rows: list[list[float]], lengths: list[int]) -> QuerySet:
    features, starts = np.array(rows, dtype=np.float32), np.concatenate([[0], np.cumsum(lengths)])
    return QuerySet(features, np.zeros(len(rows), np.uint8), starts, tuple(str(i) for i in range(len(lengths))))


def test_minmax_scales_each_query_by_itself() -> None:
    queries = make_set([[2, 5], [4, 5], [3, 5], [10, 1], [20, 3]], [3, 2])
    # First query: (2, 4, 3) -> (x - 2) / 2; the second feature is constant. Second query: both features from 0 to 1.
    expected = [[0, 0], [1, 0], [0.5, 0], [0, 0], [1, 1]]
    assert normalise_queries(queries, "query-minmax").features.tolist() == expected


def test_a_query_of_one_document_becomes_zero() -> None:
    assert normalise_queries(make_set([[7, -3]], [1]), "query-minmax").features.tolist() == [[0, 0]]


def test_standard_uses_mean_and_deviation_of_train() -> None:
    train = make_set([[0, 1], [4, 1]], [2])  # means 2 and 1, deviations 2 and 0
    test = make_set([[6, 9], [2, 1]], [2])
    assert normalise_queries(test, "standard", train=train).features.tolist() == [[2, 0], [0, 0]]
    assert normalise_queries(train, "standard").features.tolist() == [[-1, 0], [1, 0]]


def test_a_constant_that_sums_badly_still_becomes_zero() -> None:
    train = make_set([[0.1]] * 1001, [1001])
    assert not normalise_queries(train, "standard").features.any()


def test_standard_gives_zero_for_features_that_train_lacks() -> None:
    scaled = normalise_queries(make_set([[3, 8], [5, 9]], [2]), "standard", train=make_set([[3], [5]], [2]))
    assert scaled.features.tolist() == [[-1, 0], [1, 0]]


def test_none_returns_the_set_itself() -> None:
    queries = make_set([[1, 2]], [1])
    assert normalise_queries(queries, "none") is queries


def test_an_unknown_normalisation_is_refused() -> None:
    with pytest.raises(ValueError, match="normalise is 'minmax', must be one of none, query-minmax, standard"):
        normalise_queries(make_set([[1]], [1]), "minmax")


def test_the_largest_numbers_do_not_overflow() -> None:
    largest = float(np.finfo(np.float32).max)
    assert normalise_queries(make_set([[-largest], [0], [largest]], [3]), "query-minmax").features[1, 0] == 0.5


@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays(np.float32, (12, 3), elements=st.floats(-100, 100, width=32)),
    st.sampled_from([1, 4, 6]),
    st.sampled_from([0.5, 2, 1024]),
)
def test_minmax_stays_in_bounds_and_ignores_blocks_and_scale(features: np.ndarray, block: int, scale: float) -> None:
    starts = np.array([0, 1, 5, 12])
    scaled = query_minmax(features, starts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalise, "_BLOCK_ROWS", block)
        assert np.array_equal(query_minmax(features, starts), scaled)
    assert scaled.min() >= 0 and scaled.max() <= 1
    assert np.array_equal(query_minmax(features.astype(np.float64) * scale, starts), scaled)
