"""Noise from streams: whole numbers for the sound mechanisms, Laplace and Gamma numbers of 52 bits for the published.

The whole numbers are the simulator's quick twins of `discrete.py`: same law, from the stream of a key, number i from
its own blocks alone, so that batches change no bit. Only their coins are inexact, 64-bit uniform numbers compared with
float64 probabilities: no event is more than about 2^-45 likelier or less likely than the formula says. Where the key
is `ENTROPY`, the exact samplers draw in their place.

Why not the numbers of `streams.py`: a float32 uniform number has 2^23 values, so Gamma numbers of a small shape lose
what little they have. Shapes: keys are [2] or, batched, [..., 2].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from hushrank.privacy.discrete import Coins, sample_gaussian, sample_laplace, sample_laplace_shares
from hushrank.streams import Entropy, Purpose, draw_bits, draw_blocks, fold_in, stream
from hushrank.types import Array

_TRIALS = 16  # Why: a trial fails with probability below .05, so that all fail once in 2^69 numbers
_POWER, _BODY = 0, 1  # the two streams of a Gamma number
_COUNT, _POINTS = 0, 1  # the streams of a share: how many points it has, and which
_PARTS = 8  # Why: of a scale that a proposal spans; a smaller one is accepted more often, a larger one drawn quicker


def draw_fine_uniform(key: Array, n: int) -> Array:
    """[..., n] float64 strictly between 0 and 1; draw i is both words of block i."""
    return _to_fine(draw_bits(key, 2 * n).reshape(*key.shape[:-1], n, 2))


def draw_laplace(key: Array, n: int) -> Array:
    """[..., n] Laplace numbers of scale 1: one bit is the sign, -ln(u) of 52 others the size."""
    words = draw_bits(key, 2 * n).reshape(*key.shape[:-1], n, 2)
    sign = 1.0 - 2.0 * (words[..., 1] & np.uint32(1)).astype(np.float64)
    return -sign * np.log(_to_fine(words))


def draw_gamma(key: Array, n: int, *, shape: float) -> Array:
    """[..., n] Gamma numbers of scale 1 and a shape above 0 and at most 1: Gamma(1 + shape) * U^(1 / shape).

    Why in logarithms: at shape 1/1000 the power is U^1000, which float64 holds for about half of all U and float32
    for a tenth. What is smaller becomes exactly 0, as it must.
    """
    if not 0 < shape <= 1:
        raise ValueError(f"shape is {shape}, must be above 0 and at most 1.")
    log_power = np.log(draw_fine_uniform(stream(key, _POWER), n)) / shape
    with np.errstate(under="ignore"):
        return np.exp(np.log(_draw_gamma_above_one(stream(key, _BODY), n, shape=1.0 + shape)) + log_power)


def draw_discrete_laplace(key: Array, n: int, *, scale: int) -> Array:
    """[..., n] int64 x with probability proportional to e^(-|x| / scale); twin of `sample_laplace`."""
    if isinstance(key, Entropy):
        coins = Coins(key.reader())
        return _from_entropy(key, n, lambda m: [sample_laplace(coins, scale=scale) for _ in range(m)])
    return _draw_by_trials(key, n, scale=scale, variance=None)


def draw_discrete_gaussian(key: Array, n: int, *, variance: int) -> Array:
    """[..., n] int64 x with probability proportional to e^(-x^2 / (2 variance)); twin of `sample_gaussian`."""
    scale = math.isqrt(variance) + 1
    if isinstance(key, Entropy):
        coins = Coins(key.reader())
        draw = partial(sample_gaussian, coins, variance=variance, scale=scale)
        return _from_entropy(key, n, lambda m: [draw() for _ in range(m)])
    return _draw_by_trials(key, n, scale=scale, variance=variance)


def draw_discrete_laplace_share(key: Array, n: int, *, scale: int, n_shares: int) -> Array:
    """[..., n] int64 of which n_shares add up to a discrete Laplace number; twin of `sample_laplace_shares`.

    The points of `sample_laplace_shares` are, together, a Poisson number of logarithmic ones, here drawn at once: a
    point is geometric of a parameter 1 - (1 - q)^U for a uniform U [kemp1981].
    """
    if n_shares == 1:
        return draw_discrete_laplace(key, n, scale=scale)
    if isinstance(key, Entropy):
        coins = Coins(key.reader())
        return _from_entropy(key, n, lambda m: sample_laplace_shares(coins, m, scale=scale, n_shares=n_shares))
    log_rest = math.log(-math.expm1(-1.0 / scale))  # ln(1 - q)
    counts = _count_points(draw_fine_uniform(stream(key, _COUNT), n).ravel(), mean=-2.0 * log_rest / n_shares)
    values, points = np.zeros(len(counts), np.int64), stream(key, _POINTS)
    for point in range(int(counts.max(initial=0))):
        pending = np.flatnonzero(counts > point)
        words = _draw_words(fold_in(points, np.asarray(point)), pending, n, n_blocks=2)
        log_miss = np.log1p(-np.exp(log_rest * _to_fine(words[:, 0])))  # ln of the geometric number's parameter
        size = 1 + np.floor(_to_exponential(words[:, 1]) / -log_miss).astype(np.int64)
        values[pending] += np.where(words[:, 0, 1] & np.uint32(1), -size, size)
    return values.reshape(*key.shape[:-1], n)


def _from_entropy(key: Array, n: int, draw: Callable[[int], list[int]]) -> Array:
    return np.array(draw(math.prod(key.shape[:-1]) * n), np.int64).reshape(*key.shape[:-1], n)


def _draw_by_trials(key: Array, n: int, *, scale: int, variance: int | None) -> Array:
    """[..., n] discrete Laplace numbers, accepted as Gaussian ones where there is a variance.

    Trial t of number i takes blocks 3 i to 3 i + 2 of stream t, whatever happened to other numbers. A size is V W + U:
    U uniform below a power of two W, V geometric of ratio e^(-W / scale), kept with probability e^(-U / scale) times,
    for Gaussian numbers, that of [canonne2020, Algorithm 3].
    """
    width = 1 << max(scale // _PARTS, 1).bit_length() - 1
    values = np.zeros(math.prod(key.shape[:-1]) * n, np.int64)
    pending, trial = np.arange(len(values)), 0
    while len(pending):
        words = _draw_words(fold_in(key, np.asarray(trial)), pending, n, n_blocks=3)
        low = _to_long(words[:, 1]) & np.uint64(width - 1)
        high = np.floor(_to_exponential(words[:, 0]) * (scale / width)).astype(np.int64)
        size = high * width + low.astype(np.int64)
        is_negative = words[:, 1, 0] >> np.uint32(31) == 1
        distance = low.astype(np.float64) / scale
        if variance is not None:
            distance += (size - variance / scale) ** 2 / (2.0 * variance)
        is_kept = (_to_exponential(words[:, 2]) > distance) & ((size > 0) | ~is_negative)
        values[pending[is_kept]] = np.where(is_negative, -size, size)[is_kept]
        pending, trial = pending[~is_kept], trial + 1
    return values.reshape(*key.shape[:-1], n)


def _draw_words(key: Array, pending: Array, n: int, *, n_blocks: int) -> Array:
    """[len(pending), n_blocks, 2] the blocks of numbers that stand at `pending` among n for each key."""
    blocks = (n_blocks * (pending % n)[:, None] + np.arange(n_blocks)).astype(np.uint32)
    return draw_blocks(key, pending // n, blocks)


def _count_points(uniform: Array, *, mean: float) -> Array:
    """[...] Poisson numbers of this mean by inversion of uniform ones [...]."""
    chance = reached = math.exp(-mean)
    counts, k = np.zeros(uniform.shape, np.int64), 0
    while np.any(uniform > reached) and chance > 0:
        counts[uniform > reached] += 1
        k += 1
        chance *= mean / k
        reached += chance
    return counts


def _draw_gamma_above_one(key: Array, n: int, *, shape: float) -> Array:
    """[..., n] Gamma numbers of a shape of at least 1, by rejection [marsaglia2000].

    Trial t of number i takes blocks 3 i to 3 i + 2 of stream t, whatever happened to other numbers; the first trial
    that is accepted counts. After 16 failures the number is its most likely value.
    """
    d = shape - 1.0 / 3.0
    values = np.full(math.prod(key.shape[:-1]) * n, d)
    pending = np.arange(len(values))
    for trial in range(_TRIALS):
        words = _draw_words(fold_in(key, np.asarray(trial)), pending, n, n_blocks=3)
        first, second, third = np.moveaxis(_to_fine(words), -1, 0)
        x = _to_normal(first, second)
        v = np.maximum(1.0 + x / np.sqrt(9.0 * d), 0.0) ** 3
        with np.errstate(divide="ignore"):
            is_accepted = np.log(third) < 0.5 * x**2 + d * (1.0 - v + np.log(v))
        values[pending[is_accepted]] = d * v[is_accepted]
        pending = pending[~is_accepted]
        if not len(pending):
            break
    return values.reshape(*key.shape[:-1], n)


def _to_fine(words: Array) -> Array:
    """[...] (b + 1/2) / 2^52 for the upper 52 bits b of two words [..., 2]."""
    bits = (words[..., 0].astype(np.uint64) << np.uint64(20)) | (words[..., 1] >> np.uint32(12)).astype(np.uint64)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def _to_long(words: Array) -> Array:
    """[...] uint64 of two words [..., 2]."""
    return (words[..., 0].astype(np.uint64) << np.uint64(32)) | words[..., 1]


def _to_exponential(words: Array) -> Array:
    """[...] -ln((b + 1/2) / 2^64) of two words [..., 2]: exponential numbers up to 45."""
    return 64.0 * math.log(2.0) - np.log(_to_long(words).astype(np.float64) + 0.5)


def _to_normal(first: Array, second: Array) -> Array:
    return np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)


def noise_key(key: Array, number: int | None) -> Array:
    """Of all noise in a training. number: of one that repeats rounds of another; None: it repeats none.

    Why: who knows the rankers of both could subtract them, and the same noise would cancel.
    """
    return key if number is None else stream(key, Purpose.FORGET, number)
