"""The keys of a recipe that say how clients differ."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import key
from hushrank.partitions.alike import IID
from hushrank.partitions.named import PARTITIONS


@dataclass(frozen=True, kw_only=True)
class PartitionKeys:
    """Of recipes."""

    partition: str = key(
        IID, "how clients differ; several joined by +, such as intents+quantity", methods=PARTITIONS, is_joined=True
    )
    control: bool = key(
        False, "the matching control of the partition: same clients, searches and evaluation, but all clients alike"
    )
