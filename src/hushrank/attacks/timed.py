"""Attacks that wait: sleepers, and liars who are honest in between."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.types import Attack


@dataclass(frozen=True, slots=True)
class Timed:
    """An attack in the rounds first, first + every, first + 2 every, ...; in all others everybody is honest."""

    attack: Attack
    first: int = 1
    every: int = 1

    def at(self, round: int) -> Attack | None:
        """The attack of a round; None: they are honest."""
        return self.attack if round >= self.first and (round - self.first) % self.every == 0 else None


def time_attack(attack: Attack | None, *, first: int, every: int) -> Attack | Timed | None:
    """An attack that goes on all the time stays as it is."""
    return attack if attack is None or first == every == 1 else Timed(attack, first, every)


def wake(attack: Attack | Timed, round: int) -> Attack | None:
    """What malicious clients do in a round; None: they are honest."""
    return attack.at(round) if isinstance(attack, Timed) else attack
