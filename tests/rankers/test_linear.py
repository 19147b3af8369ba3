"""The linear ranker."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.named import named_ranker
from hushrank.streams import draw_normal, seed_key, stream
from hushrank.types import Parameter


def test_a_score_is_an_inner_product() -> None:
    scores = LinearRanker(2).score(np.array([2.0, -1.0]), np.array([[1.0, 0.0], [0.5, 3.0]]))
    assert scores.tolist() == [2 * 1 - 1 * 0, 2 * 0.5 - 1 * 3]


def test_the_gradient_is_the_weighted_sum_of_features() -> None:
    features, weights = np.array([[1.0, 0.0], [0.5, 3.0]]), np.array([2.0, -1.0])
    gradient = LinearRanker(2).score_gradient(np.array([9.0, 9.0]), features, weights)
    assert gradient.tolist() == [2 * 1 - 1 * 0.5, 2 * 0 - 1 * 3]


def test_it_starts_at_zero_with_one_named_part() -> None:
    ranker = LinearRanker(5)
    assert ranker.initial(draw_normal(stream(seed_key(1), 1), 5)).tolist() == [0.0] * 5
    assert ranker.parameters == (Parameter("weights", (5,)),)
    assert named_ranker("linear", n_features=5) == ranker


def test_an_unknown_ranker_is_refused() -> None:
    with pytest.raises(ValueError, match="ranker is 'tree', must be linear or mlp"):
        named_ranker("tree", n_features=3)
