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
    is_honest: bool = True  # malicious clients are not asked how well they are served


def corrupt_people(
    population: Population, groups: Sequence[Sequence[Group]], *, n_malicious: int, user: User
) -> tuple[Population, tuple[tuple[Group, ...], ...]]:
    """The clients with the lowest ids click as this user does, else as before; groups: of each place."""
    of_client = [population.groups[client % len(population.groups)] for client in range(population.n_clients)]
    together = [(group, client < n_malicious) for client, group in enumerate(of_client)]
    different = list(dict.fromkeys(together))
    numbers = {each: number for number, each in enumerate(different)}
    corrupted = tuple(
        tuple(_corrupt(place[group], user) if lies else place[group] for group, lies in different) for place in groups
    )
    return replace(population, groups=tuple(numbers[each] for each in together)), corrupted


def _corrupt(group: Group, user: User) -> Group:
    return replace(group, user=user, name=f"{group.name}+malicious", is_honest=False)


def measured_groups(groups: Sequence[Group]) -> list[int]:
    """Those that have measures of their own: the honest ones, unless they are only one, whose are everybody's."""
    honest = [number for number, group in enumerate(groups) if group.is_honest]
    return [] if len(honest) == 1 < len(groups) else honest


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
