"""FedPer: some layers of a network are each client's own [arivazhagan2019].

Differs: every client has its own copy of them. The published code shares one array between clients and server.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import key
from hushrank.remedies.remedy import Remedy


@dataclass(frozen=True)
class FedPer(Remedy):
    """The other layers are averaged as usual."""

    personal: tuple[str, ...] = key(
        ("output/weights",),
        "fedper: parameters that each client keeps for itself; []: none, all are shared",
        may_be_empty=True,
    )

    @property
    def layers(self) -> tuple[str, ...]:
        return self.personal
