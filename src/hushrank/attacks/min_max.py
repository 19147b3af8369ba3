"""Min-Max and Min-Sum: as far from the honest mean as honest updates are from each other [shejwalkar2021]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.distances import SQUARED, iterate_distances
from hushrank.attacks.knowledge import explain_no_spread, knowledge_key, known_updates, send_alike
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView

PERTURBATIONS = ("unit", "std", "sign")


def perturbation_key() -> str:
    return setting("unit", "direction away from the honest mean: unit (backwards), std or sign", choices=PERTURBATIONS)


def perturb(known: Array, perturbation: str) -> Array:
    """[n_params] the direction in which forged updates leave the mean [shejwalkar2021, Section IV-B1]."""
    mean = known.mean(axis=0)
    if perturbation == "std":
        return -known.std(axis=0)
    if perturbation == "sign":
        return -np.sign(mean)
    length = np.sqrt(mean @ mean)
    return -mean / length if length > 0 else np.zeros_like(mean)


@dataclass(frozen=True)
class MinMax:
    """All send mean + gamma * perturbation, with the largest gamma at which nobody known is further from it than the
    two that are furthest apart [shejwalkar2021, Eq. 8].

    Differs: gamma is the root of a quadratic, where the paper halves its steps towards it.
    """

    knowledge: str = knowledge_key()
    perturbation: str = perturbation_key()

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        known = known_updates(view).astype(np.float64)
        away = perturb(known, self.perturbation)
        return send_alike(view, known.mean(axis=0) + self.find_gamma(known, away) * away)

    def why_harmless(self, *, n_clients: int, n_malicious: int) -> str | None:
        """Why these malicious clients lie about nothing; None: they do."""
        del n_clients
        return explain_no_spread(self.knowledge, n_malicious=n_malicious)

    def find_gamma(self, known: Array, away: Array) -> float:
        """max over i of |a_i + gamma p| = the largest distance, a_i = mean - known_i."""
        apart = known.mean(axis=0) - known
        most = max(squares.max() for _, squares in iterate_distances(known, SQUARED))
        return float(largest_root(float(away @ away), apart @ away, (apart**2).sum(axis=1) - most).min())


@dataclass(frozen=True)
class MinSum(MinMax):
    """The same, with the sum of squared distances to all known where the largest distance was [shejwalkar2021, Eq. 9]:
    it may be that of whoever of them is furthest from the others."""

    def find_gamma(self, known: Array, away: Array) -> float:
        """sum over i of |a_i + gamma p|^2 = the largest such sum of an honest update; the a_i add up to 0."""
        apart, n = known.mean(axis=0) - known, len(known)
        most = max(squares.sum(axis=1).max() for _, squares in iterate_distances(known, SQUARED))
        return float(largest_root(n * float(away @ away), np.zeros(1), (apart**2).sum() - most).min())


def largest_root(square: float, half: Array, constant: Array | float) -> Array:
    """The larger x with square x^2 + 2 half x + constant = 0, where constant <= 0; 0 where square is."""
    if square == 0:
        return np.zeros_like(half)
    return (np.sqrt(np.maximum(half**2 - square * constant, 0.0)) - half) / square
