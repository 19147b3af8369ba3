"""How far one client can move the result: weights or updates scaled to a stated norm.

Noise hides a client only if its influence is bounded first. Shapes: [..., n_params]; each vector is scaled on its own.
"""

from __future__ import annotations

import math

import numpy as np

from hushrank.types import Array

_STEPS = 2**20  # of the grid per clip norm; Why: a clipped coordinate still fits into the 24 bits of a float32
_BELOW = 1.0 - 2.0**-40  # Why: rounding while scaling must not lift a norm above its bound


def clip_weights(params: Array, norm: float) -> Array:
    """The *weights* scaled to L2 norm at most `norm`: theta min(1, norm / |theta|) [fpdgd, Eq. 13].

    The learner applies it after every local step, to the weights themselves, before old ones are subtracted.
    """
    check_norm(norm)
    lengths = np.linalg.norm(np.asarray(params, dtype=np.float64), axis=-1, keepdims=True)
    return (params * (norm / np.maximum(lengths, norm))).astype(params.dtype)


def clip_update(delta: Array, norm: float, *, ord: int = 2) -> Array:
    """The *update* scaled to L1 or L2 norm at most `norm`, in float64: delta min(1, norm / |delta|)."""
    check_norm(norm)
    if ord not in (1, 2):
        raise ValueError(f"ord is {ord}, must be 1 (for Laplace noise) or 2 (for Gaussian noise).")
    exact = np.asarray(delta, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise ValueError("an update holds infinite or undefined numbers: it cannot be clipped.")
    lengths = np.linalg.norm(exact, ord=ord, axis=-1, keepdims=True)
    return np.where(lengths > norm, exact * (_BELOW * norm / np.maximum(lengths, norm)), exact)


def grid_step(clip_norm: float) -> float:
    """The power of two on whose multiples clipped updates and noise stand: at most clip_norm / 2^20.

    Why a grid: which floating-point numbers `update + noise` can be depends on the update, so the last digits would
    betray it [mironov2012]. On a grid both are whole numbers of steps, and so is the noise by its own law (`draws.py`),
    every number being possible: with a client and without the same sums are.
    """
    return 2.0 ** math.floor(math.log2(clip_norm / _STEPS))


def round_towards_zero(delta: Array, step: float) -> Array:
    """Multiples of `step`; no coordinate grows, so no norm does."""
    return np.trunc(delta / step) * step


def check_norm(norm: float) -> None:
    if not 0 < norm < math.inf:
        raise ValueError(f"the clip norm is {norm}, must be above 0 and finite: noise is measured in clip norms.")
