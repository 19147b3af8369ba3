"""Partitions by name, one or several joined by +."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from hushrank.keys import make_methods, split_names
from hushrank.partitions.alike import IID, Alike
from hushrank.partitions.behaviours import Behaviours
from hushrank.partitions.clusters import Clusters
from hushrank.partitions.dirichlet import Dirichlet
from hushrank.partitions.division import Part
from hushrank.partitions.intents import Intents
from hushrank.partitions.labels import Labels
from hushrank.partitions.quantity import Quantity

PartMaker: TypeAlias = Part | type[Part]  # a partition, or the dataclass of partitions that differ in their settings
PARTITIONS: dict[str, PartMaker | type[Alike]] = {
    IID: Alike,
    "intents": Intents,
    "labels-1": Labels(1),
    "labels-2": Labels(2),
    "clicks": Behaviours,
    "quantity": Quantity,
    "dirichlet": Dirichlet,
    "queries": Clusters,
}


def find_parts(name: str, options: Mapping[str, object]) -> dict[str, Part]:
    """{name: part} of a partition or of a mixture; none where all clients are alike."""
    made = dict(zip(split_names(PARTITIONS, name), make_methods(PARTITIONS, name, options), strict=True))
    return {part: method for part, method in made.items() if part != IID}


def check_mixture(name: str) -> None:
    """Refuse parts that divide the same thing, and one that divides nothing among others."""
    names = split_names(PARTITIONS, name)
    if len(names) == 1:
        return
    if IID in names:
        raise ValueError(f"partition is {name!r}, but iid divides nothing: leave it out of a mixture.")
    seen: dict[str, str] = {}
    for part in names:
        aspect = str(PARTITIONS[part].aspect)  # type: ignore[union-attr] # Why: iid was refused above
        if aspect in seen:
            raise ValueError(
                f"partition is {name!r}, but {seen[aspect]} and {part} both divide {aspect}: keep one of them."
            )
        seen[aspect] = part
