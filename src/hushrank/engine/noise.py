"""The noise of a round's sum, drawn on the host: what the fast engines add. NumPy only."""

from __future__ import annotations

import numpy as np

from hushrank.engine.setting import Method
from hushrank.federation.cohort import answer_mask, sample_ids
from hushrank.privacy.laplace import PaperNoise, sum_noise_as_laplace
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, fold_in, stream
from hushrank.types import Array

_BLOCK = 4096  # Why: clients whose shares are held at once


def sum_noise(method: Method, key: Array, round: int) -> Array:
    """[p] float64 in the sum of a round's updates; zeros without protection. key: of the cell.

    A sound mechanism's server and clients draw exactly this in the plain round too. Of the published mechanism only the
    sum's distribution is the same: there every client draws a share, here the shares' sum is one Laplace draw.
    """
    protection = method.protection
    if protection is None:
        return np.zeros(method.n_params)
    server_key = stream(key, Purpose.SERVER_NOISE, round)
    if isinstance(protection, PaperNoise):
        return sum_noise_as_laplace(method.n_params, scale=protection.scale, key=server_key)
    if protection.n_honest is None:
        return protection.server_noise(method.n_params, key=server_key)
    return sum_shares(method, protection, key, round)


def sum_shares(method: Method, protection: NoisySum, key: Array, round: int) -> Array:
    """[p] of all clients that answer: whole numbers of steps, so that no order of adding changes it."""
    asked = sample_ids(method.population, key, round)
    ids = asked[answer_mask(method.population, key, round, asked)]
    total = np.zeros(method.n_params)
    for first in range(0, len(ids), _BLOCK):
        keys = fold_in(stream(key, Purpose.PRIVATISE, round), ids[first : first + _BLOCK])
        shares = protection.client_noise(method.n_params, key=keys)
        if method.secure_sum is not None:
            room = method.secure_sum.largest - protection.clip_norm
            method.secure_sum.check_range(int(np.count_nonzero(np.abs(shares) > room)))
        total += shares.sum(axis=0)
    return total


def mean_noise(method: Method, key: Array, round: int) -> Array:
    """[p] float32 to add to the mean."""
    return np.asarray(sum_noise(method, key, round) / method.population.cohort_size, np.float32)


def noise_steps(method: Method, format: SumFormat, key: Array, round: int) -> Array:
    """[p] int64, the noise in a secure sum of weighted updates, in its whole numbers."""
    weight = 1 if method.counts_alike else method.population.interactions[0]  # of everybody, where there is noise
    return weight * np.rint(sum_noise(method, key, round) / format.step).astype(np.int64)


def local_norms(method: Method) -> tuple[float, float, int, float]:
    """(norm of the weights, norm of the update, which norm that is, grid step); 0 where nothing is clipped."""
    protection = method.protection
    if protection is None:
        return 0.0, 0.0, 2, 0.0
    if isinstance(protection, PaperNoise):
        return protection.weight_norm, 0.0, 2, 0.0
    step = protection.step if protection.noise_multiplier > 0 else 0.0
    return 0.0, protection.clip_norm, protection.norm_order, step
