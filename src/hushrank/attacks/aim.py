"""Attacks that are aimed at a ranker's queries before the first round, and have measures of their own.

Such an attack has `aim(ranker, queries)`, which gives the attack that is carried out; that one may have
`measure(params)`, named numbers of how far it has come.
"""

from __future__ import annotations

from dataclasses import replace

from hushrank.attacks.timed import Timed
from hushrank.types import Array, Attack, QuerySet, Ranker


def aim_attack(
    attack: Attack | Timed[Attack] | None, ranker: Ranker, queries: QuerySet
) -> Attack | Timed[Attack] | None:
    """The attack on a ranker that is trained with these queries; most are the same for all."""
    if isinstance(attack, Timed):
        return replace(attack, attack=_aim(attack.attack, ranker, queries))
    return None if attack is None else _aim(attack, ranker, queries)


def _aim(attack: Attack, ranker: Ranker, queries: QuerySet) -> Attack:
    aimed: Attack = attack.aim(ranker, queries) if hasattr(attack, "aim") else attack
    return aimed


def measure_attack(attack: Attack | Timed[Attack] | None, params: Array) -> dict[str, float]:
    """How far an attack has come, by names of its own; nothing for most."""
    measure = getattr(attack.attack if isinstance(attack, Timed) else attack, "measure", None)
    return {} if measure is None else dict(measure(params))
