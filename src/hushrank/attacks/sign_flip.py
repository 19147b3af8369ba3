"""Malicious clients that send the opposite of what they learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True)
class SignFlip:
    """Each sends its own update with the other sign, made longer or shorter."""

    knowledge: ClassVar[Knowledge] = Knowledge.own
    scale: float = setting(1.0, "how many times as long as the update", check=above_zero)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None
        return -self.scale * view.own
