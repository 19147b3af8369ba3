"""Laplace noise: as published, where n clients make it together, and soundly, on updates clipped in L1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hushrank.privacy.clipping import clip_weights, grid_step
from hushrank.privacy.draws import draw_fine_uniform, draw_gamma, draw_laplace
from hushrank.privacy.laplace import PaperNoise, SoundLaplace, draw_noise_share, sum_noise_as_laplace
from hushrank.privacy.named import PAPER_SETTINGS, make_paper_noise, published_sensitivity
from hushrank.streams import ENTROPY, Purpose, draw_bits, fold_in, seed_key, stream
from hushrank.types import Array, DenseUpdate


def client_keys(n: int, seed: int = 3) -> Array:
    """[n, 2] as a round makes them."""
    return fold_in(stream(seed_key(seed), Purpose.PRIVATISE, 1), np.arange(n))


def fits(sample: Array, distribution: Any) -> bool:
    """Not refuted by a Kolmogorov-Smirnov test at a level of .001."""
    return bool(stats.kstest(np.ravel(sample), distribution.cdf).pvalue > 0.001)


def test_draws_have_their_distributions() -> None:
    keys = client_keys(200)
    assert fits(draw_fine_uniform(keys, 100), stats.uniform())
    assert fits(draw_laplace(keys, 100), stats.laplace())


@pytest.mark.parametrize("shape", [1.0, 0.5, 0.1, 0.001])
def test_gamma_numbers_are_right_also_for_tiny_shapes(shape: float) -> None:
    sample = draw_gamma(client_keys(200), 100, shape=shape)
    if shape > 0.01:
        assert fits(sample, stats.gamma(shape))
    else:  # about half underflow to 0: compare the rest above a threshold
        seen, chance = np.mean(sample > 1e-6), stats.gamma(shape).sf(1e-6)  # .0132
        assert seen == pytest.approx(chance, abs=4 * math.sqrt(chance / sample.size))
        assert fits(sample[sample > 1e-6], Above(stats.gamma(shape), 1e-6))


class Above:
    """A distribution given that it is above a threshold."""

    def __init__(self, whole: Any, threshold: float) -> None:
        self.whole, self.threshold = whole, threshold

    def cdf(self, x: Array) -> Array:
        return np.asarray(1 - self.whole.sf(x) / self.whole.sf(self.threshold))


def test_the_operating_systems_entropy_has_the_distributions_too() -> None:
    """At a level of 1e-9, because these draws are others every time."""
    for sample, distribution in (
        (draw_laplace(ENTROPY, 20_000), stats.laplace()),
        (draw_gamma(ENTROPY, 20_000, shape=0.5), stats.gamma(0.5)),
    ):
        assert stats.kstest(sample, distribution.cdf).pvalue > 1e-9


def test_noise_from_entropy_is_new_every_time() -> None:
    update = DenseUpdate(np.zeros(20), 4)
    for protection in (PaperNoise(1.2, 3.0, 2), SoundLaplace(0.1, 1.0, "clients", 2)):
        first, second = (protection.privatise(update, key=ENTROPY).delta for _ in range(2))
        assert np.sum(first != 0) > 15 and np.sum(first != second) > 15  # one of 20 may be rounded to 0 by chance


def test_a_gamma_number_depends_on_its_key_and_place_alone() -> None:
    keys = client_keys(5)
    together = draw_gamma(keys, 40, shape=0.01)
    assert np.array_equal(together[3], draw_gamma(keys[3], 40, shape=0.01))
    assert np.array_equal(together[3, :7], draw_gamma(keys[3], 7, shape=0.01))


def test_fine_draws_are_the_upper_52_bits_of_a_block() -> None:
    high, low = map(int, draw_bits(seed_key(5), 2))
    assert draw_fine_uniform(seed_key(5), 1)[0] == ((high << 20 | low >> 12) + 0.5) / 2**52


@pytest.mark.parametrize("n_clients", [1, 10, 1000])
def test_the_sum_of_all_clients_noise_is_laplace(n_clients: int) -> None:
    noise = PaperNoise(4.5, 5.0, n_clients)
    shares = draw_noise_share(client_keys(n_clients), 2000, scale=noise.scale, n_shares=n_clients)
    assert fits(shares.sum(axis=0), stats.laplace(scale=5.0 / 4.5))


def test_the_sum_may_be_drawn_at_once() -> None:
    assert fits(sum_noise_as_laplace(20_000, scale=2.5, key=seed_key(9)), stats.laplace(scale=2.5))


def test_most_of_a_single_upload_carries_no_noise_at_all() -> None:
    """What FACTS says of the published mechanism: at n = 1,000 about nine of ten float32 numbers are 0."""
    shares = draw_noise_share(client_keys(20), 1000, scale=1.0, n_shares=1000)
    chance = 1 - np.mean(draw_gamma(client_keys(20), 1000, shape=0.001).astype(np.float32) == 0)
    assert chance == pytest.approx(0.1, abs=0.01)
    assert np.mean(np.abs(shares) < 1e-6) > 0.97


def test_an_upload_is_the_change_of_clipped_weights_plus_noise_weighed_as_published() -> None:
    noise = PaperNoise(2.3, 3.0, 10)
    old = np.array([0.5, -0.5, 0.1], dtype=np.float32)
    new = clip_weights(old + np.array([2.0, 0.0, 0.0], dtype=np.float32), noise.weight_norm)
    assert np.linalg.norm(new) == pytest.approx(1.5)  # Delta / 2
    sent = noise.privatise(DenseUpdate(new - old, 4), key=client_keys(1)[0])
    share = draw_noise_share(client_keys(1)[0], 3, scale=3.0 / 2.3, n_shares=10)
    assert sent.delta == pytest.approx(new - old + share, rel=1e-6)
    assert sent.weight == 4.0 and sent.delta.dtype == np.float32


def test_the_published_code_clips_to_twice_the_norm() -> None:
    assert PaperNoise(2.3, 3.0, 10).weight_norm == 1.5
    assert PaperNoise(2.3, 3.0, 10, variant="published-code").weight_norm == 3.0


def test_the_guarantee_says_what_the_paper_does_not() -> None:
    sent = PaperNoise(1.2, 3.0, 1000).privatise(DenseUpdate(np.zeros(46), 4), key=seed_key(1))
    assert "epsilon 1.2 of one round with Delta 3" in sent.guarantee
    assert "clipped in L2, but Laplace noise needs L1" in sent.guarantee
    assert f"up to {1.2 * math.sqrt(46):.4g} with 46 parameters" in sent.guarantee
    assert "only if all 1000 clients take part with equal weights" in sent.guarantee
    assert (
        "never see a single upload" in sent.guarantee and "every further round spends as much again" in sent.guarantee
    )


def test_published_settings_bring_their_sensitivity() -> None:
    pairs = [(each.epsilon, each.sensitivity, each.p) for each in PAPER_SETTINGS.values()]
    assert pairs == [(1.2, 3, 0.25), (2.3, 3, 0.5), (4.5, 5, 0.9), (10, 5, 1.0)]
    assert make_paper_noise({"epsilon": 4.5, "n_clients": 1000}) == PaperNoise(4.5, 5.0, 1000)
    assert published_sensitivity(2.3) == 3.0
    with pytest.raises(ValueError, match=r"Delta was published for 1.2, 2.3, 4.5, 10"):
        published_sensitivity(3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, 3, 10), "epsilon is 0, must be above 0 and finite"),
        ((math.inf, 3, 10), "To run without noise, set privacy=none"),
        ((1, 0, 10), "sensitivity is 0"),
        ((1, 3, 0), "n_clients is 0, must be at least 1"),
        ((1, 3, 10, "other"), "variant is 'other', must be one of paper, published-code"),
    ],
)
def test_misuse_of_the_published_mechanism_is_refused(values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PaperNoise(*values)


def test_mechanisms_hash_and_print() -> None:
    assert {PaperNoise(1.2, 3.0, 10): 1}[PaperNoise(1.2, 3.0, 10)] == 1
    assert "clip_norm=0.1, noise_multiplier=2.0, placement='server'" in repr(SoundLaplace(0.1, 2.0))


def test_sound_noise_at_the_server_is_one_laplace_draw_of_the_right_scale() -> None:
    noise = SoundLaplace(0.5, 4.0).server_noise(20_000, key=seed_key(2))
    assert fits(noise, stats.laplace(scale=0.5 * 4.0))
    assert np.all(np.rint(noise / grid_step(0.5)) * grid_step(0.5) == noise)


def test_sound_noise_at_the_clients_sums_to_laplace() -> None:
    sound, keys = SoundLaplace(0.5, 4.0, placement="clients", n_honest=50), client_keys(50)
    nothing = DenseUpdate(np.zeros(2000), 0)
    messages = [sound.privatise(nothing, key=key) for key in keys]
    total = sound.combine(messages, n_params=2000, cohort=1.0, key=seed_key(0))
    assert fits(total, stats.laplace(scale=2.0))
    assert {message.weight for message in messages} == {1.0}


def test_a_round_of_sound_laplace_costs_its_pure_epsilon() -> None:
    assert SoundLaplace(0.5, 4.0).spend().ratio == 1 / 4
    assert SoundLaplace(0.5, 4.0).spend("replace-one").ratio == 2 / 4
    with pytest.raises(ValueError, match="adjacency is 'some', must be one of zero-out, replace-one, add-remove"):
        SoundLaplace(0.5, 4.0).spend("some")
    with pytest.raises(ValueError, match="without noise there is no guarantee"):
        SoundLaplace(0.5, 0.0).spend()
