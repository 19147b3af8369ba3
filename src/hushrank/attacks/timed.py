"""Attacks that wait: sleepers, and liars who are honest in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Timed(Generic[A]):
    """An attack in the rounds first, first + every, first + 2 every, ...; in all others everybody is honest."""

    attack: A
    first: int = 1
    every: int = 1

    def at(self, round: int) -> A | None:
        """The attack of a round; None: they are honest."""
        return self.attack if round >= self.first and (round - self.first) % self.every == 0 else None


def time_attack(attack: A | None, *, first: int, every: int) -> A | Timed[A] | None:
    """An attack that goes on all the time stays as it is."""
    return attack if attack is None or first == every == 1 else Timed(attack, first, every)


def wake(attack: A | Timed[A], round: int) -> A | None:
    """What malicious clients do in a round; None: they are honest."""
    return attack.at(round) if isinstance(attack, Timed) else attack
