"""Gaussian noise on sums of clipped updates, at the server or in shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hushrank.aggregation.mean import mean_aggregate
from hushrank.privacy.clipping import grid_step
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import SoundLaplace
from hushrank.privacy.placement import Adjacency
from hushrank.streams import Purpose, fold_in, seed_key, stream
from hushrank.types import DenseUpdate, PrivateUpdate

KEYS = fold_in(stream(seed_key(4), Purpose.PRIVATISE, 1), np.arange(100))
SERVER_KEY = stream(seed_key(4), Purpose.SERVER_NOISE, 1)


def send(mechanism: SoundGaussian | SoundLaplace, *updates: DenseUpdate) -> list[PrivateUpdate]:
    return [mechanism.privatise(update, key=KEYS[i]) for i, update in enumerate(updates)]


def test_a_message_is_the_clipped_update_with_weight_one_whatever_was_learnt() -> None:
    busy, idle = send(SoundGaussian(1.0, 2.0), DenseUpdate(np.array([3.0, 4.0]), 7), DenseUpdate(np.zeros(2), 0))
    assert busy.delta == pytest.approx([0.6, 0.8], abs=grid_step(1.0)) and busy.weight == 1.0
    assert idle.delta.tolist() == [0.0, 0.0] and idle.weight == 1.0


def test_the_mean_divides_by_the_expected_cohort_not_by_who_answered() -> None:
    mechanism = SoundGaussian(1.0, 0.0)
    sent = send(mechanism, DenseUpdate(np.array([0.5, 0.0]), 4), DenseUpdate(np.array([0.0, 0.5]), 4))
    assert mechanism.combine(sent, n_params=2, cohort=4.0, key=SERVER_KEY).tolist() == [0.125, 0.125]


def test_without_noise_and_with_a_wide_norm_it_is_the_plain_mean() -> None:
    updates = [DenseUpdate(np.array([1.0, 2.0]), 4), DenseUpdate(np.array([3.0, -4.0]), 4)]
    mechanism = SoundGaussian(1e9, 0.0)
    sent = send(mechanism, *updates)
    assert np.array_equal(
        mechanism.combine(sent, n_params=2, cohort=2.0, key=SERVER_KEY), mean_aggregate(sent, n_params=2)
    )
    assert sent[0].guarantee.startswith("no guarantee")


def test_server_noise_has_the_stated_spread_and_stands_on_the_grid() -> None:
    noise = SoundGaussian(0.1, 25.0).server_noise(20_000, key=SERVER_KEY)
    assert stats.kstest(noise, stats.norm(scale=0.1 * 25.0).cdf).pvalue > 0.001
    assert np.array_equal(np.rint(noise / grid_step(0.1)) * grid_step(0.1), noise)


def test_shares_of_honest_clients_make_the_whole_noise() -> None:
    mechanism = SoundGaussian(0.1, 25.0, placement="clients", n_honest=100)
    sent = send(mechanism, *[DenseUpdate(np.zeros(2000), 0)] * 100)
    assert np.std(sent[0].delta) == pytest.approx(2.5 / math.sqrt(100), rel=4 / math.sqrt(2 * 2000))
    total = mechanism.combine(sent, n_params=2000, cohort=1.0, key=SERVER_KEY)
    assert stats.kstest(total, stats.norm(scale=2.5).cdf).pvalue > 0.001


@pytest.mark.parametrize("kind", [SoundGaussian, SoundLaplace])
def test_fewer_clients_than_the_noise_was_divided_for_are_refused(kind: Any) -> None:
    mechanism = kind(1.0, 2.0, placement="clients", n_honest=3)
    sent = send(mechanism, *[DenseUpdate(np.zeros(2), 4)] * 2)
    with pytest.raises(ValueError, match="2 clients answered, but the noise was divided among 3"):
        mechanism.combine(sent, n_params=2, cohort=3.0, key=SERVER_KEY)


def test_a_grid_that_is_too_coarse_for_a_share_is_refused() -> None:
    """2^20 clients leave 2^11 steps for a range of .1 and a little: 2^14 a unit, 1,638 for the clip norm. A share of
    .1 / 1,024 clip norms is .16 of a step, and rounding it would leave 7 % of its variance."""
    mechanism = SoundGaussian(0.1, 0.1, "clients", 2**20)
    format = mechanism.format_sum(n_clients=2**20, n_params=46, most_weight=1, largest=1.0)
    with pytest.raises(ValueError, match=r"one client's share of the noise has a standard deviation of 0\.16 steps"):
        mechanism.on_grid(format.step)
    enough = SoundGaussian(0.1, 26.0, "clients", 2**16)
    format = enough.format_sum(n_clients=2**16, n_params=46, most_weight=1, largest=1.0)
    assert enough.on_grid(format.step).step == format.step
    with pytest.raises(ValueError, match=r"a scale of 0\.8 steps"):
        SoundLaplace(0.1, 1.0, "clients", 10, least_step=0.125)


@pytest.mark.parametrize("kind", [SoundGaussian, SoundLaplace])
@pytest.mark.parametrize(("noise_multiplier", "n_honest"), [(26.0, 1), (400.0, 3), (2.0, 100)])
def test_a_message_with_noise_loses_nothing_as_float32(kind: Any, noise_multiplier: float, n_honest: int) -> None:
    """What is rounded on the way is no part of the sum that was accounted for."""
    mechanism = kind(0.1, noise_multiplier, "clients", n_honest)
    update = DenseUpdate(np.random.default_rng(0).uniform(-1, 1, 2000), 4)
    (sent,) = send(mechanism, update)
    assert np.array_equal(sent.delta.astype(np.float32).astype(np.float64), sent.delta)
    assert np.array_equal(np.rint(sent.delta / mechanism.step) * mechanism.step, sent.delta)


def test_all_messages_are_summed_on_the_grid_also_those_that_are_not_on_it() -> None:
    mechanism = SoundGaussian(0.1, 25.0)
    forged = PrivateUpdate(np.array([0.1234567891234567, -1e-9]), 1.0, "")
    total = mechanism.combine([forged], n_params=2, cohort=1.0, key=SERVER_KEY)
    assert np.array_equal(np.rint(total / mechanism.step) * mechanism.step, total)


def test_no_share_is_less_noise_than_is_accounted_for() -> None:
    """The variance of a share is rounded up to whole squared steps."""
    mechanism = SoundGaussian(0.1, 25.0, "clients", 97)
    whole = (25 * 0.1 / mechanism.step) ** 2 / 97
    assert whole <= mechanism.variance_steps(97) <= whole + 1 + 1e-9 * whole


def test_noise_is_repeatable_and_differs_between_clients() -> None:
    mechanism = SoundGaussian(1.0, 2.0, placement="clients", n_honest=2)
    first, second = send(mechanism, *[DenseUpdate(np.zeros(5), 4)] * 2)
    assert np.array_equal(first.delta, mechanism.privatise(DenseUpdate(np.zeros(5), 4), key=KEYS[0]).delta)
    assert not np.any(first.delta == second.delta)


def test_the_guarantee_says_who_is_protected_from_whom() -> None:
    (server,) = send(SoundGaussian(0.1, 25.0), DenseUpdate(np.zeros(2), 4))
    (client,) = send(SoundGaussian(0.1, 25.0, "clients", 90), DenseUpdate(np.zeros(2), 4))
    assert server.guarantee.startswith("no guarantee against whoever sees this message")
    assert "Gaussian noise of standard deviation 2.5" in server.guarantee
    assert "90 honest clients' shares make Gaussian noise" in client.guarantee
    assert "L2 norm at most 0.1" in client.guarantee


def test_a_round_costs_more_when_a_client_may_be_replaced() -> None:
    mechanism = SoundGaussian(0.1, 25.0)
    assert mechanism.spend().ratio == 1 / 25 and mechanism.spend(Adjacency.replace_one).ratio == 2 / 25
    with pytest.raises(ValueError, match="noise_multiplier is 0"):
        SoundGaussian(0.1, 0.0).spend()


@pytest.mark.parametrize("kind", [SoundGaussian, SoundLaplace])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0.0, 1.0), "the clip norm is 0.0, must be above 0"),
        ((1.0, -1.0), "noise_multiplier is -1.0, must be at least 0"),
        ((1.0, math.inf), "noise_multiplier is inf"),
        ((1.0, 1.0, "cloud"), "placement is 'cloud', must be one of server, clients"),
        ((1.0, 1.0, "clients"), "n_honest is None, must be at least 1"),
        ((1.0, 1.0, "clients", 0), "n_honest is 0, must be at least 1"),
        ((1.0, 1.0, "server", 5), "n_honest is 5, but the server adds the noise"),
    ],
)
def test_misuse_is_refused(kind: Any, values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(*values)


def test_a_cohort_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="the expected cohort is 0"):
        SoundGaussian(1.0, 1.0).combine([], n_params=2, cohort=0, key=SERVER_KEY)
