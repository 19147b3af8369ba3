"""Clients who search more or less often [thesis, Section 4.5.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.keys import key
from hushrank.partitions.division import Aspect, Division, Kind, Skew, Whole
from hushrank.types import Array


def check_quantities(quantities: Sequence[int]) -> str | None:
    return None if min(quantities) >= 1 else "must be at least 1 search for every client"


@dataclass(frozen=True)
class Quantity:
    """Client c searches quantities[c modulo their number] times a round, whatever `interactions` says."""

    quantities: tuple[int, ...] = key(
        (1, 3, 5, 7, 9),
        "searches of a client in a round: client c has entry c modulo their number",
        check=check_quantities,
    )
    aspect = Aspect.searches
    is_redrawn = False

    def searches(self, n_clients: int) -> tuple[int, ...]:
        return self.quantities[:n_clients]

    def divide(self, whole: Whole) -> Division:
        counts = self.searches(whole.n_clients)
        different = sorted(set(counts))
        kinds = tuple(Kind(f"searches-{n}", n_interactions=n) for n in different)
        return Division(kinds, tuple(different.index(n) for n in counts), is_drawn=False)

    def measure(self, whole: Whole, division: Division) -> Skew:
        counts = np.resize(self.searches(whole.n_clients), whole.n_clients)
        rows = tuple((kind.name, (("searches", float(kind.n_interactions or 0)),)) for kind in division.kinds)
        measure = "Gini coefficient of the clients' searches"
        return Skew("quantity", gini(counts), measure, "searches of a client in a round", rows)


def gini(counts: Array) -> float:
    """Half the mean difference between two clients, over the mean."""
    values = np.sort(counts.astype(np.float64))
    n = len(values)
    return float(np.sum((2 * np.arange(1, n + 1) - n - 1) * values) / (n * values.sum()))
