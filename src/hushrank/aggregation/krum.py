"""Krum and Multi-Krum: the updates that lie closest to their neighbours [blanchard2017; thesis, section 5.3.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.aggregation.distances import DISTANCES, EUCLIDEAN, iterate_distances
from hushrank.aggregation.mean import mean_gathered
from hushrank.keys import key
from hushrank.types import Array, Combined, Gathered


def krum_scores(updates: Array, assumed_malicious: int, distance: str = EUCLIDEAN) -> Array:
    """[n] s(i), the sum of the distances from i to the n - m - 2 others that are nearest to it.

    Differs: the thesis sums distances, Blanchard et al. their squares (`distance=squared`).
    """
    n_nearest = len(updates) - assumed_malicious - 2
    scores = np.empty(len(updates))
    for rows, distances in iterate_distances(updates, distance):
        distances.partition(n_nearest, axis=1)  # Why one more than it seems: everybody is nearest to himself, at 0
        scores[rows] = distances[:, : n_nearest + 1].sum(axis=1)
    return scores


@dataclass(frozen=True, slots=True)
class Krum:
    """The update with the smallest score; of equal scores the first. Weights do not count."""

    gives_one: ClassVar[bool] = True  # what comes out is one client's update

    assumed_malicious: int = 0  # m
    distance: str = key(EUCLIDEAN, "what is summed: distances between updates, or their squares", choices=DISTANCES)

    @property
    def n_needed(self) -> int:
        return max(self.assumed_malicious + 3, self.n_majority)  # n - m - 2 >= 1

    @property
    def n_majority(self) -> int:
        return 2 * self.assumed_malicious + 1

    @property
    def n_proven(self) -> int:
        return 2 * self.assumed_malicious + 3  # [blanchard2017, Proposition 4.2]

    def __call__(self, gathered: Gathered) -> Combined:
        scores = krum_scores(gathered.updates, self.assumed_malicious, self.distance)
        chosen = int(np.argmin(scores))  # [thesis, Eq. 5.2]
        trust = np.zeros(len(scores))
        trust[chosen] = 1
        return Combined(gathered.updates[chosen], memory=gathered.memory, trust=trust)


@dataclass(frozen=True, slots=True)
class MultiKrum(Krum):
    """The weighted mean of the n - m updates with the smallest scores."""

    gives_one: ClassVar[bool] = False

    def __call__(self, gathered: Gathered) -> Combined:
        scores = krum_scores(gathered.updates, self.assumed_malicious, self.distance)
        order = np.argsort(scores, kind="stable")
        chosen = np.sort(order[: len(scores) - self.assumed_malicious])  # f = n - m; in the order in which they came
        trust = np.zeros(len(scores))
        trust[chosen] = 1
        mean = mean_gathered(gathered.updates[chosen], gathered.weights[chosen])  # [thesis, Eq. 5.3]
        return Combined(mean, memory=gathered.memory, trust=trust)
