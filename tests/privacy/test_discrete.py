"""Discrete noise: the laws of the exact samplers and of their twins, and that no whole number is impossible."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pytest
from scipy import stats

from hushrank.privacy.discrete import Coins, sample_gaussian, sample_laplace, sample_laplace_shares, sample_poisson
from hushrank.privacy.draws import draw_discrete_gaussian, draw_discrete_laplace, draw_discrete_laplace_share
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import SoundLaplace
from hushrank.streams import ENTROPY, fold_in, seed_key
from hushrank.types import Array

KEYS = fold_in(seed_key(21), np.arange(500))
HIGH, LOW = 2**64 - 1, 0  # words: a coin that fails, a coin that comes up
REACH = 4000  # of the supports that laws are computed on


def coins_of(seed: int) -> Coins:
    """Whose bytes are the same every time."""
    return Coins(random.Random(seed).randbytes)


def scripted(*words: int) -> Coins:
    """Coins that are tossed with these words, in this order, and then with random ones."""
    coins = coins_of(0)
    coins._words = list(reversed(words))
    return coins


def laplace_law(scale: float, reach: int = REACH) -> Array:
    """[2 reach + 1] of the numbers from -reach to reach."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.asarray(weights / weights.sum())


def gaussian_law(variance: float, reach: int = REACH) -> Array:
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return np.asarray(weights / weights.sum())


def share_law(scale: float, n_shares: int, reach: int = 600) -> Array:
    """Of a difference of two Polya numbers."""
    polya = stats.nbinom(1 / n_shares, -np.expm1(-1 / scale)).pmf(np.arange(2 * reach + 1))
    return np.convolve(polya, polya[::-1])[reach : 3 * reach + 1]


def fits(sample: Iterable[int] | Array, law: Array) -> bool:
    """Not refuted by a chi-square test at a level of .001, of cells in which at least ten are expected."""
    seen = np.ravel(np.asarray(sample, np.int64)) + len(law) // 2
    assert seen.min() >= 0 and seen.max() < len(law)
    cells = np.minimum((np.cumsum(law) - law) * len(seen) / 20, 1e9).astype(np.int64)
    expected = np.bincount(cells, law * len(seen))
    counts = np.bincount(cells[seen], minlength=len(expected))
    kept = expected >= 10
    rest = max(expected[~kept].sum(), 1e-9)
    chi = ((counts - expected)[kept] ** 2 / expected[kept]).sum() + (counts[~kept].sum() - rest) ** 2 / rest
    return bool(stats.chi2(kept.sum()).sf(chi) > 0.001)


@pytest.mark.parametrize("scale", [1, 2, 7, 60])
def test_laplace_numbers_have_their_law_exactly_and_from_streams(scale: int) -> None:
    coins = coins_of(scale)
    assert fits([sample_laplace(coins, scale=scale) for _ in range(20_000)], laplace_law(scale))
    assert fits(draw_discrete_laplace(KEYS, 100, scale=scale), laplace_law(scale))
    assert not fits(draw_discrete_laplace(KEYS, 100, scale=scale), laplace_law(scale * 1.05))


@pytest.mark.parametrize("variance", [1, 3, 64, 2500])
def test_gaussian_numbers_have_their_law_exactly_and_from_streams(variance: int) -> None:
    coins, scale = coins_of(variance), int(variance**0.5) + 1
    exact = [sample_gaussian(coins, variance=variance, scale=scale) for _ in range(20_000)]
    assert fits(exact, gaussian_law(variance))
    assert fits(draw_discrete_gaussian(KEYS, 100, variance=variance), gaussian_law(variance))
    assert not fits(draw_discrete_gaussian(KEYS, 100, variance=variance), gaussian_law(variance * 1.1))


@pytest.mark.parametrize(("scale", "n_shares"), [(1, 2), (6, 2), (6, 5), (20, 40)])
def test_a_share_of_laplace_noise_is_a_difference_of_polya_numbers(scale: int, n_shares: int) -> None:
    law = share_law(scale, n_shares)
    assert fits(sample_laplace_shares(coins_of(1), 20_000, scale=scale, n_shares=n_shares), law)
    assert fits(draw_discrete_laplace_share(KEYS, 100, scale=scale, n_shares=n_shares), law)


def test_shares_add_up_to_one_laplace_number() -> None:
    exact = np.array([sample_laplace_shares(coins_of(i), 10_000, scale=9, n_shares=7) for i in range(7)])
    assert fits(exact.sum(axis=0), laplace_law(9))
    keys = fold_in(seed_key(3), np.arange(7 * 200)).reshape(7, 200, 2)
    assert fits(draw_discrete_laplace_share(keys, 100, scale=9, n_shares=7).sum(axis=0), laplace_law(9))


def test_large_numbers_have_the_law_in_their_first_digits_and_even_last_ones() -> None:
    """Where the grid is so fine that the first digits are as of continuous noise."""
    coins, scale = coins_of(5), 2**25 + 3
    gaussian = [sample_gaussian(coins, variance=scale**2, scale=scale + 1) for _ in range(10_000)]
    shares = np.array([sample_laplace_shares(coins, 3000, scale=scale, n_shares=3) for _ in range(3)]).sum(axis=0)
    for sample, law in (
        (np.array(gaussian), stats.norm(scale=scale)),
        (draw_discrete_gaussian(KEYS, 100, variance=scale**2), stats.norm(scale=scale)),
        (draw_discrete_laplace(KEYS, 100, scale=scale), stats.laplace(scale=scale)),
        (shares, stats.laplace(scale=scale)),
    ):
        assert stats.kstest(sample.ravel(), law.cdf).pvalue > 0.001
        assert stats.chisquare(np.bincount(sample.ravel() % 8, minlength=8)).pvalue > 0.001


def test_poisson_numbers_have_their_law() -> None:
    coins = coins_of(2)
    counts = np.bincount([sample_poisson(coins) for _ in range(20_000)], minlength=6)
    expected = 20_000 * np.append(stats.poisson(1).pmf(np.arange(5)), stats.poisson(1).sf(4))
    assert stats.chisquare(np.append(counts[:5], counts[5:].sum()), expected).pvalue > 0.001


def test_a_coin_compares_binary_digits_until_they_differ() -> None:
    """1/3 = .010101...: every 64 digits are (2^64 - 1) / 3."""
    third = (2**64 - 1) // 3
    assert scripted(third - 1).toss(1, 3) and not scripted(third + 1).toss(1, 3)
    assert scripted(third, third, third - 1).toss(1, 3) and not scripted(third, third, HIGH).toss(1, 3)
    assert scripted(HIGH).toss(1, 1) and not scripted(LOW, HIGH).toss(0, 1)


def test_coins_have_the_stated_probability() -> None:
    coins = coins_of(4)
    for toss, chance in ((partial(coins.toss_exp, 7, 3), np.exp(-7 / 3)), (coins.toss_two_over_e, 2 / np.e)):
        seen = sum(toss() for _ in range(40_000)) / 40_000
        assert seen == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 40_000))
    assert np.bincount([coins.draw_below(5) for _ in range(1000)]).min() > 150
    assert coins.draw_below(1) == 0 and max(coins.draw_below(2**100) for _ in range(9)) > 2**95


@pytest.mark.parametrize("size", [1, 2, 999, 1000, 60_001, 60_002, 60_003])
def test_every_whole_number_is_possible_however_far_out(size: int) -> None:
    """For scale 1000, at 60 scales: U = size % 1000 of ten bits, kept; then size // 1000 coins of e^-1 come up."""
    low, high = size % 1000, size // 1000
    words = [low << 54, HIGH, *high * [LOW, LOW, HIGH], LOW, HIGH]
    assert sample_laplace(scripted(*words, HIGH), scale=1000) == size
    assert sample_laplace(scripted(*words, LOW), scale=1000) == -size


def test_tails_are_as_dense_as_the_grid() -> None:
    """Noise of 52 bits, scale * -ln((b + 1/2) / 2^52), skips most of the grid beyond 8 scales, where b is small."""
    mechanism = SoundLaplace(1.0, 2.0**26)
    scale = mechanism.scale / mechanism.step
    steps = np.abs(mechanism.server_noise(200_000, key=seed_key(8))) / mechanism.step
    tail = steps[steps > 8 * scale]
    nearest = np.rint(np.exp(-tail / scale) * 2.0**52 - 0.5)
    is_coarse = np.abs(-scale * np.log((nearest + 0.5) / 2.0**52) - tail) < 0.6
    assert len(tail) > 40 and is_coarse.mean() < 0.5


DRAWS: list[Callable[[Array, int], Array]] = [
    partial(draw_discrete_laplace, scale=2**21),
    partial(draw_discrete_gaussian, variance=2**42),
    partial(draw_discrete_laplace_share, scale=2**21, n_shares=5),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_number_depends_on_its_key_and_place_alone(draw: Callable[[Array, int], Array]) -> None:
    together = draw(KEYS[:6], 40)
    assert together.dtype == np.int64 and together.shape == (6, 40)
    assert np.array_equal(together[4], draw(KEYS[4], 40)) and np.array_equal(together[4, :7], draw(KEYS[4], 7))
    assert np.array_equal(together.reshape(2, 3, 40), draw(KEYS[:6].reshape(2, 3, 2), 40))


@pytest.mark.parametrize("draw", DRAWS)
def test_entropy_is_drawn_exactly_and_new_every_time(draw: Callable[[Array, int], Array]) -> None:
    first, second = (draw(fold_in(ENTROPY, np.arange(3)), 200) for _ in range(2))
    assert first.shape == (3, 200) and np.sum(first != second) > 300


@pytest.mark.parametrize("kind", [SoundGaussian, SoundLaplace])
@pytest.mark.parametrize("placement", [(), ("clients", 2)])
def test_a_live_mechanism_asks_the_exact_samplers(
    kind: type[SoundGaussian | SoundLaplace], placement: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With bytes that are always the same a live draw is the exact sampler's, number by number."""
    monkeypatch.setattr("hushrank.privacy.draws.Coins", lambda _: coins_of(6))
    mechanism, coins = kind(0.1, 3.0, *placement), coins_of(6)
    draw = mechanism.client_noise if placement else mechanism.server_noise
    if isinstance(mechanism, SoundGaussian):
        variance = mechanism.variance_steps(2 if placement else 1)
        scale = int(np.floor(np.sqrt(variance))) + 1
        expected = [sample_gaussian(coins, variance=variance, scale=scale) for _ in range(9)]
    elif placement:
        expected = sample_laplace_shares(coins, 9, scale=mechanism.whole_scale, n_shares=2)
    else:
        expected = [sample_laplace(coins, scale=mechanism.whole_scale) for _ in range(9)]
    assert (draw(9, key=ENTROPY) / mechanism.step).tolist() == expected
