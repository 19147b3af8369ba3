"""Rounds for the tests of rules: updates of so many clients, as a server has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hushrank.types import Array, Gathered, NamedArrays


def make_round(
    updates: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    memory: NamedArrays | None = None,
) -> Gathered:
    """Updates [n, p], or [n] numbers of one parameter; everybody counts alike unless said otherwise."""
    rows = np.asarray(updates, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    counted = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    who = np.arange(len(rows)) if ids is None else np.asarray(ids)
    return Gathered(rows, counted, who, np.zeros(rows.shape[1]), 1, memory or {})


def random_round(seed: int, n: int, p: int) -> Gathered:
    generator = np.random.default_rng(seed)
    return make_round(generator.normal(size=(n, p)), weights=generator.integers(1, 9, n))


def reordered(gathered: Gathered, order: Array) -> Gathered:
    """The same round with its clients in another order."""
    return Gathered(
        gathered.updates[order], gathered.weights[order], gathered.ids[order], gathered.params, gathered.round
    )
