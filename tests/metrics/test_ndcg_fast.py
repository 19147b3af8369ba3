"""The JAX twin gives the numbers of the plain version."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from hushrank.metrics.ndcg import ideal_dcg, ndcg
from hushrank.metrics.ndcg_fast import shown_ndcg
from hushrank.streams import draw_below, seed_key, stream

WIDTH, N_QUERIES, K = 16, 40, 10


def padded_queries() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grades, mask and ideal DCG of 1 to 16 documents, three times without relevant ones; the padding is rubbish."""
    grades = np.maximum(draw_below(stream(seed_key(7), 1), 10, N_QUERIES * WIDTH) - 5, 0).reshape(N_QUERIES, WIDTH)
    lengths = 1 + draw_below(stream(seed_key(7), 2), WIDTH, N_QUERIES)
    where = np.arange(WIDTH) < lengths[:, None]
    grades[:3] = 0
    ideal = [ideal_dcg(g[w], k=K) for g, w in zip(grades, where, strict=True)]
    return grades.astype(np.uint8), where, np.array(ideal)


def test_shown_lists_equal_the_plain_version_one_by_one() -> None:
    grades, where, ideal = padded_queries()
    fast = shown_ndcg(jnp.asarray(grades[:, :K]), jnp.asarray(where[:, :K]), jnp.asarray(ideal))
    plain = [ndcg(g[:K][w[:K]], g[w], k=K) for g, w in zip(grades, where, strict=True)]
    np.testing.assert_allclose(fast, plain, atol=1e-6)


def test_a_shown_list_by_hand() -> None:
    value = shown_ndcg(jnp.array([2, 0, 1, 4]), jnp.array([True, True, True, False]), jnp.array(7.0))
    assert float(value) == pytest.approx((3 / 1 + 0 + 1 / 2) / 7)


def test_a_query_without_relevant_document_counts_as_zero_online() -> None:
    assert float(shown_ndcg(jnp.array([0, 0]), jnp.array([True, True]), jnp.array(0.0))) == 0.0
