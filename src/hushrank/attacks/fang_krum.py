"""Fang et al.'s attacks on Krum and Multi-Krum: the longest step backwards that the rule still picks [fang2020]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.aggregation.distances import SQUARED
from hushrank.aggregation.krum import krum_scores
from hushrank.attacks.knowledge import knowledge_key, known_updates, send_alike
from hushrank.types import Array, AttackView

_FLOOR = 1e-5  # [fang2020, Section 3.2] lambda is not halved further


@dataclass(frozen=True)
class FangKrum:
    """All send lambda * s, s = -sign(mean of the known updates): the largest lambda, by halving, that Krum picks.

    With partial knowledge Krum is tried on what the liars learnt and one forged update, then two, and so on
    [fang2020, Section 3.2], with at least one neighbour. Differs: all send the same, not points of a small ball, and
    Krum is always tried with the thesis' Euclidean distances, also where the server's rule has `distance=squared`.
    """

    knowledge: str = knowledge_key()
    picks_all: ClassVar[bool] = False  # whether all forged updates must be among the n - m best, not one the very best

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        known = known_updates(view).astype(np.float64)
        backwards = -np.sign(known.mean(axis=0))  # s [thesis, Section 5.2.3]; updates are models minus the shared one
        is_full = view.others is not None
        honest = (view.others if view.others is not None else known).astype(np.float64)
        tries = range(view.n_malicious if is_full else 1, view.n_malicious + 1)
        found = (halve_length(honest, backwards, n_forged, picks_all=self.picks_all) for n_forged in tries)
        return send_alike(view, next((length for length in found if length is not None), _FLOOR) * backwards)


@dataclass(frozen=True)
class FangMultiKrum(FangKrum):
    """The same against Multi-Krum: the largest lambda with which all forged updates are among those averaged."""

    picks_all: ClassVar[bool] = True


def halve_length(honest: Array, backwards: Array, n_forged: int, *, picks_all: bool) -> float | None:
    """The first of bound, bound / 2, bound / 4, ... with which Krum picks n_forged copies of it times `backwards`,
    among honest updates [h, n_params]; None: none above the floor."""
    length = bound_length(honest, backwards, n_forged)
    while length >= _FLOOR:
        if is_picked(honest, length * backwards, n_forged, picks_all=picks_all):
            return length
        length /= 2
    return None


def bound_length(honest: Array, backwards: Array, n_forged: int) -> float:
    """sqrt(min_i sum of squared distances of i to its n - m - 2 nearest / ((n - 2m - 1) d)) + max_i |i| / sqrt(d): no
    larger lambda can be picked [fang2020, Theorem 1]. Where n - 2m - 1 is below 1 it counts as 1, a stated start."""
    d = max(int(np.count_nonzero(backwards)), 1)
    spread = krum_scores(honest, _not_near(len(honest)), SQUARED).min() if len(honest) > 1 else 0.0
    length = np.sqrt(np.einsum("ip,ip->i", honest, honest).max() / d)
    return float(np.sqrt(spread / (max(len(honest) - n_forged - 1, 1) * d)) + length)


def is_picked(honest: Array, forged: Array, n_forged: int, *, picks_all: bool) -> bool:
    """Whether Krum picks a forged update, or Multi-Krum all of them; of equal scores the forged come first."""
    updates = np.concatenate([np.tile(forged, (n_forged, 1)), honest])
    scores = krum_scores(updates, n_forged + _not_near(len(honest)))
    n_better = np.count_nonzero(scores[n_forged:] < scores[0])
    return bool(n_better <= len(honest) - n_forged if picks_all else n_better == 0)  # Multi-Krum averages n - m


def _not_near(n_honest: int) -> int:
    """Clients too many for Krum to have one neighbour, below zero: few liars with partial knowledge try it so."""
    return min(n_honest - 3, 0)
