"""Clients with more documents of some grades than of others: each grade divided by Dirichlet shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.keys import above_zero, key
from hushrank.partitions.division import Aspect, Division, Kind, Skew, Whole, hand_out, measure_grades, refuse_empty
from hushrank.partitions.labels import shuffled_rows
from hushrank.streams import draw_uniform, fold_in, stream
from hushrank.types import Array

_SHARES = 1 << 20  # beside the grades: the stream of the shares


@dataclass(frozen=True)
class Dirichlet:
    """The documents of each grade are divided among the clients by shares from Dirichlet(concentration)."""

    concentration: float = key(0.5, "of the shares; the smaller, the more clients differ", check=above_zero)
    aspect = Aspect.documents
    is_redrawn = False

    def searches(self, n_clients: int) -> None:
        del n_clients

    def divide(self, whole: Whole) -> Division:
        train, n_clients = whole.fold.train, whole.n_clients
        owners = np.empty(train.n_documents, np.int64)
        for grade in range(whole.n_grades):
            rows = shuffled_rows(train.grades, grade, whole.key)
            shares = draw_shares(self.concentration, n_clients, stream(whole.key, _SHARES, grade))
            ends = np.rint(np.cumsum(shares) * len(rows)).astype(np.int64)
            owners[rows] = np.searchsorted(ends, np.arange(len(rows)), side="right")
        names = [f"client-{client + 1}" for client in range(n_clients)]
        parts = hand_out(train, np.minimum(owners, n_clients - 1), n_clients)
        refuse_empty(
            names, parts, fold=whole.fold.number, advice="raise concentration, take fewer clients, or another seed."
        )
        kinds = tuple(Kind(name, train=part) for name, part in zip(names, parts, strict=True))
        return Division(kinds, tuple(range(n_clients)))

    def measure(self, whole: Whole, division: Division) -> Skew:
        return measure_grades("dirichlet", whole, division)


def draw_shares(concentration: float, n: int, key: Array) -> Array:
    """[n] shares that add up to 1: gamma variates over their sum.

    G(a) = G(a + 1) U^(1 / a), and G(a + 1) by the inverse of its distribution; in logarithms, as small a underflow.
    """
    from scipy.special import gammaincinv  # Why here: only the lab has SciPy

    draws = draw_uniform(fold_in(key, np.arange(n)), 2).astype(np.float64)
    logs = np.log(gammaincinv(concentration + 1, draws[:, 0])) + np.log(draws[:, 1]) / concentration
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
