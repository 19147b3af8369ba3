"""Malicious clients that shout: what they learnt, many times as long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True)
class Scaled:
    """Each sends its own update times a factor, so that a mean hears hardly anybody else."""

    knowledge: ClassVar[Knowledge] = Knowledge.own
    scale: float = setting(10.0, "how many times as long as the update", check=above_zero)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None
        return self.scale * view.own
