"""Malicious clients that push together as hard as a server with a bound on lengths accepts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.attacks.knowledge import knowledge_key, known_updates, send_alike
from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView


@dataclass(frozen=True)
class AtBound:
    """All send -bound * mean / |mean| of the known updates: nothing that is as short takes a mean further back.

    Without a bound, and outside of a recipe, which gives one: as long as the longest update that they know.
    """

    knowledge: str = knowledge_key()
    bound: float | None = setting(
        None, "L2 norm of what is sent; default: update_norm, or what a live server would choose", check=above_zero
    )

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        known = known_updates(view).astype(np.float64)
        mean = known.mean(axis=0)
        length = np.sqrt(mean @ mean)
        bound = np.sqrt((known**2).sum(axis=1).max()) if self.bound is None else self.bound
        return send_alike(view, -(bound / length if length > 0 else 0.0) * mean)
