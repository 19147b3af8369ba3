"""From scores to a shown list: the Plackett-Luce distribution, ties, short lists, and the JAX twin."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.rankers import policy_fast
from hushrank.rankers.policy import sample_ranking, sort_ranking
from hushrank.streams import draw_below, draw_uniform, seed_key, stream
from hushrank.types import Array

score_lists = st.lists(st.integers(-20, 20), min_size=1, max_size=15).map(lambda x: np.array(x, np.float64) / 4)


def draws(purpose: int, *shape: int) -> Array:
    return draw_uniform(stream(seed_key(81), purpose), int(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize("scores", [(0.0, 0.0, 0.0), (1.0, 0.0, -1.0), (0.3, 2.0, 1.9)])
def test_all_orders_of_three_documents_come_as_often_as_equation_2_says(scores: tuple[float, ...]) -> None:
    n, mass = 6000, np.exp(scores)
    shown = [tuple(sample_ranking(np.array(scores), u).tolist()) for u in draws(1, n, 3)]
    for a, b, c in permutations(range(3)):
        expected = mass[a] / mass.sum() * mass[b] / (mass[b] + mass[c])  # times 1 for the last [fpdgd, Eq. 2]
        assert shown.count((a, b, c)) / n == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / n))


def test_the_first_two_of_four_come_as_often_as_equation_2_says() -> None:
    n, scores = 6000, np.array([0.5, -1.0, 1.5, 0.0])
    mass = np.exp(scores)
    shown = [tuple(sample_ranking(scores, u, k=2).tolist()) for u in draws(2, n, 4)]
    for a, b in permutations(range(4), 2):
        expected = mass[a] / mass.sum() * mass[b] / (mass.sum() - mass[a])  # over all that are left, shown or not
        assert shown.count((a, b)) / n == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / n))


def test_a_draw_by_hand() -> None:
    uniforms = np.exp(-np.exp(-np.array([0.0, 1.5, -0.5])))  # so that -log(-log(u)) is 0, 1.5 and -0.5
    assert sample_ranking(np.array([1.0, 0.0, 1.75]), uniforms).tolist() == [1, 2, 0]  # of 1 + 0, 0 + 1.5, 1.75 - 0.5


def test_far_apart_scores_are_simply_sorted() -> None:
    scores = np.array([0.0, 300.0, -300.0, 100.0])
    assert all(sample_ranking(scores, u).tolist() == [1, 3, 0, 2] for u in draws(3, 50, 4))


@settings(deadline=None)
@given(score_lists, st.integers(1, 12))
def test_a_shown_list_holds_different_documents_as_many_as_there_are(scores: Array, k: int) -> None:
    ranking = sample_ranking(scores, draws(4, len(scores)), k=k)
    assert len(ranking) == min(k, len(scores)) == len(set(ranking.tolist()))
    assert ranking.tolist() == sample_ranking(scores, draws(4, len(scores)), k=15)[:k].tolist()


@settings(deadline=None)
@given(score_lists, st.integers(-1000, 1000))
def test_adding_a_constant_to_all_scores_changes_no_list(scores: Array, constant: int) -> None:
    uniforms = draws(5, len(scores))
    assert sample_ranking(scores + constant, uniforms).tolist() == sample_ranking(scores, uniforms).tolist()


@settings(deadline=None)
@given(score_lists)
def test_sorting_keeps_the_order_of_equal_scores(scores: Array) -> None:
    by_python = sorted(range(len(scores)), key=lambda i: -scores[i])  # Python's sort is stable
    assert sort_ranking(scores, k=15).tolist() == by_python


def test_the_jax_twin_shows_the_same_lists_on_padded_rows() -> None:
    n, width, k = 300, 16, 10
    lengths = 1 + draw_below(stream(seed_key(81), 6), width, n)
    scores = (np.round(draws(7, n, width) * 8) - 4).astype(np.float32)  # many ties, some of them zeros
    scores[::2] *= np.float32(-1)  # and negative zeros
    uniforms, where = draws(8, n, width), np.arange(width) < lengths[:, None]
    noise = np.where(where, scores, np.float32(99))  # the padding is rubbish
    sample = partial(policy_fast.sample_ranking, k=k)
    sort = partial(policy_fast.sort_ranking, k=k)
    both, hidden = zip(
        *jax.jit(lambda s, u, w: (sample(s, u, where=w), sort(s, where=w)))(noise, uniforms, where), strict=True
    )
    for i, length in enumerate(lengths):
        real = slice(0, min(length, k))
        assert both[0][i][real].tolist() == sample_ranking(scores[i, :length], uniforms[i, :length], k=k).tolist()
        assert both[1][i][real].tolist() == sort_ranking(scores[i, :length], k=k).tolist()
        assert sorted(both[1][i][real].tolist()) == np.flatnonzero(~np.asarray(hidden[1][i][:length])).tolist()
