"""Evaluation during training is the plain metric."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_settings import N_FEATURES, random_queries

from hushrank.clicks.named import cascade_user
from hushrank.engine.evaluate import examine, find_best, prepare_examiner, sort_best
from hushrank.metrics.max_rr import mean_expected_max_rr
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.rankers.linear import LinearRanker


@pytest.mark.parametrize("scale", [0.0, 1.0, -3.0])
def test_the_vectorised_evaluation_equals_the_plain_one_also_with_ties(scale: float) -> None:
    queries, ranker = random_queries(11), LinearRanker(N_FEATURES)
    params = (scale * np.linspace(-1, 1, N_FEATURES)).astype(np.float32)
    scores = ranker.score(params, queries.features)
    table = cascade_user("informational", 3).as_table(10)
    found = examine(prepare_examiner(queries), ranker, params, table)
    assert found.ndcg == pytest.approx(mean_ndcg(queries, scores).value, abs=1e-12)
    assert found.max_rr == pytest.approx(mean_expected_max_rr(queries, scores, table).value, abs=1e-12)


def test_without_a_click_table_no_max_rr_is_expected() -> None:
    queries, ranker = random_queries(11), LinearRanker(N_FEATURES)
    assert np.isnan(examine(prepare_examiner(queries), ranker, np.zeros(N_FEATURES, np.float32)).max_rr)


def test_diverged_parameters_are_named() -> None:
    queries, ranker = random_queries(11), LinearRanker(N_FEATURES)
    with pytest.raises(ValueError, match=r"training diverged. Try a smaller learning_rate"):
        examine(prepare_examiner(queries), ranker, np.full(N_FEATURES, np.nan, np.float32))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 10, 40])
def test_the_best_are_found_as_by_sorting_all_with_ties_in_the_order_of_the_file(k: int, kind: type) -> None:
    generator = np.random.default_rng(k)
    starts = np.concatenate([[0], np.cumsum(generator.integers(1, 60, 300))])
    scores = generator.integers(-3, 40, starts[-1]).astype(kind)
    scores[scores == 0] = -0.0  # equal to 0
    scores[::7] = np.abs(scores[::7])
    found = find_best(scores, starts, k)
    np.testing.assert_array_equal(found, sort_best(scores, starts, k))
    last = range(starts[-2], starts[-1])
    assert found[-1, : len(last)].tolist() == sorted(last, key=lambda d: -scores[d])[:k]
