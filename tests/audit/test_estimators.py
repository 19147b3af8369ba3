"""The estimators on scores of which the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.audit.estimators import Confidence, Event, bound_from_canaries, bound_from_runs
from hushrank.privacy.accounting import gaussian_epsilon

PURE = Confidence(0.001, 0.0)


def laplace_scores(epsilon: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    return draws.laplace(epsilon, 1.0, n), draws.laplace(0.0, 1.0, n)


def test_laplace_noise_is_found_nearly_in_full_and_never_above() -> None:
    bounds = [bound_from_runs(*laplace_scores(1.0, 100_000, seed), PURE).epsilon for seed in range(20)]
    assert all(0.93 < bound < 1.0 for bound in bounds)


def test_a_bound_of_equal_scores_is_above_zero_at_most_as_often_as_said() -> None:
    """200 audits of nothing at 90 %: false alarms are at most binomial(200, .1), above 34 once in 2,000."""
    sure = Confidence(0.1, 0.0)
    alarms = sum(bound_from_runs(*laplace_scores(0.0, 200, seed), sure).epsilon > 0 for seed in range(200))
    assert alarms <= 34


def test_choosing_and_counting_on_the_same_runs_would_deceive() -> None:
    """Ten runs each: the event that looks best among them is chance, and the other half does not confirm it."""
    draws = np.random.default_rng(5)
    first, rest = np.arange(5.0) + 100, draws.normal(size=95)
    here, there = np.concatenate([first, rest]), draws.normal(size=100)
    found = bound_from_runs(here[np.r_[0:5, 5:50, 50:100]], there, Confidence(0.1, 0.0))
    assert found.epsilon == 0.0


def test_normal_noise_is_found_better_if_it_is_known_to_be_normal() -> None:
    draws, truth = np.random.default_rng(3), gaussian_epsilon(1.0, delta=1e-5)
    scores = draws.normal(1.0, 1.0, 100_000), draws.normal(0.0, 1.0, 100_000)
    found = bound_from_runs(*scores, Confidence(0.001, 1e-5), is_normal=True)
    assert found.epsilon_if_normal is not None
    assert 0.5 * truth < found.epsilon < 0.95 * truth < found.epsilon_if_normal < truth


def test_an_event_below_a_threshold_counts_for_the_federation_without_the_canary() -> None:
    here, there = np.full(1000, 5.0), np.concatenate([np.full(500, 5.0), np.full(500, 1.0)])
    draws = np.random.default_rng(1)
    found = bound_from_runs(here, draws.permutation(there), PURE)
    assert found.epsilon > 3.0 and found.counts["events_with_canary"] == 0
    assert Event(5.0, is_above=False).count(there) == 500


def test_one_run_finds_responses_and_accuses_none() -> None:
    """2,000 canaries whose bits are told truly with e / (1 + e): epsilon 1."""
    draws = np.random.default_rng(2)
    for _ in range(20):
        is_in = draws.random(2000) < 0.5
        told = np.where(draws.random(2000) < np.e / (1 + np.e), is_in, ~is_in)
        bound = bound_from_canaries(told + draws.random(2000) / 2, is_in, PURE)
        assert 0.6 < bound.epsilon < 1.0


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 of each"):
        bound_from_runs(np.ones(1), np.ones(2), PURE)
