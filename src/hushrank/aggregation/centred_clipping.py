"""Centred clipping: updates are clipped around what was agreed on last time [karimireddy2021]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.geometric_median import lengths
from hushrank.aggregation.norm_bound import median_learnt, shares_within
from hushrank.keys import above_zero, at_least, key
from hushrank.types import Combined, Gathered


@dataclass(frozen=True, slots=True)
class CentredClipping:
    """v + the weighted mean of (update - v), each clipped to a radius; v is the centre that the round before left.

    Differs: clients send updates and not momenta, and the radius is the median distance of updates that are not
    zero unless it is given. The first centre is zero.
    """

    clip_radius: float | None = key(
        None,
        "distance from the centre up to which an update counts in full; default: the median of updates not 0",
        check=above_zero,
    )
    clip_steps: int = key(1, "times that the centre is moved in a round", check=at_least(1))

    def __call__(self, gathered: Gathered) -> Combined:
        updates = gathered.updates.astype(np.float64)
        centre = np.asarray(gathered.memory.get("centre", np.zeros(updates.shape[1])), dtype=np.float64)
        weights = gathered.weights / gathered.weights.sum(dtype=np.float64)
        for _ in range(self.clip_steps):
            away = updates - centre
            norms = lengths(away)
            radius = median_learnt(norms, updates) if self.clip_radius is None else self.clip_radius
            shares = shares_within(norms, radius)
            centre = centre + (weights * shares) @ away  # [karimireddy2021, Algorithm 2]
        return Combined(centre, memory={"centre": centre}, trust=shares)
