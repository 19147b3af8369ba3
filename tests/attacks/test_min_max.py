"""Min-Max and Min-Sum: no further from honest updates than these are from each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from liars import KEY, honest_updates, send, view_of

from hushrank.attacks.min_max import PERTURBATIONS, MinMax, MinSum
from hushrank.types import Array


def test_three_updates_on_a_line_by_hand() -> None:
    own = np.array([[0.0], [1.0], [5.0]])  # mean 2; furthest apart: 5; squares of 5 to the others: 25 + 16 = 41
    # Min-Max: 2 - gamma is at most 5 from 5: gamma = 2. Min-Sum: gamma^2 * 3 + 4 + 1 + 9 = 41, gamma = 3.
    assert MinMax()(view_of(own), key=KEY).ravel().tolist() == [0.0] * 3
    np.testing.assert_allclose(MinSum()(view_of(own), key=KEY), -1.0)


def squares(points: Array, one: Array) -> Array:
    return np.asarray(((points - one) ** 2).sum(axis=1))


@given(st.integers(0, 10_000), st.sampled_from(PERTURBATIONS))
def test_the_bounds_are_met_and_not_exceeded(seed: int, perturbation: str) -> None:
    known = honest_updates(seed, n=6).astype(float)
    every = [squares(known, one) for one in known]
    largest = MinMax(perturbation=perturbation)(view_of(known), key=KEY)[0]
    assert squares(known, largest).max() == pytest.approx(max(each.max() for each in every))
    total = MinSum(perturbation=perturbation)(view_of(known), key=KEY)[0]
    assert squares(known, total).sum() == pytest.approx(max(each.sum() for each in every))


@pytest.mark.parametrize("name", ["min-max", "min-sum"])
def test_gamma_is_where_the_papers_halved_steps_end(name: str) -> None:
    updates = honest_updates(7)
    known = updates.astype(float)
    mean = known.mean(axis=0)
    away = -mean / np.linalg.norm(mean)
    every = [squares(known, one) for one in known]

    def is_allowed(gamma: float) -> bool:
        off = squares(known, mean + gamma * away)
        if name == "min-max":
            return bool(off.max() <= max(each.max() for each in every))
        return bool(off.sum() <= max(each.sum() for each in every))

    gamma, step = 50.0, 25.0  # [shejwalkar2021, Algorithm 1]
    while step > 1e-7:
        gamma += step if is_allowed(gamma) else -step
        step /= 2
    sent = send(name, updates, 2, knowledge="full")[0]
    np.testing.assert_allclose(sent, mean + gamma * away, atol=1e-5)


@pytest.mark.parametrize("name", ["min-max", "min-sum"])
def test_a_liar_alone_knows_no_distance_and_sends_what_it_learnt(name: str) -> None:
    updates = honest_updates(2)
    np.testing.assert_allclose(send(name, updates, 1), updates, rtol=1e-6)
