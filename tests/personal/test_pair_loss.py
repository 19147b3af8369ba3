"""LambdaRank pairs with average precision: plain and fast."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.personal import loss, loss_fast

FAST = jax.jit(jax.value_and_grad(loss_fast.pair_loss))


def test_the_weight_of_a_pair_by_hand() -> None:
    weights = loss.weigh_pairs(np.array([False, True, True]))
    # AP is (1/2 + 2/3) / 2. Swapping the first two gives (1 + 2/3) / 2, the first and the last (1 + 1) / 2.
    assert weights[1, 0] == pytest.approx(((1 + 2 / 3) - (1 / 2 + 2 / 3)) / 2)
    assert weights[2, 0] == pytest.approx(((1 + 1) - (1 / 2 + 2 / 3)) / 2)
    assert np.count_nonzero(weights) == 2


def test_the_loss_of_one_pair_by_hand() -> None:
    total, gradient = loss.pair_loss(np.array([[0.0, 1.0]]), np.array([[False, True]]), np.ones((1, 2), bool))
    assert total == pytest.approx(0.5 * np.log(1 + np.exp(-1.0)))  # a swap changes AP from 1/2 to 1
    assert gradient[0].tolist() == pytest.approx([0.5 / (1 + np.e), -0.5 / (1 + np.e)])


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 2**8 - 1)), min_size=3, max_size=3), st.integers(0, 99))
def test_plain_and_fast_agree_on_padded_lists(lists: list[tuple[int, int]], seed: int) -> None:
    is_document = np.arange(8) < np.array([[n] for n, _ in lists])
    is_clicked = is_document & np.array([[mark >> place & 1 for place in range(8)] for _, mark in lists], bool)
    scores = np.random.default_rng(seed).normal(size=(3, 8)).astype(np.float32)
    total, gradient = loss.pair_loss(scores, is_clicked, is_document)
    fast_total, fast_gradient = FAST(scores, is_clicked, is_document)
    assert float(fast_total) == pytest.approx(total, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(gradient, fast_gradient, atol=2e-6)
    pairs = np.asarray(loss_fast.find_pairs(is_clicked, is_document)).sum(axis=(1, 2))
    assert loss.count_pairs(is_clicked, is_document).tolist() == pairs.tolist()
