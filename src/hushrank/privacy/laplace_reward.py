"""Laplace noise on rewards that can take any value in a stated range: what [foltr-es, section 3.3] leaves as an idea.

One interaction can move its reward by at most the range, so Laplace noise of scale range / epsilon gives it local
differential privacy of epsilon, on the device, against everybody. Shapes: rewards [n_directions, n_interactions].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushrank.privacy.randomised_response import describe_guarantee, explain_spending
from hushrank.types import Array, PrivateReward, SeedReward

_STEPS = 2**10  # Why: see add_laplace
_SCALES = 10.0  # Why: see add_laplace
_LARGEST = 20.0  # Why: see add_laplace


def privatise_range_reward(raw: SeedReward, *, low: float, high: float, epsilon: float, draws: Array) -> PrivateReward:
    """Each interaction's reward with Laplace noise, then the mean of each direction.

    low, high: between which a reward lies; one outside is refused. epsilon: of one interaction. draws [n_directions,
    n_interactions, 2] uint32.
    """
    means = add_laplace(raw.rewards, low=low, high=high, epsilon=epsilon, draws=draws).mean(axis=-1)
    guarantee = describe_guarantee(epsilon, n_interactions=raw.rewards.size)
    return PrivateReward(raw.seed, tuple(map(float, means.astype(np.float32))), guarantee)


def add_laplace(rewards: Array, *, low: float, high: float, epsilon: float, draws: Array) -> Array:
    """[...] each reward plus Laplace noise of scale (high - low) / epsilon.

    Why rounded and cut off: which floating-point numbers `reward + noise` can be depends on the reward, so the last
    digits would betray it. So the sum is moved into `noisy_range`, ten scales beyond the range, and rounded to 1,024
    steps per scale. The rarest step, e^-(10 + epsilon) / 2048, still has 850 of the 2^64 draws at epsilon = 20, so that
    epsilon holds to within 1/850.
    """
    _check_range(low, high, epsilon)
    rewards = np.asarray(rewards, dtype=np.float64)
    if not np.all((rewards >= low) & (rewards <= high)):
        raise ValueError(f"a reward is outside the stated range from {low} to {high}: it cannot be privatised.")
    if np.shape(draws) != (*rewards.shape, 2) or np.asarray(draws).dtype != np.uint32:
        raise ValueError(f"draws are {np.shape(draws)}, must be two uint32 words for each of {rewards.shape} rewards.")
    scale = (high - low) / epsilon
    noisy = np.clip(rewards + scale * _standard_laplace(draws), *noisy_range(low, high, epsilon=epsilon))
    return np.round((noisy - low) / scale * _STEPS) / _STEPS * scale + low


def _standard_laplace(draws: Array) -> Array:
    """[...] of scale 1 from 64 bits each: one is the sign, -ln(u) of the other 63 the size."""
    bits = (draws[..., 0].astype(np.uint64) << np.uint64(31)) | (draws[..., 1] >> np.uint32(1)).astype(np.uint64)
    sign = 1.0 - 2.0 * (draws[..., 1] & np.uint32(1)).astype(np.float64)
    return -sign * np.log((bits.astype(np.float64) + 0.5) * 2.0**-63)


def noisy_range(low: float, high: float, *, epsilon: float) -> tuple[float, float]:
    """Between which a privatised reward lies: a server refuses others."""
    _check_range(low, high, epsilon)
    reach = _SCALES * (high - low) / epsilon
    return low - reach, high + reach


def explain_noise(
    *, low: float, high: float, epsilon: float | None, n_interactions: int = 1, rounds: int = 1
) -> dict[str, Any]:
    """Which noise a wanted epsilon needs: as JSON."""
    if epsilon is None:
        raise ValueError("give epsilon: Laplace noise follows from it and the range.")
    reach = noisy_range(low, high, epsilon=epsilon)
    spent = explain_spending(epsilon, n_interactions=n_interactions, rounds=rounds)
    noise = {"range": [low, high], "scale": (high - low) / epsilon, "sent": list(reach)}
    return {"mechanism": "laplace-reward", **noise, **spent}


def _check_range(low: float, high: float, epsilon: float) -> None:
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"the range goes from {low} to {high}, must be finite and ascending.")
    if not 0 < epsilon <= _LARGEST:
        raise ValueError(
            f"epsilon is {epsilon}, must be above 0 and at most {_LARGEST:g}, beyond which noise hides nothing. "
            "To run without noise, set privacy=none."
        )
