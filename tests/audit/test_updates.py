"""Federations with a canary: the pair is the worst that its relation allows, and the real code runs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hushrank.audit.rewards import LaplaceReward, RewardTrial
from hushrank.audit.updates import UpdateTrial
from hushrank.federation.cohort import Population, cohort_mask, sample_ids
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.protection import UpdateProtection
from hushrank.streams import fold_in, seed_key

KEYS = fold_in(seed_key(3), np.arange(4000))


def mean_scores(trial: UpdateTrial, looks: tuple[int, ...] = (1,)) -> tuple[float, float]:
    here, there = (trial.score_runs(KEYS, looks, is_here=is_here).mean() for is_here in (True, False))
    return float(here), float(there)


@pytest.mark.parametrize(
    ("population", "relation", "moves"),
    [
        (Population(4), "zero-out", 1.0),
        (Population(4), "add-remove", 1.0),
        (Population(4), "replace-one", 2.0),
        (Population(4, cohort=3), "zero-out", 1.0),
        (Population(4, cohort=3), "replace-one", 2.0),
        (Population(4, cohort=3), "add-remove", 2.0),  # another client, which points the other way, takes the place
    ],
)
def test_a_canary_moves_the_sum_as_far_as_its_relation_allows(
    population: Population, relation: str, moves: float
) -> None:
    """Evidence for normal noise is (moved / noise)^2 / 2 in the mean, with it and against it; its rounds, where it is
    not drawn, show nothing."""
    trial = UpdateTrial(SoundGaussian(0.1, 1.0), population, relation, 1)
    here, there = mean_scores(trial)
    rate = population.cohort_size / population.n_clients
    if relation == "add-remove":  # Why: who is absent is not seen to be drawn, so that without it nothing is counted
        assert here == pytest.approx(rate * moves**2 / 2, abs=0.1)
    else:
        assert (here, there) == pytest.approx((rate * moves**2 / 2, -rate * moves**2 / 2), abs=0.1)


@pytest.mark.parametrize(
    "protection",
    [
        SoundGaussian(0.1, 2.0),
        SoundGaussian(0.1, 2.0, "clients", 4),
        SoundLaplace(0.1, 2.0),
        SoundLaplace(0.1, 2.0, "clients", 4),
        PaperNoise(1.0, 3.0, 4),
    ],
)
def test_evidence_is_a_likelihood_ratio(protection: UpdateProtection) -> None:
    """The mean of e^score over runs without the canary is 1, and of e^-score over runs with it: so the score knows the
    noise that the real code added, its scale and its shape."""
    trial = UpdateTrial(protection, Population(4), "replace-one", 2)
    here, there = (trial.score_runs(KEYS, (2,), is_here=is_here)[:, 0] for is_here in (True, False))
    for ratios in (np.exp(there), np.exp(-here)):
        assert ratios.mean() == pytest.approx(1.0, abs=4 * ratios.std() / np.sqrt(len(ratios)))
    assert here.mean() > 0.1 > -0.1 > there.mean()


def test_who_does_not_know_the_cohort_weighs_that_in() -> None:
    half = Population(4, cohort=2, sampling="poisson")
    hidden = UpdateTrial(SoundGaussian(0.1, 0.5), half, "zero-out", 1, sees_cohort=False)
    ratios = np.exp(hidden.score_runs(KEYS, (1,), is_here=False)[:, 0])
    assert ratios.mean() == pytest.approx(1.0, abs=4 * ratios.std() / np.sqrt(len(ratios)))
    seen = replace(hidden, sees_cohort=True)
    assert mean_scores(hidden)[0] < mean_scores(seen)[0]


def test_a_canary_shouts_but_is_clipped() -> None:
    """Nearly without noise the evidence is (1 / noise)^2 / 2: eight times the clip norm was sent, one arrived."""
    here, _ = mean_scores(UpdateTrial(SoundGaussian(0.1, 0.01), Population(4), "zero-out", 1))
    assert here == pytest.approx(100.0**2 / 2, rel=0.01)


def test_rounds_push_in_turns_so_that_repeated_noise_cancels() -> None:
    trial = UpdateTrial(SoundGaussian(0.1, 1.0), Population(4), "zero-out", 2)
    pair = trial.protection.contrast(2, "zero-out")
    assert pair.here[0] == -pair.here[1]  # noise that two numbers share cancels, too
    both = trial.score_runs(KEYS, (1, 2), is_here=True)
    assert both.shape == (len(KEYS), 2) and both[:, 1].mean() == pytest.approx(2 * both[:, 0].mean(), abs=0.1)


@pytest.mark.parametrize("population", [Population(5, cohort=3), Population(5, cohort=3, sampling="poisson")])
def test_cohorts_of_many_keys_are_those_of_each(population: Population) -> None:
    masks = cohort_mask(population, KEYS[:50], 7)
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [
        sample_ids(population, key, 7).tolist() for key in KEYS[:50]
    ]


def test_an_absent_client_leaves_its_place_to_the_next_and_moves_nobody_else() -> None:
    fixed, drawn = Population(5, cohort=3), Population(5, cohort=3, sampling="poisson")
    with_it, without = cohort_mask(fixed, KEYS, 1), cohort_mask(fixed, KEYS, 1, missing=4)
    assert (without.sum(axis=1) == 3).all() and not without[:, 4].any() and (with_it <= without | [0, 0, 0, 0, 1]).all()
    alone = cohort_mask(drawn, KEYS, 1, missing=4)
    np.testing.assert_array_equal(alone[:, :4], cohort_mask(drawn, KEYS, 1)[:, :4])


def test_one_run_scores_every_client_by_its_own_number() -> None:
    trial = UpdateTrial(SoundGaussian(0.1, 1.0), Population(400), "zero-out", 3)
    is_in = np.arange(400) % 2 == 0
    scores = trial.score_canaries(seed_key(1), (3,), is_in)[:, 0]
    assert scores[is_in].mean() == pytest.approx(1.5, abs=0.5) and scores[~is_in].mean() == pytest.approx(-1.5, abs=0.5)
    assert np.abs(np.corrcoef(scores[:-1] - 3 * is_in[:-1], scores[1:] - 3 * is_in[1:])[0, 1]) < 0.2


def test_rewards_are_told_apart_as_well_as_their_epsilon_says() -> None:
    trial = RewardTrial(LaplaceReward(0.0, 1.0, 2.0), 1.0, 0.0)
    here, there = (trial.score_runs(KEYS, (1,), is_here=is_here)[:, 0] for is_here in (True, False))
    assert max(abs(here).max(), abs(there).max()) <= 2.0 + 1e-9
    assert np.exp(there).mean() == pytest.approx(1.0, abs=0.15) and here.mean() > 0.5


def test_what_cannot_be_audited_is_refused() -> None:
    unprotected = UpdateTrial(OpenUpdates(), Population(4), "zero-out", 1)
    with pytest.raises(ValueError, match="nothing to audit"):
        unprotected.score_runs(KEYS, (1,), is_here=True)
    with pytest.raises(ValueError, match="3 clients are left without the canary, but 4 must share the noise"):
        UpdateTrial(SoundGaussian(0.1, 1.0, "clients", 4), Population(4), "add-remove", 1)
    with pytest.raises(ValueError, match="one cannot be added or removed"):
        PaperNoise(1.0, 3.0, 4).contrast(2, "add-remove")
    fixed = UpdateTrial(SoundGaussian(0.1, 1.0), Population(4, cohort=3), "add-remove", 1)
    with pytest.raises(ValueError, match="audit add-remove with --estimator runs"):
        fixed.score_canaries(seed_key(1), (1,), np.ones(4, bool))
    big = UpdateTrial(SoundGaussian(0.1, 1.0), Population(5000), "zero-out", 1)
    with pytest.raises(ValueError, match="n_clients is 5000, must be from 2 to 4,000"):
        big.score_canaries(seed_key(1), (1,), np.ones(5000, bool))
