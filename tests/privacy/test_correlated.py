"""Correlated noise as a mechanism: the same numbers however they are asked for, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushrank.privacy.banded import BITS, column_norm
from hushrank.privacy.correlated import CorrelatedGaussian
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.named import make_sound_noise
from hushrank.privacy.protection import Exposure
from hushrank.streams import ENTROPY, seed_key
from hushrank.types import DenseUpdate, NamedArrays

KEY, N = seed_key(3), 30
NOISE = CorrelatedGaussian(0.1, 4.0, separation=5)
EXPOSED = Exposure(n_params=N, cohort=20, rounds=50, delta=1e-5, separation=5)


def test_a_round_has_the_same_noise_in_whatever_order_it_is_asked_for() -> None:
    in_turn = [NOISE.noise_at(N, key=KEY, round=round) for round in range(1, 13)]
    other = CorrelatedGaussian(0.1, 4.0, separation=5)
    for round in (12, 3, 7, 7, 1, 12):
        np.testing.assert_array_equal(other.noise_at(N, key=KEY, round=round), in_turn[round - 1])
    assert np.any(NOISE.noise_at(N, key=seed_key(4), round=2) != in_turn[1])


def test_a_live_server_that_remembers_draws_the_simulators_noise() -> None:
    """A round without a result is left out, and its noise comes with the next: their sum is the same."""
    past: NamedArrays = {}
    drawn = {}
    for round in (1, 2, 3, 6, 7, 12):
        drawn[round], past = NOISE.draw_in_turn(N, key=KEY, round=round, past=past)
    simulated = [NOISE.noise_at(N, key=KEY, round=round) for round in range(1, 13)]
    for round in (1, 2, 3, 7):
        np.testing.assert_array_equal(drawn[round], simulated[round - 1])
    np.testing.assert_allclose(drawn[6], sum(simulated[3:6]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(drawn[12], sum(simulated[7:12]), rtol=0, atol=1e-15)
    assert past["noise"].shape == (4, N) and past["noise"].dtype == np.int64


def test_noise_comes_from_the_operating_system_where_nothing_is_seeded() -> None:
    first, _ = NOISE.draw_in_turn(N, key=ENTROPY, round=1, past={})
    again, _ = NOISE.draw_in_turn(N, key=ENTROPY, round=1, past={})
    assert np.any(first != again)


def test_the_noise_of_a_round_is_as_large_as_it_must_be() -> None:
    """Of the first round it is fresh: the deviation is that of an answer's noise times the norm of a column."""
    many = NOISE.noise_at(50_000, key=KEY, round=1)
    assert many.std() == pytest.approx(0.4 * column_norm(5), rel=0.02)
    assert np.all(many / NOISE.step == np.rint(many / NOISE.step))


def test_an_answer_costs_what_it_costs_with_independent_noise_and_there_are_fewer() -> None:
    independent = SoundGaussian(0.1, 4.0)
    assert NOISE.price(EXPOSED) == independent.price(EXPOSED)
    resting = NOISE.explain(EXPOSED)
    restless = independent.explain(Exposure(n_params=N, cohort=20, rounds=10, delta=1e-5))
    assert resting["epsilon"] == pytest.approx(restless["epsilon"], abs=1e-6)  # 10 answers in 50 rounds
    assert resting["answers"] == 10 and resting["separation"] == 5
    assert "of which it answers at most one in 5, 10 in all" in resting["guarantee"]


def test_the_noise_for_an_epsilon_follows_from_the_answers() -> None:
    settings = {"mechanism": "correlated", "epsilon": 2.0, "clip_norm": 0.1}
    made = make_sound_noise(settings, EXPOSED)
    assert isinstance(made, CorrelatedGaussian) and made.separation == 5
    assert 1.99 < made.explain(EXPOSED)["epsilon"] <= 2.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"separation": 1}, "clients that rest"), ({"placement": "clients", "n_honest": 3}, "noise of the server")],
)
def test_what_it_cannot_be_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CorrelatedGaussian(0.1, 4.0, **{"separation": 5, **changes})  # type: ignore[arg-type]


def test_large_noise_over_many_rounds_fits_its_words() -> None:
    wide = CorrelatedGaussian(1e-3, 1e6, separation=200)
    total = np.zeros(5)
    for round in range(1, 301):
        total += wide.noise_at(5, key=KEY, round=round)
    assert np.abs(total).max() < 30 * wide.scale * column_norm(200)  # a number that did not fit would be far beyond
    assert wide.scale / wide.step * 2**BITS * column_norm(200) < 2.0**59


def test_a_round_without_noise_is_only_clipped() -> None:
    quiet = CorrelatedGaussian(0.5, 0.0, separation=3)
    sent = quiet.privatise(DenseUpdate(np.array([3.0, 4.0]), 2), key=KEY)
    assert math.hypot(*sent.delta) == pytest.approx(0.5)
    np.testing.assert_array_equal(quiet.noise_at(2, key=KEY, round=4), [0.0, 0.0])
