"""The protocol of a partition: what it divides, among whom, and how much clients then differ.

A partition knows *kinds* of clients. Client c is of the kind of_client[c modulo their number]; a kind has documents,
people or searches of its own, and shares the rest with everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from hushrank.types import Array, Fold, QuerySet, User


class Aspect(StrEnum):
    """What a partition divides; a mixture has each of them at most once."""

    documents = "documents"  # which documents a client has, or how it judges them
    people = "people"  # how its person clicks
    searches = "searches"  # how often it searches


@dataclass(frozen=True, slots=True)
class Whole:
    """What is divided: one fold, in one repeat."""

    fold: Fold
    n_clients: int
    n_grades: int
    key: Array  # [2] of this fold, repeat and partition


@dataclass(frozen=True, slots=True)
class Kind:
    """What some clients have of their own; None: as everybody."""

    name: str  # as in the metrics
    train: QuerySet | None = None
    vali: QuerySet | None = None
    test: QuerySet | None = None
    user: User | None = None
    n_interactions: int | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """Who is of which kind."""

    kinds: tuple[Kind, ...]
    of_client: tuple[int, ...]  # client c is of kind of_client[c % len]
    is_drawn: bool = True  # whether another key gives another one; the same in every fold


@dataclass(frozen=True, slots=True)
class Skew:
    """How much clients differ: 0 = all alike, at most 1."""

    name: str  # of the partition
    value: float
    measure: str  # what the number is, in half a sentence
    unit: str  # what the rows count
    rows: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]  # (kind of client, ((part, value), ...)), for a chart


class Part(Protocol):
    """One way in which clients differ."""

    @property
    def aspect(self) -> Aspect:
        """What it divides."""

    @property
    def is_redrawn(self) -> bool:
        """Whether clients that are all alike are, in its case, of a kind that is drawn anew in every round."""

    def searches(self, n_clients: int) -> tuple[int, ...] | None:
        """How often client c searches in a round, [c % len]; None: as the recipe says."""

    def divide(self, whole: Whole) -> Division:
        """The kinds of clients; refuses what cannot be divided. The same kinds, by name, in every fold and repeat."""

    def measure(self, whole: Whole, division: Division) -> Skew:
        """How much the kinds differ."""


def check_even(n_clients: int, n_kinds: int, what: str) -> None:
    """Refuse clients that cannot be divided evenly; what: the kinds, in words."""
    if n_clients % n_kinds:
        raise ValueError(
            f"{n_clients} clients cannot be divided evenly among {n_kinds} {what}: n_clients must be {n_kinds}, "
            f"{2 * n_kinds}, {3 * n_kinds}, ..."
        )


def hand_out(queries: QuerySet, owners: Array, n_owners: int) -> list[QuerySet]:
    """Each owner's documents as lists of their own; owners [n_documents]. Queries without a document vanish.

    The sets are neighbours in one new array, so that whoever needs them end to end copies nothing.
    """
    order = np.argsort(owners, kind="stable")
    features, grades = queries.features[order], queries.grades[order]
    query_of = np.repeat(np.arange(queries.n_queries), queries.lengths)[order]
    ends = np.cumsum(np.bincount(owners, minlength=n_owners))
    parts = []
    for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        counts = np.bincount(query_of[first:end], minlength=queries.n_queries)
        kept = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
        ids = tuple(queries.query_ids[q] for q in kept.tolist())
        parts.append(QuerySet(features[first:end], grades[first:end], starts, ids))
    return parts


def name_apart(names: Sequence[str]) -> list[str]:
    """Names that occur again get a number: a, b, a#2."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return found


def refuse_empty(names: Sequence[str], parts: Sequence[QuerySet], *, fold: int, advice: str) -> None:
    """A client without documents cannot search."""
    for name, part in zip(names, parts, strict=True):
        if not part.n_documents:
            raise ValueError(f"{name} would have no documents of fold {fold}'s training queries: {advice}")


def make_alike(division: Division, *, is_redrawn: bool) -> Division:
    """The control: everybody trains on everything; what is measured stays the same."""
    kinds = tuple(
        replace(kind, train=None, user=kind.user if is_redrawn else None, n_interactions=None)
        for kind in division.kinds
    )
    is_needed = any(kind.test is not None or kind.user is not None for kind in kinds)
    return replace(division, kinds=kinds) if is_needed else Division((Kind("all"),), (0,), is_drawn=False)


def divergence(one: Array, other: Array) -> float:
    """Jensen and Shannon's, to base 2: 0 for equal shares, 1 for shares that have nothing in common."""
    middle = (one + other) / 2
    return float(np.clip((_relative(one, middle) + _relative(other, middle)) / 2, 0, 1))


def _relative(one: Array, other: Array) -> float:
    is_there = one > 0
    return float(np.sum(one[is_there] * np.log2(one[is_there] / other[is_there])))


def grade_shares(queries: QuerySet, n_grades: int) -> Array:
    """[n_grades] of a set's documents."""
    return np.bincount(queries.grades, minlength=n_grades) / max(queries.n_documents, 1)


def measure_grades(name: str, whole: Whole, division: Division) -> Skew:
    """Of clients that have different grades."""
    everybody = grade_shares(whole.fold.train, whole.n_grades)
    shares = [grade_shares(kind.train or whole.fold.train, whole.n_grades) for kind in division.kinds]
    rows = tuple(
        (kind.name, tuple((f"grade {grade}", float(share)) for grade, share in enumerate(own)))
        for kind, own in zip(division.kinds, shares, strict=True)
    )
    measure = "mean Jensen-Shannon divergence (base 2) of a client's grade shares from everybody's"
    value = float(np.mean([divergence(own, everybody) for own in shares]))
    return Skew(name, value, measure, "share of the client's documents", rows)
