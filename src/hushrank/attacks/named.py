"""What malicious clients send, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hushrank.attacks.sign_flip import sign_flip
from hushrank.registry import register
from hushrank.types import Array, Attack, PrivateUpdate

ATTACKS: dict[str, Attack] = {"sign-flip": sign_flip}  # `register_attack` adds to it


def register_attack(name: str, attack: Attack) -> None:
    """Offer what malicious clients do as `attack=name`."""
    register(ATTACKS, name, attack, key="attack")


def attack_by(
    name: str, updates: Sequence[PrivateUpdate], is_malicious: Array, params: Array, *, key: Array
) -> list[PrivateUpdate]:
    """The updates as the server receives them. With nobody malicious they are left alone, bit by bit."""
    if not is_malicious.any():
        return list(updates)
    deltas = ATTACKS[name](np.stack([u.delta for u in updates]), is_malicious, params, key=key)
    # Why replace: a liar is bound by no promise; honest updates stay the very objects that `privacy/` made
    return [
        replace(u, delta=delta) if lies else u for u, delta, lies in zip(updates, deltas, is_malicious, strict=True)
    ]
