"""Clients who have documents of some grades only [thesis, Section 4.4.1]."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hushrank.partitions.division import (
    Aspect,
    Division,
    Kind,
    Skew,
    Whole,
    check_even,
    hand_out,
    measure_grades,
    name_apart,
    refuse_empty,
)
from hushrank.streams import draw_uniform, stream
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class Labels:
    """Client j has documents of the j-th combination of so many grades; no document has two owners."""

    n_labels: int
    aspect = Aspect.documents
    is_redrawn = False

    def searches(self, n_clients: int) -> None:
        del n_clients

    def divide(self, whole: Whole) -> Division:
        train, n_clients = whole.fold.train, whole.n_clients
        grades_of = list(combinations(range(whole.n_grades), self.n_labels))
        check_even(
            n_clients, len(grades_of), "grades" if self.n_labels == 1 else f"combinations of {self.n_labels} grades"
        )
        owned = [grades_of[client % len(grades_of)] for client in range(n_clients)]
        names = name_apart(["labels-" + "-".join(map(str, grades)) for grades in owned])
        owners = np.empty(train.n_documents, np.int64)
        having = [[c for c, grades in enumerate(owned) if grade in grades] for grade in range(whole.n_grades)]
        for grade, clients in enumerate(having):
            is_shared = len(clients) > 1
            rows = shuffled_rows(train.grades, grade, whole.key) if is_shared else np.flatnonzero(train.grades == grade)
            for client, share in zip(clients, np.array_split(rows, len(clients)), strict=True):
                owners[share] = client
        parts = hand_out(train, owners, n_clients)
        refuse_empty(names, parts, fold=whole.fold.number, advice="take fewer clients, or data with more documents.")
        kinds = tuple(Kind(name, train=part) for name, part in zip(names, parts, strict=True))
        return Division(kinds, tuple(range(n_clients)), is_drawn=any(len(clients) > 1 for clients in having))

    def measure(self, whole: Whole, division: Division) -> Skew:
        return measure_grades(f"labels-{self.n_labels}", whole, division)


def shuffled_rows(grades: Array, grade: int, key: Array) -> Array:
    """The documents of one grade in an order of chance."""
    rows = np.flatnonzero(grades == grade)
    return rows[np.argsort(draw_uniform(stream(key, grade), len(rows)), kind="stable")]
