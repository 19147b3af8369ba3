"""Malicious clients that make honest ones look like conspirators: some copy them, and all push in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.attacks.knowledge import mean_length
from hushrank.keys import above_zero, at_least
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True)
class Framing:
    """In the first rounds and every so often some copy an honest client each; else all push the honest mean backwards.

    A rule that leaves out both of two clients whose updates are equal leaves out as many honest clients as liars. So
    many frame that they and whom they frame stay just below half: the rest of the liars cannot be left out as well
    while a majority must stay.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.everybody
    scale: float = setting(2.0, "length of a push, in lengths of an honest update", check=above_zero)
    copy_every: int = setting(6, "rounds from one of copying to the next", check=at_least(1))
    first_copies: int = setting(10, "rounds of copying at first", check=at_least(0))

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None and view.others is not None
        sent = push_back(view, self.scale)
        if view.round <= self.first_copies or view.round % self.copy_every == 0:
            n_framers = min(view.n_malicious, len(view.others), max(1, (view.n_clients - 1) // 4))
            sent[:n_framers] = view.others[:n_framers]
        return sent


def push_back(view: AttackView, scale: float) -> Array:
    """[n_malicious, n_params] the honest mean with the other sign, `scale` lengths of an honest update long; each
    turned by what it learnt itself, so that no two are equal."""
    assert view.own is not None and view.others is not None
    if not len(view.others):
        return -view.own
    mean, usual = view.others.mean(axis=0, dtype=np.float64), mean_length(view.others)
    length = np.sqrt(mean @ mean)
    away = -scale * usual * mean / (length if length > 0 else 1.0)
    return (away + view.own - view.own.mean(axis=0)).astype(view.own.dtype)
