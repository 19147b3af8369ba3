"""What PDGD learns on average, by enumeration: every ranking of three documents times every pattern of clicks.

Why it matters: documents of equal relevance must not drift apart however the ranker prefers one of them, and a more
relevant document must gain; that is the unbiasedness theorem of [oosterhuis2018].
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from hushrank.clicks.cascade import CascadeUser
from hushrank.clicks.named import named_user
from hushrank.clicks.table import TableUser
from hushrank.learners.pdgd import infer_preferences, log_mass_left, pdgd_gradient, reversal_weight, sigmoid
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import draw_uniform, seed_key, stream
from hushrank.types import Array

SCORES = np.array([1.2, -0.4, 0.3])
USERS = ["perfect", "navigational", "informational", "pbm-1"]


def person(name: str) -> TableUser:
    user = named_user(name, n_grades=3)
    assert isinstance(user, TableUser)
    return user


def ranking_probability(scores: Array, ranking: Array) -> float:
    mass = np.exp(scores[ranking])
    return float(np.prod(mass / np.cumsum(mass[::-1])[::-1]))  # [fpdgd, Eq. 2]


def pattern_probability(user: TableUser, grades: Array, pattern: Array) -> float:
    """P(clicks | list): still reading and so far as in the pattern, or gone after a click with nothing below it."""
    table = user.as_table(len(grades))
    reading, gone = 1.0, 0.0
    for examine, grade, is_clicked in zip(table.examine, grades, pattern, strict=True):
        click, stop = examine * table.click[grade], table.stop[grade]
        gone = reading * click * stop if is_clicked else gone
        reading *= click * (1 - stop) if is_clicked else 1 - click
    return reading + gone


def outcomes(scores: Array, grades: Array, user: TableUser) -> list[tuple[float, Array, Array]]:
    """(probability, ranking, clicks): 6 rankings times 8 patterns."""
    return [
        (ranking_probability(scores, r) * pattern_probability(user, grades[r], c), r, c)
        for r in map(np.array, permutations(range(3)))
        for c in map(np.array, product([False, True], repeat=3))
    ]


def expected_pulls(grades: Array, user: TableUser, *, with_rho: bool = True) -> Array:
    """[3, 3] the expected weight with which document i is pulled above document j, less the opposite."""
    pulls = np.zeros((3, 3))
    for probability, ranking, is_clicked in outcomes(SCORES, grades, user):
        shown, log_left = SCORES[ranking], log_mass_left(SCORES, ranking)
        for k, l in infer_preferences(is_clicked):
            rho = reversal_weight(shown, log_left, k, l) if with_rho else 0.5
            slope = sigmoid(shown[k] - shown[l]) * sigmoid(shown[l] - shown[k])
            pulls[ranking[k], ranking[l]] += probability * rho * slope
    return pulls - pulls.T


def expected_gradient(grades: Array, user: TableUser) -> Array:
    ranker, eye = LinearRanker(3), np.eye(3)
    terms = [p * pdgd_gradient(ranker, SCORES, eye, SCORES, r, c) for p, r, c in outcomes(SCORES, grades, user)]
    return np.asarray(np.sum(terms, axis=0))


@pytest.mark.parametrize("name", USERS)
def test_the_probabilities_of_all_outcomes_sum_to_one(name: str) -> None:
    total = sum(p for p, _, _ in outcomes(SCORES, np.array([2, 0, 1]), person(name)))
    assert total == pytest.approx(1)


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("grade", [0, 1, 2])
def test_equally_relevant_documents_stay_where_they_are(name: str, grade: int) -> None:
    gradient = expected_gradient(np.array([grade] * 3), person(name))
    np.testing.assert_allclose(gradient, 0, atol=1e-15)


@pytest.mark.parametrize("name", USERS)
def test_a_pair_of_equal_relevance_cancels_beside_a_better_document(name: str) -> None:
    pulls = expected_pulls(np.array([1, 2, 1]), person(name))
    assert pulls[0, 2] == pytest.approx(0, abs=1e-15)
    assert pulls[1, 0] > 0 and pulls[1, 2] > 0


def test_without_rho_the_document_that_is_already_ahead_would_gain() -> None:
    """Which shows that the tests above can fail."""
    pulls = expected_pulls(np.array([2, 2, 2]), person("navigational"), with_rho=False)
    assert pulls[0, 2] > pulls[0, 1] > pulls[2, 1] > 0.004  # scores: 0 before 2 before 1


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("grades", list(permutations([0, 1, 2])))
def test_the_more_relevant_of_two_documents_gains(name: str, grades: tuple[int, int, int]) -> None:
    pulls = expected_pulls(np.array(grades), person(name))
    better = np.subtract.outer(grades, grades) > 0
    assert (pulls[better] > 0).all()
    gradient = expected_gradient(np.array(grades), person(name))
    np.testing.assert_allclose(gradient, pulls.sum(axis=1), atol=1e-15)
    assert gradient[grades.index(2)] > 0 > gradient[grades.index(0)]


def test_a_poisoner_teaches_the_opposite() -> None:
    grades = np.array([2, 0, 1])
    poison = expected_pulls(grades, person("poison"))
    perfect_on_reversed = expected_pulls(2 - grades, person("perfect"))
    np.testing.assert_allclose(poison, perfect_on_reversed, atol=1e-15)


def test_who_clicks_at_random_teaches_nothing() -> None:
    gradient = expected_gradient(np.array([2, 0, 1]), CascadeUser((0.3, 0.3, 0.3), (0.4, 0.4, 0.4)))
    np.testing.assert_allclose(gradient, 0, atol=1e-15)


@pytest.mark.parametrize("name", ["navigational", "pbm-1"])
def test_the_sampled_pipeline_has_this_expectation(name: str) -> None:
    """Ranking, clicks and gradient from draws, 4,000 times; the mean lies within four of its standard errors."""
    n, grades, user = 4000, np.array([1, 2, 0]), person(name)
    show, click, stop = (draw_uniform(stream(seed_key(111), p), 3 * n).reshape(n, 3) for p in (1, 2, 3))
    gradients = np.empty((n, 3))
    for i in range(n):
        ranking = sample_ranking(SCORES, show[i])
        is_clicked = user(grades[ranking], click[i], stop[i])
        gradients[i] = pdgd_gradient(LinearRanker(3), SCORES, np.eye(3), SCORES, ranking, is_clicked)
    error = gradients.std(axis=0) / np.sqrt(n)
    assert (np.abs(gradients.mean(axis=0) - expected_gradient(grades, user)) < 4 * error).all()
    assert (np.abs(gradients.mean(axis=0)) > 4 * error).any()
