"""Who takes part in a round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hushrank.cohort import Population, answers, sample_cohort
from hushrank.streams import Purpose, draw_bits, seed_key, stream
from hushrank.types import Client

KEY = stream(seed_key(31), 0, 1)


def test_everybody_takes_part_unless_a_cohort_is_set() -> None:
    population = Population(5, interactions=(1, 2, 4))
    expected = [Client(0, 1), Client(1, 2), Client(2, 4), Client(3, 1), Client(4, 2)]  # client c searches entry c mod 3
    assert sample_cohort(population, KEY, 1) == expected
    assert sample_cohort(Population(5, (1, 2, 4), cohort=5), KEY, 1) == expected


def test_a_cohort_is_those_with_the_smallest_draws() -> None:
    draws = {c: int(draw_bits(stream(KEY, Purpose.COHORT, 3, c), 1)[0]) for c in range(20)}
    smallest = sorted(sorted(draws, key=lambda c: draws[c])[:6])
    assert [client.id for client in sample_cohort(Population(20, cohort=6), KEY, 3)] == smallest


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 1000))
def test_clients_are_drawn_without_replacement_and_stand_in_order(n: int, size: int, round: int) -> None:
    ids = [client.id for client in sample_cohort(Population(n, cohort=min(size, n)), KEY, round)]
    assert len(ids) == min(size, n) == len(set(ids))
    assert ids == sorted(ids) and ids[-1] < n


def test_a_smaller_cohort_is_part_of_a_larger_one() -> None:
    small, large = ({client.id for client in sample_cohort(Population(50, cohort=size), KEY, 2)} for size in (5, 20))
    assert small < large


def test_every_client_is_as_likely_as_another() -> None:
    rounds, population = 800, Population(20, cohort=5)
    ids = [client.id for round in range(rounds) for client in sample_cohort(population, KEY, round)]
    counts = np.bincount(ids, minlength=20)
    expected, spread = rounds / 4, np.sqrt(rounds / 4 * 3 / 4)  # binomial, p = 5 / 20
    assert np.abs(counts - expected).max() < 4 * spread
    # Without replacement the counts of a round vary less, by (1 - p) n / (n - 1): 15/20 * 20/19.
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum() / (15 / 19), 19) > 0.01


def test_updates_get_lost_at_the_rate_of_the_dropout() -> None:
    n, population = 1500, Population(1500, dropout=0.3)
    arrived = np.mean([answers(population, KEY, 1, Client(c, 4)) for c in range(n)])
    assert arrived == pytest.approx(0.7, abs=4 * np.sqrt(0.3 * 0.7 / n))


def test_nobody_is_lost_without_dropout_and_nearly_everybody_near_certainty() -> None:
    clients = [Client(c, 4) for c in range(200)]
    assert all(answers(Population(200), KEY, 1, client) for client in clients)
    assert not any(answers(Population(200, dropout=0.9999), KEY, 1, client) for client in clients)


def test_whether_an_update_arrives_depends_on_the_client_and_the_round_alone() -> None:
    few, many = Population(50, dropout=0.5), Population(5000, (7,), cohort=10, dropout=0.5)
    seen = [[answers(p, KEY, r, Client(c, 4)) for r in (1, 2) for c in range(50)] for p in (few, many)]
    assert seen[0] == seen[1]
    assert seen[0][:50] != seen[0][50:]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clients": 0}, "n_clients is 0, must be at least 1"),
        ({"n_clients": 5, "interactions": (2, 0)}, r"interactions is \[2, 0\], must be at least 1"),
        ({"n_clients": 5, "cohort": 6}, "cohort is 6, must be from 1 to n_clients, which is 5"),
        ({"n_clients": 5, "dropout": 1.0}, "dropout is 1.0, must be from 0 to below 1"),
    ],
)
def test_a_population_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Population(**settings)
