"""Evaluation during training is the plain metric."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_settings import N_FEATURES, random_queries

from hushrank.clicks.named import cascade_user
from hushrank.engine.evaluate import examine, prepare_examiner
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
