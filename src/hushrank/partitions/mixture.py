"""From a partition, or several at once, to the groups of clients of every fold and repeat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from hushrank.federation.cohort import Population
from hushrank.federation.groups import Group
from hushrank.partitions.division import Division, Kind, Part, Skew, Whole, make_alike
from hushrank.streams import Purpose, seed_key, stream
from hushrank.types import Array, Dataset, Fold

T = TypeVar("T")
Grouping: TypeAlias = tuple[tuple[Group, ...], tuple[int, ...]]  # groups, and each client's


@dataclass(frozen=True, slots=True)
class Partition:
    """What makes clients differ."""

    parts: Mapping[str, Part]
    is_control: bool = False  # whether they are all alike, as far as training goes
    seed: int = 0

    @property
    def is_redrawn(self) -> bool:
        """Whether clients behave in each round as a group that is drawn anew."""
        return self.is_control and any(part.is_redrawn for part in self.parts.values())

    def whole_of(self, fold: Fold, repeat: int, *, n_clients: int, n_grades: int) -> Whole:
        """What is divided in one fold and repeat. Why not the part's name in the key: a control divides likewise."""
        key = stream(seed_key(self.seed), repeat, fold.number, Purpose.PARTITION)
        return Whole(fold, n_clients, n_grades, key)

    def divide(self, whole: Whole) -> dict[str, Division]:
        """By part."""
        divisions = {name: part.divide(whole) for name, part in self.parts.items()}
        if not self.is_control:
            return divisions
        return {name: make_alike(each, is_redrawn=self.parts[name].is_redrawn) for name, each in divisions.items()}

    def measure(self, whole: Whole) -> list[Skew]:
        """How much clients differ, by part; nothing where they are all alike."""
        if not self.is_control:
            return [part.measure(whole, part.divide(whole)) for part in self.parts.values()]
        why = "all clients draw from the same distribution"
        return [Skew(name, 0.0, why, "", ()) for name in self.parts]


@dataclass(frozen=True, slots=True)
class Divided:
    """Clients in groups."""

    population: Population
    # Of each fold, or of each fold and repeat, fold by fold, where draws decide; None: all are alike.
    groups: tuple[tuple[Group, ...], ...] | None


def divide_clients(partition: Partition, dataset: Dataset, population: Population, *, repeats: int) -> Divided:
    """The groups of every fold and repeat, and a population whose clients belong to them."""
    if not partition.parts:
        return Divided(population, None)
    sizes = {"n_clients": population.n_clients, "n_grades": dataset.n_grades}
    divided = [
        each
        for fold in dataset.folds
        for each in divide_fold(partition, [partition.whole_of(fold, repeat, **sizes) for repeat in range(repeats)])
    ]
    of_client = divided[0][1]
    if all(len(groups) == 1 and groups[0].name == "all" for groups, _ in divided):
        return Divided(population, None)
    several = replace(population, groups=of_client, regroup=partition.is_redrawn)
    return Divided(several, tuple(groups for groups, _ in divided))


def divide_fold(partition: Partition, repeats: list[Whole]) -> list[Grouping]:
    """Of each repeat; of all of them at once where no draw decides."""
    found = []
    for whole in repeats:
        divisions = list(partition.divide(whole).values())
        found.append(join_divisions(divisions, whole.fold, whole.n_clients))
        if not any(division.is_drawn for division in divisions):
            break
    return found


def join_divisions(divisions: list[Division], fold: Fold, n_clients: int) -> Grouping:
    """Groups of clients that are alike in every part, and each client's."""
    n = min(n_clients, math.lcm(*(len(division.of_client) for division in divisions)))
    together = [tuple(d.of_client[client % len(d.of_client)] for d in divisions) for client in range(n)]
    different = list(dict.fromkeys(together))
    groups = tuple(
        join_kinds([d.kinds[kind] for d, kind in zip(divisions, each, strict=True)], fold) for each in different
    )
    return groups, tuple(different.index(each) for each in together)


def join_kinds(kinds: list[Kind], fold: Fold) -> Group:
    """One group of what each part says of it; a part that makes no difference has no name in it."""
    names = [kind.name for kind in kinds if kind.name != "all"] or ["all"]
    return Group(
        "+".join(names),
        first_of([kind.train for kind in kinds]) or fold.train,
        user=first_of([kind.user for kind in kinds]),
        n_interactions=first_of([kind.n_interactions for kind in kinds]),
        test=first_of([kind.test for kind in kinds]),
        vali=first_of([kind.vali for kind in kinds]),
    )


def first_of(found: list[T | None]) -> T | None:
    return next((one for one in found if one is not None), None)


def mean_skews(by_place: list[list[Skew]]) -> list[Skew]:
    """Over folds; the rows are those of the first."""
    return [
        replace(first, value=float(np.mean([skews[i].value for skews in by_place])))
        for i, first in enumerate(by_place[0])
    ]


def mean_searches(searches: Array, n_clients: int) -> int:
    """The searches of each client when all make as many together; refuses a fraction."""
    total = int(np.resize(searches, n_clients).sum())
    if total % n_clients:
        raise ValueError(
            f"the {n_clients} clients make {total} searches a round, which cannot be divided evenly among them in the "
            "control: choose other quantities or another n_clients."
        )
    return total // n_clients
