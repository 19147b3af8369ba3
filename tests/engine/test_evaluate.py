"""Evaluation during training is the plain metric."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from tiny_settings import N_FEATURES, random_queries

from hushrank.clicks.named import cascade_user
from hushrank.engine.evaluate import examine, find_best, prepare_examiner, score_finitely, sort_best
from hushrank.metrics.max_rr import mean_expected_max_rr
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import QuerySet


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


def test_scores_have_the_same_bits_however_many_threads_multiply() -> None:
    """Of a network, whose products several threads divide between them: the last digits would tell how many."""
    features = np.random.default_rng(0).standard_normal((15_000, 46)).astype(np.float32)
    queries = QuerySet(features, np.zeros(15_000, np.uint8), np.array([0, 15_000]), ("1",))
    ranker = MlpRanker(46, 64)
    n_params = 46 * 64 + 64 + 64  # weights, their biases, the output's
    params = np.random.default_rng(1).standard_normal(n_params).astype(np.float32)
    found = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(score_finitely(ranker, params, queries))
            before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
            assert set(before) == {n_threads}  # what was set around it is set again
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


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
