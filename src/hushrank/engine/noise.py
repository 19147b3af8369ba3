"""The noise of a round's sum, drawn on the host: what the fast engines add. NumPy only."""

from __future__ import annotations

import numpy as np

from hushrank.engine.setting import Method
from hushrank.federation.cohort import answer_mask, sample_ids
from hushrank.privacy.draws import noise_key
from hushrank.privacy.sum_format import SumFormat
from hushrank.types import Array


def sum_noise(method: Method, key: Array, round: int) -> Array:
    """[p] float64 in the sum of a round's updates; zeros without protection. key: of the cell."""

    def ids() -> Array:
        asked = sample_ids(method.population, key, round)
        return asked[answer_mask(method.population, key, round, asked)]

    own = noise_key(key, method.noise_number)
    return method.protection.sum_noise(method.n_sent, key=own, round=round, ids=ids, format=method.secure_sum)


def mean_noise(method: Method, key: Array, round: int) -> Array:
    """[p] float32 to add to the mean."""
    return np.asarray(sum_noise(method, key, round) / method.population.cohort_size, np.float32)


def noise_steps(method: Method, format: SumFormat, key: Array, round: int) -> Array:
    """[p] int64, the noise in a secure sum of weighted updates, in its whole numbers."""
    weight = 1 if method.counts_alike else method.population.interactions[0]  # of everybody, where there is noise
    return weight * np.rint(sum_noise(method, key, round) / format.step).astype(np.int64)
