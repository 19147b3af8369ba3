"""Fang et al.'s attacks on Krum and Multi-Krum: the longest step backwards that the rule still picks [fang2020]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.attacks.knowledge import knowledge_key, known_updates
from hushrank.types import Array, AttackView

_FLOOR = 1e-5  # [fang2020, Section 3.2] gives up below it
_HALVINGS = 64  # Why: from any length that a float32 update has to the floor


@dataclass(frozen=True)
class FangKrum:
    """All send lambda * s, s = -sign(mean of the known updates): the largest lambda, by halving, that Krum picks.

    With partial knowledge Krum is tried on what the liars learnt and one forged update, then two, and so on
    [fang2020, Section 3.2]. Differs: all send the same, and not points of a small ball around it.
    """

    knowledge: str = knowledge_key()
    picks_all: ClassVar[bool] = False  # whether all forged updates must be among the n - m best, not one the very best

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        known = known_updates(view).astype(np.float64)
        backwards = -np.sign(known.mean(axis=0))  # s [thesis, Section 5.2.3]; updates are models minus the shared one
        sent = self._find_length(view, backwards) * backwards
        return np.tile(sent, (view.n_malicious, 1)).astype(known_updates(view).dtype)

    def _find_length(self, view: AttackView, backwards: Array) -> float:
        """Lambda."""
        if view.others is not None:
            return halve_length(view.others.astype(np.float64), backwards, view.n_malicious, picks_all=self.picks_all)
        own, found = np.asarray(view.own, np.float64), 0.0
        for n_forged in range(1, view.n_malicious + 1):
            found = halve_length(own, backwards, n_forged, picks_all=self.picks_all)
            if found > _FLOOR:
                break
        return found


@dataclass(frozen=True)
class FangMultiKrum(FangKrum):
    """The same against Multi-Krum: the largest lambda with which all forged updates are among those averaged."""

    picks_all: ClassVar[bool] = True


def halve_length(honest: Array, backwards: Array, n_forged: int, *, picks_all: bool) -> float:
    """The first of bound, bound / 2, bound / 4, ... with which Krum picks n_forged copies of it times `backwards`,
    among honest updates [h, n_params]; the last one above the floor if it never does."""
    distances = np.sqrt(squared_distances(honest))
    nearest = np.sort(distances, axis=1)[:, 1:]  # without itself
    n_near = max(len(honest) - 2, 1)  # n - m - 2 of n = h + m [thesis, Section 5.3.1]; one where there would be none
    length = 0.0
    for length in _halvings(bound_length(honest, nearest, backwards, n_forged, n_near)):
        away = np.sqrt(np.maximum(((honest - length * backwards) ** 2).sum(axis=1), 0.0))
        if is_picked(nearest, away, n_forged, n_near, picks_all=picks_all):
            break
    return length


def _halvings(length: float) -> Iterator[float]:
    for _ in range(_HALVINGS):
        yield length
        length /= 2
        if length < _FLOOR:
            return


def bound_length(honest: Array, nearest: Array, backwards: Array, n_forged: int, n_near: int) -> float:
    """sqrt(min_i sum of squared distances of i to its n_near nearest / ((n - 2m - 1) d)) + max_i |i| / sqrt(d): no
    larger lambda can be picked [fang2020, Theorem 1]. Where n - 2m - 1 is below 1 it counts as 1, a stated start."""
    d = max(int(np.count_nonzero(backwards)), 1)
    spread = (nearest[:, :n_near] ** 2).sum(axis=1).min()
    return float(
        np.sqrt(spread / (max(len(honest) - n_forged - 1, 1) * d)) + np.sqrt((honest**2).sum(axis=1).max() / d)
    )


def is_picked(nearest: Array, away: Array, n_forged: int, n_near: int, *, picks_all: bool) -> bool:
    """Whether Krum picks forged updates that are all the same, `away` [h] from the honest ones.

    nearest [h, h - 1]: distances between honest ones, ascending. Equal scores go to the forged, who come first.
    """
    forged_score = np.sort(away)[: max(n_near - (n_forged - 1), 0)].sum()
    copies = np.repeat(away[:, None], min(n_forged, n_near), axis=1)
    honest_scores = np.sort(np.concatenate([nearest[:, :n_near], copies], axis=1), axis=1)[:, :n_near].sum(axis=1)
    n_better = np.count_nonzero(honest_scores < forged_score)
    n_honest = len(away)  # Multi-Krum averages n - m = h of h + m
    return bool(n_better <= n_honest - n_forged if picks_all else n_better == 0)


def squared_distances(points: Array) -> Array:
    """[n, n] without an array of n x n x n_params."""
    norms = (points**2).sum(axis=1)
    found: Array = np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0.0)
    np.fill_diagonal(found, 0.0)
    return found
