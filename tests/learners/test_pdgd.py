"""Pairwise differentiable gradient descent: the pair rule, rho by brute force, limits, and huge scores."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.learners.pdgd import infer_preferences, log_mass_left, pdgd_gradient, reversal_weight, sigmoid
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import draw_below, draw_normal, draw_uniform, seed_key, stream
from hushrank.types import Array

click_lists = st.lists(st.booleans(), min_size=1, max_size=10).map(np.array)


def clicked(positions: list[int], n: int) -> Array:
    """Clicks at these ranks, counted from 1 as people do."""
    return np.isin(np.arange(1, n + 1), positions)


def pairs(positions: list[int], n: int) -> list[tuple[int, int]]:
    """Preferences between ranks, counted from 1."""
    return [(k + 1, l + 1) for k, l in infer_preferences(clicked(positions, n))]


def document_weights(scores: Array, ranking: Array, is_clicked: Array) -> Array:
    """[n] what each document's score gains: the gradient of a ranker whose features are the documents themselves."""
    n = len(scores)
    return pdgd_gradient(LinearRanker(n), scores, np.eye(n), scores, ranking, is_clicked)


def plackett_luce(scores: Array, ranking: Array) -> float:
    """P(R | D) [fpdgd, Eq. 2], word for word."""
    probability, left = 1.0, list(range(len(scores)))
    for document in ranking:
        probability *= np.exp(scores[document]) / sum(np.exp(scores[d]) for d in left)
        left.remove(document)
    return float(probability)


def test_a_click_is_preferred_to_what_stands_above_the_last_click_and_to_the_next() -> None:
    assert pairs([2, 4], 6) == [(2, 1), (2, 3), (2, 5), (4, 1), (4, 3), (4, 5)]
    assert pairs([1], 6) == [(1, 2)]
    assert pairs([3], 6) == [(3, 1), (3, 2), (3, 4)]


def test_a_last_click_at_the_end_has_nothing_below_it() -> None:
    assert pairs([4], 4) == [(4, 1), (4, 2), (4, 3)]
    assert pairs([1, 4], 4) == [(1, 2), (1, 3), (4, 2), (4, 3)]


def test_all_clicked_or_none_says_nothing() -> None:
    assert pairs([1, 2, 3], 3) == pairs([], 3) == pairs([1], 1) == pairs([], 1) == []


@settings(deadline=None)
@given(click_lists, st.integers(0, 5))
def test_pairs_are_all_clicked_times_all_seen_and_unclicked(is_clicked: Array, n_below: int) -> None:
    found = infer_preferences(is_clicked)
    last = max(np.flatnonzero(is_clicked), default=-2)
    seen = is_clicked[: last + 2]
    assert len(found) == len(set(found)) == seen.sum() * (~seen).sum()
    assert all(is_clicked[k] and not is_clicked[l] for k, l in found)
    longer = np.concatenate([is_clicked, np.zeros(1, bool)])
    assert infer_preferences(np.concatenate([longer, np.zeros(n_below, bool)])) == infer_preferences(longer)


@pytest.mark.parametrize("n", [2, 4, 7, 13])
def test_rho_is_the_share_of_the_swapped_list(n: int) -> None:
    """Both probabilities computed directly, over all candidates, for every pair of positions [fpdgd, Eq. 6]."""
    scores = 2 * draw_normal(stream(seed_key(91), n), n)
    ranking = sample_ranking(scores, draw_uniform(stream(seed_key(92), n), n), k=10)
    log_left = log_mass_left(scores, ranking)
    for a, b in combinations(range(len(ranking)), 2):
        swapped = ranking.copy()
        swapped[[a, b]] = ranking[[b, a]]
        p, p_swapped = plackett_luce(scores, ranking), plackett_luce(scores, swapped)
        for k, l in ((a, b), (b, a)):
            assert reversal_weight(scores[ranking], log_left, k, l) == pytest.approx(p_swapped / (p + p_swapped))


def test_rho_by_hand() -> None:
    # masses 2, 1, 1; shown 2, 1 of the three: P(R) = 2/4 * 1/2, P(R*) = 1/4 * 2/3, rho = (1/6) / (1/4 + 1/6) = 2/5
    scores, ranking = np.log([2.0, 1.0, 1.0]), np.array([0, 1])
    np.testing.assert_allclose(log_mass_left(scores, ranking), np.log([4.0, 2.0]))
    assert reversal_weight(scores[ranking], log_mass_left(scores, ranking), 0, 1) == pytest.approx(2 / 5)


def test_a_gradient_by_hand() -> None:
    # the same list, its first clicked: weight 2/5 * (2 * 1) / (2 + 1)^2 = 4/45, up for document 0, down for document 1
    features = np.array([[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]])
    scores, ranking = np.log([2.0, 1.0, 1.0]), np.array([0, 1])
    gradient = pdgd_gradient(LinearRanker(2), np.zeros(2), features, scores, ranking, np.array([True, False]))
    np.testing.assert_allclose(gradient, [4 / 45 * 1.0, -4 / 45 * 2.0])


def test_equal_scores_give_each_pair_an_eighth() -> None:
    """All lists are equally likely: rho = 1/2, pair gradient 1/4."""
    weights = document_weights(np.zeros(5), np.array([4, 2, 0, 1, 3]), clicked([2], 5))
    np.testing.assert_allclose(weights, [-1 / 8, 0, 3 / 8 - 1 / 8, 0, -1 / 8])  # 2 rises over 4 and over 0


@pytest.mark.parametrize("positions", [[], [1, 2, 3]])
def test_without_a_preference_the_gradient_is_exactly_zero(positions: list[int]) -> None:
    for ranker in (LinearRanker(2), MlpRanker(2, hidden=3)):
        n_params = sum(part.size for part in ranker.parameters)
        features, params = np.ones((4, 2)), np.full(n_params, 0.3)
        scores = ranker.score(params, features)
        gradient = pdgd_gradient(ranker, params, features, scores, np.array([3, 1, 0]), clicked(positions, 3))
        assert gradient.shape == (n_params,) and not gradient.any()


def random_list(seed: int) -> tuple[Array, Array, Array]:
    """Scores of 1 to 15 candidates, a list of at most ten of them, and clicks."""
    n = 1 + int(draw_below(stream(seed_key(seed), 1), 15, 1)[0])
    scores = 3 * draw_normal(stream(seed_key(seed), 2), n)
    ranking = sample_ranking(scores, draw_uniform(stream(seed_key(seed), 3), n), k=10)
    return scores, ranking, draw_uniform(stream(seed_key(seed), 4), len(ranking)) < 0.4


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(-50, 50))
def test_adding_a_constant_to_all_scores_changes_nothing(seed: int, constant: float) -> None:
    scores, ranking, is_clicked = random_list(seed)
    shifted = document_weights(scores + constant, ranking, is_clicked)
    np.testing.assert_allclose(shifted, document_weights(scores, ranking, is_clicked), atol=1e-12)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_what_rises_equals_what_falls_and_only_shown_documents_move(seed: int) -> None:
    scores, ranking, is_clicked = random_list(seed)
    weights = document_weights(scores, ranking, is_clicked)
    assert weights.sum() == pytest.approx(0, abs=1e-12)
    assert (weights[ranking[is_clicked]] >= 0).all() and (weights[ranking[~is_clicked]] <= 0).all()
    assert not np.delete(weights, ranking).any()


@settings(deadline=None)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_the_order_in_which_candidates_are_stored_does_not_matter(seed: int, random: object) -> None:
    scores, ranking, is_clicked = random_list(seed)
    order = np.array(sorted(range(len(scores)), key=lambda _: random.random()))  # type: ignore[attr-defined]
    place = np.argsort(order)  # document d is now stored at place[d]
    moved = document_weights(scores[order], place[ranking], is_clicked)
    np.testing.assert_allclose(moved[place], document_weights(scores, ranking, is_clicked), atol=1e-12)


def test_a_hidden_candidate_of_vanishing_mass_is_no_candidate() -> None:
    scores, ranking, is_clicked = np.array([0.5, -1.0, 2.0]), np.array([1, 2, 0]), clicked([2], 3)
    with_another = document_weights(np.append(scores, -800.0), ranking, is_clicked)
    np.testing.assert_allclose(with_another[:3], document_weights(scores, ranking, is_clicked), rtol=1e-12)


HUGE = [
    [1e4, -1e4, 0.0, 1e4],
    [-1e4] * 4,
    [1e4] * 4,
    [1e4, 9e3, -5.0, 5.0],
    [0.0, 1e-3, 1e4, -1e4],
    [-1e4, 1e4, 3.0, 3.5],
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", HUGE)
def test_huge_scores_give_finite_numbers_and_no_warning(values: list[float], dtype: type) -> None:
    scores: Array = np.array(values, dtype)
    for ranking in ([0, 1, 2], [3, 2, 1, 0], [2, 0]):
        for positions in ([1], [2], [1, 2], [len(ranking)]):
            weights = document_weights(scores, np.array(ranking), clicked(positions, len(ranking)))
            assert np.isfinite(weights).all() and np.abs(weights).max() <= len(ranking) / 4


def test_huge_gaps_have_the_right_limits() -> None:
    """A list that was certain has rho 0, one that was impossible has rho 1."""
    scores = np.array([1e4, 0.0, -1e4])
    for ranking, rho in (([0, 1, 2], 0.0), ([2, 1, 0], 1.0)):
        shown = np.array(ranking)
        assert reversal_weight(scores[shown], log_mass_left(scores, shown), 0, 2) == rho


def test_the_sigmoid_cannot_overflow() -> None:
    assert sigmoid(np.array([-1e5, 0.0, 1e5])).tolist() == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(sigmoid(np.array([1.5])), 1 / (1 + np.exp(-1.5)))
