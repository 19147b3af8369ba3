"""Clients that differ: each belongs to a group, which has its own queries, labels, way of clicking and searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hushrank.federation.cohort import Population
from hushrank.types import QuerySet, User


@dataclass(frozen=True, slots=True)
class Group:
    """Clients that search, judge and click alike."""

    name: str
    train: QuerySet  # what they search for, with their own labels
    user: User | None = None  # how they click; None: as the experiment's user does
    n_interactions: int | None = None  # searches of each in a round; None: as the population says
    test: QuerySet | None = None  # for the group's own metrics; None: everybody's
    vali: QuerySet | None = None


def divide_population(population: Population, groups: Sequence[Group], of_client: Sequence[int]) -> Population:
    """The population with client c in group of_client[c % len(of_client)], searching as often as its group does."""
    if not of_client or set(of_client) != set(range(len(groups))):
        raise ValueError(
            f"clients are assigned to groups {sorted(set(of_client))}, must be each of 0 to {len(groups) - 1}."
        )
    if all(group.n_interactions is None for group in groups):
        return replace(population, groups=tuple(of_client))
    usual = population.interactions
    counts = tuple(
        groups[of_client[c % len(of_client)]].n_interactions or usual[c % len(usual)]
        for c in range(population.n_clients)
    )
    return replace(population, groups=tuple(of_client), interactions=counts)
