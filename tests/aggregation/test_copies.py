"""Who speaks among near copies: found quickly, and as the plain search finds it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushrank.aggregation.copies import find_voices
from hushrank.types import Array


def find_plainly(updates: Array, weights: Array, is_alike: Array, may_copy: Array) -> Array:
    """One row after another against a new array of all who speak before it."""
    voices, near = np.arange(len(updates)), np.flatnonzero(is_alike)
    x = updates[near].astype(np.float64)
    each = np.sqrt(np.einsum("ip,ip->i", x, x))
    x /= each[:, None]
    speaking: list[int] = []
    for row in np.lexsort((may_copy[near], -weights[near] * each)):
        cosines = x[speaking] @ x[row]
        if may_copy[near[row]] and (cosines > 0.95).any():
            voices[near[row]] = near[speaking[int(cosines.argmax())]]
        else:
            speaking.append(int(row))
    return voices


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 2, 3, 8, 46]))
def test_the_quick_search_gives_everybody_the_voice_that_the_plain_one_gives(seed: int, n: int, p: int) -> None:
    """Around few ways, so that many cosines are near .95; some updates are equal, or twice as long."""
    draws = np.random.default_rng(seed)
    n_ways, noise = draws.integers(1, n + 1), draws.choice([0.0, 0.1, 0.2, 0.32])
    updates = draws.standard_normal((n_ways, p))[draws.integers(0, n_ways, n)] * draws.choice([0.5, 1, 2], (n, 1))
    updates += noise * draws.standard_normal((n, p))
    weights, (is_alike, may_copy) = draws.choice([1.0, 2.0, 3.0], n), draws.random((2, n)) < draws.random((2, 1))
    for sent in (updates, updates.astype(np.float32)):
        found, expected = (find(sent, weights, is_alike, may_copy) for find in (find_voices, find_plainly))
        assert found.tolist() == expected.tolist()


def test_many_copies_have_the_voices_that_the_plain_search_finds() -> None:
    draws, n = np.random.default_rng(8), 600
    updates, weights = np.repeat(draws.standard_normal((n // 2, 50)), 2, axis=0), np.ones(n)
    updates += 0.1 * draws.standard_normal((n, 50))
    everybody = np.ones(n, np.bool_)
    voices = find_voices(updates, weights, everybody, everybody)
    assert voices.tolist() == find_plainly(updates, weights, everybody, everybody).tolist()
    assert 0 < np.count_nonzero(voices != np.arange(n)) <= n // 2
