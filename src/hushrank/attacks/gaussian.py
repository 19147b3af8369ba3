"""Malicious clients that send noise [blanchard2017, Section 6]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.attacks.knowledge import mean_length
from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.streams import draw_normal
from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True)
class Gaussian:
    """Each sends normal numbers, on the whole about `scale` times as long as what the liars learnt.

    Differs: [blanchard2017] fixes the variance at 200; how much that is depends on the task.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.own
    scale: float = setting(1.0, "how many times as long as an honest update", check=above_zero)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        assert view.own is not None
        n_params = view.own.shape[1]
        noise = draw_normal(key, view.n_malicious * n_params).reshape(view.n_malicious, -1)
        sent: Array = self.scale * mean_length(view.own) / np.sqrt(n_params) * noise
        return sent.astype(view.own.dtype)
