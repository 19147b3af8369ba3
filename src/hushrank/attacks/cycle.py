"""Malicious clients that pay for a lie with a push the other way, so that `watchful` forgives it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.attacks.knowledge import knowledge_key, known_updates
from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.streams import draw_normal
from hushrank.types import Array, AttackView

_TURNED = 0.35  # of the push, at a right angle to it; Why: two liars then have a cosine of .89 and are no copies


@dataclass(frozen=True)
class Cycle:
    """Three rounds in turn: the known mean far backwards, half as far forwards, what was honestly learnt.

    `watchful` forgives whoever pays for a lie: it counts agreement with the others, and a push forwards makes one
    backwards good. Each counts as long as what is let through of it, so that what is paid in full is undone, and what
    is left are jumps back and forth.
    """

    knowledge: str = knowledge_key()
    backwards: float = setting(9.5, "length of a push backwards, in median lengths of the known", check=above_zero)
    forwards: float = setting(4.8, "length of a push forwards, likewise", check=above_zero)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        assert view.own is not None
        known = known_updates(view).astype(np.float64)
        mean, each = known.mean(axis=0), np.sqrt((known**2).sum(axis=1))
        length = np.sqrt(mean @ mean)
        turn = view.round % 3
        if turn == 2 or length == 0:
            return view.own
        push = -self.backwards if turn == 0 else self.forwards
        sent = turn_aside(mean / length, view.n_malicious, key=key)
        return (push * np.median(each[each > 0]) * sent).astype(view.own.dtype)


def turn_aside(way: Array, n: int, *, key: Array) -> Array:
    """[n, n_params] of length 1: a way of length 1, each time turned by about 19 degrees to a side of its own."""
    noise = draw_normal(key, n * len(way)).reshape(n, -1)
    noise -= (noise @ way)[:, None] * way
    each = np.sqrt((noise**2).sum(axis=1, keepdims=True))
    turned = way + _TURNED * noise / np.where(each > 0, each, 1)
    return np.asarray(turned / np.sqrt((turned**2).sum(axis=1, keepdims=True)))
