"""Normal, Laplace and Gamma numbers fine enough to hide behind: 52 bits of a stream each, in float64.

Why not those of `streams.py`: a float32 uniform number has 2^23 values, so its normal numbers end at 5.8 standard
deviations and Gamma numbers of a small shape lose what little they have. Shapes: keys are [2] or, batched, [..., 2].
"""

from __future__ import annotations

import math

import numpy as np

from hushrank.streams import draw_bits, draw_blocks, fold_in, stream
from hushrank.types import Array

_TRIALS = 16  # Why: a trial fails with probability below .05, so that all fail once in 2^69 numbers
_POWER, _BODY = 0, 1  # the two streams of a Gamma number


def draw_fine_uniform(key: Array, n: int) -> Array:
    """[..., n] float64 strictly between 0 and 1; draw i is both words of block i."""
    return _to_fine(draw_bits(key, 2 * n).reshape(*key.shape[:-1], n, 2))


def draw_fine_normal(key: Array, n: int) -> Array:
    """[..., n] standard normal numbers, up to 8.5 standard deviations from 0, by Box and Muller's transform."""
    pairs = draw_fine_uniform(key, 2 * n).reshape(*key.shape[:-1], n, 2)
    return _to_normal(pairs[..., 0], pairs[..., 1])


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


def _draw_gamma_above_one(key: Array, n: int, *, shape: float) -> Array:
    """[..., n] Gamma numbers of a shape of at least 1, by rejection [marsaglia2000].

    Trial t of number i takes blocks 3 i to 3 i + 2 of stream t, whatever happened to other numbers; the first trial
    that is accepted counts. After 16 failures the number is its most likely value.
    """
    d = shape - 1.0 / 3.0
    values = np.full(math.prod(key.shape[:-1]) * n, d)
    pending = np.arange(len(values))
    for trial in range(_TRIALS):
        owners, places = pending // n, pending % n
        blocks = (3 * places[:, None] + np.arange(3)).astype(np.uint32)
        words = draw_blocks(fold_in(key, np.asarray(trial)), owners, blocks)
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


def _to_normal(first: Array, second: Array) -> Array:
    return np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
