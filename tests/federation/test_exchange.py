"""What clients send: its size, its first ranker, what a server makes of it, and how it is added up."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.summation import MaskedSum, OpenSum
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.protection import Protection
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import seed_key
from hushrank.types import DenseUpdate

KEY = seed_key(3)


def test_a_message_has_a_number_for_each_parameter_or_a_seed_and_one_or_two_rewards() -> None:
    assert UpdateExchange().count_bytes(46) == 4 * 46
    assert [Evolution(antithetic=both).count_bytes(46) for both in (True, False)] == [12, 8]


def test_only_evolution_strategies_start_at_zero_and_show_all_lists_at_once() -> None:
    assert not UpdateExchange().starts_at_zero and UpdateExchange().lists_at_once((4, 2)) == 1
    assert Evolution().starts_at_zero and Evolution().lists_at_once((4, 2)) == 4


def test_open_updates_are_weighed_and_sound_ones_divided_by_the_expected_cohort() -> None:
    """(1 * 4 + 3 * 0) / 4 = 1; clipped to norm .1 each: (.1 + 0) / 10 = .01."""
    learnt = [DenseUpdate(np.array([4.0, 0.0]), 1), DenseUpdate(np.zeros(2), 3)]
    for exchange, mean in ((UpdateExchange(), 1.0), (UpdateExchange(SoundGaussian(0.1, 0.0)), 0.01)):
        messages = [exchange.privatise(each, key=KEY) for each in learnt]
        found = exchange.combine(messages, n_params=2, cohort=10.0, key=KEY)
        assert found.tolist() == pytest.approx([mean, 0.0])


@pytest.mark.parametrize(
    ("protection", "least", "behind_a_sum"),
    [
        (UpdateExchange().protection, 1, 2),
        (PaperNoise(1.2, 3.0, 20), 20, 20),
        (SoundGaussian(0.1, 2.0, "clients", 8), 8, 8),
        (SoundGaussian(0.1, 2.0), 0, 0),  # the server's noise comes even where nobody answers
        (SoundGaussian(0.1, 0.0), 1, 2),
        (Evolution(p=0.5).protection, 1, 2),
    ],
)
def test_a_round_needs_those_who_make_its_noise(protection: Protection, least: int, behind_a_sum: int) -> None:
    assert protection.quorum().least == least and protection.quorum(is_secure=True).least == behind_a_sum


def test_one_program_serves_all_amounts_of_noise_and_no_other_mechanism() -> None:
    less, more = (UpdateExchange(PaperNoise(epsilon, 3.0, 20)).without_amount() for epsilon in (1.2, 4.5))
    assert less == more != UpdateExchange(PaperNoise(1.2, 5.0, 20)).without_amount()
    clipped = UpdateExchange(SoundGaussian(0.1, 0.0))
    assert clipped.without_amount() == clipped != UpdateExchange(SoundGaussian(0.1, 2.0)).without_amount()
    assert Evolution(p=0.5).without_amount() == Evolution(p=0.5)


def test_weights_are_clipped_by_the_published_mechanism_alone() -> None:
    """|(3, 4)| = 5, and Delta / 2 = 1.5."""
    weights = np.array([3.0, 4.0])
    assert PaperNoise(1.2, 3.0, 20).limit_weights(weights).tolist() == pytest.approx([0.9, 1.2])
    assert UpdateExchange(SoundGaussian(0.1, 2.0)).protection.limit_weights(weights) is weights


def test_a_secure_sum_costs_a_client_more_than_its_update() -> None:
    assert OpenSum().count_bytes(184, n_clients=10, n_params=46) == 184
    assert MaskedSum(SumFormat(1.0, 10)).count_bytes(184, n_clients=10, n_params=46) > 184
    assert MaskedSum(SumFormat(1.0, 10)).is_secure and OpenSum().format is None
