"""Malicious clients that stay below what `watchful` notices: they do their honest work and push sideways as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.attacks.knowledge import mean_length
from hushrank.keys import above_zero, at_least
from hushrank.keys import key as setting
from hushrank.streams import draw_normal, seed_key, stream
from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True)
class Sidestep:
    """Each sends what it learnt plus a step that all liars take together, at a right angle to the ranker.

    Who adds to honest work agrees with the others as much as before; three lengths are less than a loud update; and
    what each learnt sets the liars' updates apart. A new direction every so often leaves honest clients little time
    to pull back, by which liars would be found to oppose them.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.own
    scale: float = setting(3.0, "length of the step, in lengths of an update", check=above_zero)
    turn_every: int = setting(50, "rounds until the step takes another direction", check=at_least(1))

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key  # Why: it is another one in every round; the direction lasts, and liars agreed on it long before
        assert view.own is not None
        away = draw_normal(stream(seed_key(0), view.round // self.turn_every), len(view.params))
        away -= project(away, view.params.astype(np.float64))
        length = np.sqrt(away @ away)
        if length == 0:  # a ranker of one number has no side
            return view.own
        return (view.own + self.scale * mean_length(view.own) * away / length).astype(view.own.dtype)


def project(vector: Array, onto: Array) -> Array:
    """[p] the part of a vector that points along another one; nothing where that is zero."""
    square = onto @ onto
    return np.asarray(vector @ onto / square * onto) if square > 0 else np.zeros_like(onto)
