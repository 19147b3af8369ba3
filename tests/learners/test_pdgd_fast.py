"""The JAX twin of PDGD gives the plain weights: many lists, lengths, clicks and scores in one call."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from hushrank.learners.pdgd import log_mass_left, pdgd_gradient
from hushrank.learners.pdgd_fast import preference_weights
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import draw_below, draw_normal, draw_uniform, seed_key, stream
from hushrank.types import Array

N, K, WIDTH = 600, 10, 24
RUBBISH = np.float32(77.0)
weights_of_lists = jax.jit(preference_weights)


def random_scores() -> list[Array]:
    """Lists of 1 to 24 candidates, with scores from nearly equal to far apart."""
    lengths = 1 + draw_below(stream(seed_key(101), 1), WIDTH, N)
    normals = draw_normal(stream(seed_key(101), 2), N * WIDTH).reshape(N, WIDTH)
    scale = 10.0 ** (3 * draw_uniform(stream(seed_key(101), 3), N) - 1.5)
    return [(normals[i, :n] * scale[i]).astype(np.float32) for i, n in enumerate(lengths)]


def huge_scores() -> list[Array]:
    """Mixtures of -10^4, 0 and 10^4, on which both twins lose the same digits."""
    lengths = 1 + draw_below(stream(seed_key(102), 1), WIDTH, N)
    signs = draw_below(stream(seed_key(102), 2), 3, N * WIDTH).reshape(N, WIDTH) - 1
    return [np.float32(1e4) * signs[i, :n].astype(np.float32) for i, n in enumerate(lengths)]


def both_weights(lists: list[Array], *, click_rate: float) -> tuple[Array, Array, Array]:
    """[K, N] fast and plain weights and which places are real."""
    shown, tail = np.full((K, N), RUBBISH), np.empty(N, np.float32)
    is_clicked, is_shown, plain = np.zeros((K, N), bool), np.zeros((K, N), bool), np.zeros((K, N))
    for i, scores in enumerate(lists):
        ranking = sample_ranking(scores, draw_uniform(stream(seed_key(103), i), len(scores)), k=K)
        n, eye = len(ranking), np.eye(len(scores), dtype=np.float32)
        shown[:n, i], is_shown[:n, i] = scores[ranking], True
        is_clicked[:n, i] = draw_uniform(stream(seed_key(104), i), n) < click_rate
        tail[i] = np.logaddexp.reduce(np.delete(scores, ranking), initial=-np.inf)
        gradient = pdgd_gradient(LinearRanker(len(scores)), scores, eye, scores, ranking, is_clicked[:n, i])
        plain[:n, i] = gradient[ranking]
        assert log_mass_left(scores, ranking).dtype == np.float32
    return np.asarray(weights_of_lists(shown, tail, is_clicked, is_shown)), plain, is_shown


@pytest.mark.parametrize("click_rate", [0.1, 0.5])
def test_the_twins_agree_on_lists_of_all_lengths(click_rate: float) -> None:
    fast, plain, is_shown = both_weights(random_scores(), click_rate=click_rate)
    np.testing.assert_allclose(fast, plain, atol=3e-6)
    assert not fast[~is_shown].any()
    assert np.abs(plain).max() > 0.5


def test_the_twins_agree_on_huge_scores() -> None:
    fast, plain, _ = both_weights(huge_scores(), click_rate=0.4)
    assert np.isfinite(fast).all()
    np.testing.assert_allclose(fast, plain, atol=2e-3)  # Why: float32 at 10^4 has steps of 10^-3
    assert np.abs(plain).max() > 0.1


def test_no_click_gives_exactly_zero() -> None:
    fast, plain, _ = both_weights(random_scores(), click_rate=0.0)
    assert not fast.any() and not plain.any()
