"""Who takes part in a round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hushrank.federation.cohort import Population, answers, check_drawn, count_lost, sample_cohort, sample_ids
from hushrank.privacy.quorum import Quorum
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


def test_a_poisson_cohort_is_those_whose_own_draw_is_small() -> None:
    draws = {c: int(draw_bits(stream(KEY, Purpose.COHORT, 3, c), 1)[0]) for c in range(40)}
    expected = [c for c in range(40) if draws[c] < 2**32 * 10 // 40]
    assert [client.id for client in sample_cohort(Population(40, cohort=10, sampling="poisson"), KEY, 3)] == expected


def test_a_poisson_cohort_is_as_large_as_so_many_coins_say() -> None:
    rounds, population = 2000, Population(40, cohort=10, sampling="poisson")
    sizes = np.array([len(sample_ids(population, KEY, round)) for round in range(rounds)])
    spread = np.sqrt(40 * 0.25 * 0.75)  # binomial, p = 10 / 40
    assert sizes.mean() == pytest.approx(10, abs=4 * spread / np.sqrt(rounds))
    expected = rounds * stats.binom.pmf(np.arange(5, 16), 40, 0.25)
    counts = np.bincount(sizes, minlength=41)[5:16]
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 10) > 0.001


def test_whether_a_client_is_in_a_poisson_cohort_does_not_depend_on_the_others() -> None:
    """The same share of twice as many clients: those that are in both federations are drawn in both or in neither."""
    few, many = (sample_ids(Population(n, cohort=n // 4, sampling="poisson"), KEY, 7) for n in (40, 80))
    assert few.tolist() == [c for c in many if c < 40] and len(many) > len(few)


@pytest.mark.parametrize(("n", "size"), [(10, 1), (1000, 100), (10**6, 1000), (1000, 999), (2, 1)])
def test_a_poisson_cohort_is_larger_than_its_room_less_than_once_in_a_million_million_rounds(n: int, size: int) -> None:
    population = Population(n, cohort=size, sampling="poisson")
    assert stats.binom.sf(population.most_sampled, n, size / n) < 1e-12
    assert population.most_sampled <= max(stats.binom.isf(1e-12, n, size / n) * 1.1, 11)
    assert Population(n, cohort=size).most_sampled == size


def test_a_cohort_that_there_is_no_room_for_is_refused() -> None:
    population = Population(1000, cohort=100, sampling="poisson")
    check_drawn(population, population.most_sampled)
    with pytest.raises(ValueError, match="clients were drawn for a round, more than there is room for"):
        check_drawn(population, population.most_sampled + 1)


def test_everybody_is_in_a_poisson_cohort_of_everybody() -> None:
    assert len(sample_ids(Population(30, cohort=30, sampling="poisson"), KEY, 1)) == 30


def test_updates_get_lost_at_the_rate_of_the_dropout() -> None:
    n, population = 1500, Population(1500, dropout=0.3)
    arrived = np.mean([answers(population, KEY, 1, Client(c, 4)) for c in range(n)])
    assert arrived == pytest.approx(0.7, abs=4 * np.sqrt(0.3 * 0.7 / n))


def test_a_quorum_is_a_number_or_more_than_two_thirds_whichever_is_more() -> None:
    assert [Quorum().needed(n) for n in (0, 10)] == [1, 1] and Quorum(0).needed(10) == 0
    assert [Quorum(2, is_most=True).needed(n) for n in (0, 2, 3, 10, 100)] == [2, 2, 3, 7, 67]
    assert Quorum(80, is_most=True).needed(100) == 80
    assert Quorum(2, is_most=True).needed(np.array([3, 100])).tolist() == [3, 67]


def test_lost_rounds_are_those_in_which_too_few_answer() -> None:
    population = Population(10, cohort=6, dropout=0.4, sampling="poisson")
    answered = [
        sum(answers(population, KEY, round, client) for client in sample_cohort(population, KEY, round))
        for round in range(1, 31)
    ]
    assert count_lost(population, Quorum(4), KEY, range(1, 31)) == sum(n < 4 for n in answered) > 0
    assert count_lost(population, Quorum(0), KEY, range(1, 31)) == 0


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
        ({"n_clients": 5, "cohort": 2, "sampling": "random"}, "sampling is 'random', must be one of fixed, poisson"),
        ({"n_clients": 5, "sampling": "poisson"}, "sampling=poisson needs cohort"),
    ],
)
def test_a_population_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Population(**settings)
