"""The noise of a round's mean, drawn once for the whole sum: what the fast engines add. NumPy only."""

from __future__ import annotations

import numpy as np

from hushrank.engine.setting import Method
from hushrank.privacy.laplace import PaperNoise, sum_noise_as_laplace
from hushrank.streams import Purpose, stream
from hushrank.types import Array


def mean_noise(method: Method, key: Array, round: int) -> Array | None:
    """[p] float32 to add to the mean; None without protection. key: of the cell.

    A sound mechanism's server draws exactly this in the plain round too. Of the published mechanism only the sum's
    distribution is the same: there every client draws a share, here the shares' sum is one Laplace draw.
    """
    protection = method.protection
    if protection is None:
        return None
    noise_key = stream(key, Purpose.SERVER_NOISE, round)
    if isinstance(protection, PaperNoise):
        noise = sum_noise_as_laplace(method.n_params, scale=protection.scale, key=noise_key) / protection.n_clients
    else:
        noise = protection.server_noise(method.n_params, key=noise_key) / method.population.cohort_size
    return np.asarray(noise, np.float32)


def local_norms(method: Method) -> tuple[float, float, int, float]:
    """(norm of the weights, norm of the update, which norm that is, grid step); 0 where nothing is clipped."""
    protection = method.protection
    if protection is None:
        return 0.0, 0.0, 2, 0.0
    if isinstance(protection, PaperNoise):
        return protection.weight_norm, 0.0, 2, 0.0
    step = protection.step if protection.noise_multiplier > 0 else 0.0
    return 0.0, protection.clip_norm, protection.norm_order, step
