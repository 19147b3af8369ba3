"""Malicious clients that send the opposite of what they learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Each sends its own update with the other sign."""

    knowledge: ClassVar[Knowledge] = Knowledge.own

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None
        return -view.own
