"""The weighted mean of updates, as a stream: `init, add, finish` need memory for one update, whatever the cohort.

`mean_gathered` is the mean where all of them are there at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hushrank.types import Array, Weighted


class MeanState(NamedTuple):
    """What has been added so far. (NumPy or JAX arrays alike: only operators are used.)"""

    total: Any  # [n_params] sum of weight * update
    weight: Any  # sum of weights


def mean_init(n_params: int) -> MeanState:
    return MeanState(np.zeros(n_params), 0.0)


def mean_add(state: MeanState, delta: Any, weight: Any) -> MeanState:
    return MeanState(state.total + weight * delta, state.weight + weight)


def mean_finish(state: MeanState) -> Any:
    """[n_params] sum of n_c / n * update_c [fpdgd, Eq. 10]; zero where nobody answered."""
    return state.total / (state.weight + (state.weight == 0))


def mean_aggregate(updates: Iterable[Weighted], *, n_params: int) -> Array:
    """[n_params] the weighted mean of the updates that arrived."""
    state = mean_init(n_params)
    for update in updates:
        state = mean_add(state, update.delta, update.weight)
    return np.asarray(mean_finish(state))


def mean_gathered(updates: Array, weights: Array) -> Array:
    """[n_params] the weighted mean of updates [n_clients, n_params], added one after another."""
    return np.asarray(np.add.reduce(weights[:, None] * updates, axis=0) / np.add.reduce(weights))
