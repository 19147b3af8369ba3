"""How liars keep from being noticed: they wait, they are honest in between, they do not lie alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from hushrank.types import Array

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Tactics(Generic[A]):
    """An attack in the rounds first, first + every, first + 2 every, ...; in all others everybody is honest."""

    attack: A
    first: int = 1
    every: int = 1
    is_disguised: bool = False  # whether each adds what sets its own update apart from the other liars'

    def at(self, round: int) -> A | None:
        """The attack of a round; None: they are honest."""
        return self.attack if round >= self.first and (round - self.first) % self.every == 0 else None


def use_tactics(attack: A | None, *, first: int, every: int, is_disguised: bool = False) -> A | Tactics[A] | None:
    """An attack in every round, without disguise, stays as it is."""
    is_plain = first == every == 1 and not is_disguised
    return attack if attack is None or is_plain else Tactics(attack, first, every, is_disguised)


def wake(attack: A | Tactics[A], round: int) -> A | None:
    """What malicious clients do in a round; None: they are honest."""
    return attack.at(round) if isinstance(attack, Tactics) else attack


def disguise(attack: A | Tactics[A], forged: Array, own: Array) -> Array:
    """[n_malicious, n_params] what they send; own: what they learnt. The mean of all lies stays."""
    if not isinstance(attack, Tactics) or not attack.is_disguised:
        return forged
    return (forged + own - own.mean(axis=0)).astype(own.dtype)
