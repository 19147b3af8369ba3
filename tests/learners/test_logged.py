"""PDGD from logged lists: rho from propensities alone, today's ranker as the limit, the correction, misuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.learners.logged import (
    importance_weight,
    log_propensities,
    logged_masses,
    logged_pdgd_gradient,
    rescored_pdgd_gradient,
)
from hushrank.learners.pdgd import log_mass_left, pdgd_gradient, reversal_weight
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import draw_below, draw_normal, draw_uniform, seed_key, stream
from hushrank.types import Array

seeds = st.integers(0, 10**6)
# masses 2, 1, 1; the first two are shown: p = 2/4, then 1/2
FEATURES = np.array([[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]])
RANKING, CLICKED, PROPENSITIES = np.array([0, 1]), np.array([True, False]), np.array([1 / 2, 1 / 2])


def logged_gradient(params: Array, *, max_weight: float | None = None) -> Array:
    """Of the list above."""
    return logged_pdgd_gradient(
        LinearRanker(2), params, FEATURES, RANKING, CLICKED, PROPENSITIES, max_weight=max_weight
    )


def random_impression(seed: int, *, spread: float = 2.0) -> tuple[Array, Array, Array, Array]:
    """Features of 1 to 15 candidates, a linear ranker, a list that it showed of at most ten, and clicks."""
    n = 1 + int(draw_below(stream(seed_key(seed), 1), 15, 1)[0])
    features = draw_normal(stream(seed_key(seed), 2), 4 * n).reshape(n, 4)
    params = spread / 2 * draw_normal(stream(seed_key(seed), 3), 4)
    ranking = sample_ranking(features @ params, draw_uniform(stream(seed_key(seed), 4), n), k=10)
    return features, params, ranking, draw_uniform(stream(seed_key(seed), 5), len(ranking)) < 0.4


def test_propensities_by_hand() -> None:
    scores = np.log([2.0, 1.0, 1.0])
    np.testing.assert_allclose(log_propensities(scores, RANKING), [2 / 4, 1 / 2])
    np.testing.assert_allclose(log_propensities(scores, np.array([2, 1, 0])), [1 / 4, 1 / 3, 1.0])


def test_masses_by_hand() -> None:
    # D = 1, 1 - 1/2, 1/2 - 1/6; e = 1/2 * 1, 1/3 * 1/2, 1/4 * 1/3
    masses, left = logged_masses(np.array([1 / 2, 1 / 3, 1 / 4]))
    np.testing.assert_allclose(np.exp(left), [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(np.exp(masses), [1 / 2, 1 / 6, 1 / 12])


def test_a_gradient_by_hand() -> None:
    # rho of the logged list is 2/5 (tests/learners/test_pdgd.py); today's scores are equal: pair gradient 1/4
    np.testing.assert_allclose(logged_gradient(np.zeros(2)), [2 / 5 * 1 / 4 * 1.0, -2 / 5 * 1 / 4 * 2.0])


def test_the_correction_by_hand() -> None:
    # logged P = 1/2 * 1/2; today all are equal, P = 1/3 * 1/2; the weight is 2/3, or the limit where that is less
    plain = logged_gradient(np.zeros(2))
    np.testing.assert_allclose(logged_gradient(np.zeros(2), max_weight=10.0), 2 / 3 * plain)
    np.testing.assert_allclose(logged_gradient(np.zeros(2), max_weight=0.5), 0.5 * plain)


@settings(deadline=None)
@given(seeds)
def test_propensities_alone_give_the_rho_of_the_scores(seed: int) -> None:
    features, params, ranking, _ = random_impression(seed)
    scores = features @ params
    masses, left = logged_masses(log_propensities(scores, ranking))
    for k in range(len(ranking)):
        for l in range(k):
            ours, theirs = (
                reversal_weight(*of, k, l) for of in ((masses, left), (scores[ranking], log_mass_left(scores, ranking)))
            )
            assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-10)


@settings(deadline=None)
@given(seeds, st.sampled_from([None, 1e-3, 1.0, 5.0]))
def test_on_lists_of_todays_ranker_it_is_pdgd(seed: int, max_weight: float | None) -> None:
    """The correction is then 1, and a limit below 1 is all that is left of it."""
    features, params, ranking, is_clicked = random_impression(seed)
    for ranker in (LinearRanker(4), MlpRanker(4, hidden=3)):
        n_params = sum(part.size for part in ranker.parameters)
        own = np.concatenate([params, draw_normal(stream(seed_key(seed), 6), n_params)])[:n_params]
        scores = ranker.score(own, features)
        logged = log_propensities(scores, ranking)
        ours = logged_pdgd_gradient(ranker, own, features, ranking, is_clicked, logged, max_weight=max_weight)
        theirs = pdgd_gradient(ranker, own, features, scores, ranking, is_clicked)
        np.testing.assert_allclose(ours, min(1.0, max_weight or 1.0) * theirs, rtol=1e-6, atol=1e-9)


@settings(deadline=None)
@given(seeds, st.sampled_from([None, 1.0, 5.0]))
def test_with_all_scores_it_is_pdgd_bit_for_bit(seed: int, max_weight: float | None) -> None:
    features, params, ranking, is_clicked = random_impression(seed)
    features, params = features.astype(np.float32), params.astype(np.float32)
    scores = features @ params
    ours = rescored_pdgd_gradient(LinearRanker(4), params, features, scores, ranking, is_clicked, max_weight=max_weight)
    theirs = pdgd_gradient(LinearRanker(4), params, features, scores, ranking, is_clicked)
    assert ours.dtype == theirs.dtype == np.float32 and ours.tobytes() == theirs.tobytes()


@settings(deadline=None)
@given(seeds, st.sampled_from([None, 0.5, 3.0]))
def test_scores_and_their_propensities_tell_the_same_of_an_older_rankers_list(
    seed: int, max_weight: float | None
) -> None:
    features, params, ranking, is_clicked = random_impression(seed)
    scores, today = features @ params, 0.5 * params + 0.1
    lists = (LinearRanker(4), today, features)
    ours = rescored_pdgd_gradient(*lists, scores, ranking, is_clicked, max_weight=max_weight)
    logged = log_propensities(scores, ranking)
    theirs = logged_pdgd_gradient(*lists, ranking, is_clicked, logged, max_weight=max_weight)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@settings(deadline=None)
@given(seeds)
def test_propensities_are_probabilities_and_the_only_one_left_is_certain(seed: int) -> None:
    features, params, ranking, _ = random_impression(seed, spread=20)
    p = log_propensities(features @ params, ranking)
    assert p.shape == ranking.shape and ((p > 0) & (p <= 1)).all()
    assert len(features) > 10 or p[-1] == 1


def test_the_probabilities_of_all_lists_add_up_to_one() -> None:
    scores = np.array([0.3, -1.0, 2.0])
    lists = [np.array([a, b]) for a in range(3) for b in range(3) if a != b]
    assert sum(np.prod(log_propensities(scores, ranking)) for ranking in lists) == pytest.approx(1)


@pytest.mark.parametrize(
    "p", [[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [1e-300, 1e-300, 1.0], [1.0, 1.0, 1e-300], [5e-324] * 3]
)
@pytest.mark.parametrize("is_clicked", [[True, False, False], [False, False, True], [False, True, False]])
def test_extreme_propensities_give_finite_gradients(p: list[float], is_clicked: list[bool]) -> None:
    arguments = (LinearRanker(2), np.zeros(2), FEATURES, np.array([2, 0, 1]), np.array(is_clicked), np.array(p))
    for max_weight in (None, 1e300):
        gradient = logged_pdgd_gradient(*arguments, max_weight=max_weight)
        assert np.isfinite(gradient).all()


def test_a_document_that_was_certain_to_stand_first_has_rho_0_and_one_that_never_should_has_rho_1() -> None:
    # swapping a document of mass 1 to rounding with one of nothing gives a list that the policy would not show
    assert reversal_weight(*logged_masses(np.array([1.0, 0.5])), 0, 1) < 1e-15
    # p = 1e-300 above 1: the swapped list is the one that the policy nearly always shows
    assert reversal_weight(*logged_masses(np.array([1e-300, 1.0 - 1e-16])), 0, 1) > 1 - 1e-12


def test_huge_scores_give_propensities_that_a_log_can_hold() -> None:
    for scores in ([1e4, 0.0, -1e4], [-1e4, 1e4, 1e4], [1e4] * 3):
        p = log_propensities(np.array(scores), np.array([2, 1, 0]))
        assert ((p > 0) & (p <= 1)).all()


def test_no_click_gives_zero() -> None:
    none = logged_pdgd_gradient(LinearRanker(2), np.ones(2), FEATURES, RANKING, np.zeros(2, bool), PROPENSITIES)
    assert none.shape == (2,) and not none.any()


def test_the_weight_of_a_list_is_the_ratio_of_its_probabilities() -> None:
    assert importance_weight(np.array([0.5, 0.1]), np.array([0.2, 0.5]), max_weight=10) == pytest.approx(0.05 / 0.1)
    assert importance_weight(np.array([0.9]), np.array([1e-300]), max_weight=10) == 10


@pytest.mark.parametrize(
    ("ranking", "is_clicked", "propensities", "max_weight", "said"),
    [
        ([0, 1], [True, False], [0.5], None, "2 documents, 2 click marks and 1 propensities"),
        ([0, 1], [True], [0.5, 0.5], None, "equally many"),
        ([], [], [], None, "at least 1"),
        ([0, 0], [True, False], [0.5, 0.5], None, "different documents, each from 0 to 2"),
        ([0, 3], [True, False], [0.5, 0.5], None, "different documents, each from 0 to 2"),
        ([0, -1], [True, False], [0.5, 0.5], None, "different documents, each from 0 to 2"),
        ([0, 1], [True, False], [0.5, 0.0], None, r"outside \(0, 1\]"),
        ([0, 1], [True, False], [1.1, 0.5], None, r"outside \(0, 1\]"),
        ([0, 1], [True, False], [np.nan, 0.5], None, r"outside \(0, 1\]"),
        ([0, 1], [True, False], [0.5, 0.5], 0.0, "max_weight is 0.0, must be a number > 0"),
        ([0, 1], [True, False], [0.5, 0.5], np.inf, "max_weight is inf"),
    ],
)
def test_misuse_is_refused(
    ranking: list[int], is_clicked: list[bool], propensities: list[float], max_weight: float | None, said: str
) -> None:
    lists = np.array(ranking, dtype=np.int64), np.array(is_clicked, dtype=bool), np.array(propensities)
    with pytest.raises(ValueError, match=said):
        logged_pdgd_gradient(LinearRanker(2), np.zeros(2), FEATURES, *lists, max_weight=max_weight)


def test_misuse_with_scores_is_refused() -> None:
    lists = (LinearRanker(2), np.zeros(2), FEATURES, np.zeros(3))
    with pytest.raises(ValueError, match="2 documents and 1 click marks"):
        rescored_pdgd_gradient(*lists, RANKING, np.array([True]))
    with pytest.raises(ValueError, match="each from 0 to 2"):
        rescored_pdgd_gradient(*lists, np.array([0, 3]), CLICKED)
