"""Clients who look for different things: the same documents, judged by another intent in each group."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from hushrank.keys import check_share, key
from hushrank.partitions.division import Aspect, Division, Kind, Skew, Whole, check_even
from hushrank.streams import draw_uniform, fold_in, stream
from hushrank.types import Array, QuerySet

_ORDER, _CARRY = 1, 2  # what is drawn for each query


@dataclass(frozen=True)
class Intents:
    """Group g judges query q by intent pi_q(g), another order of the intents for each query.

    Differs: the published order is drawn anew for every query, so that no taste carries over from one query to another
    [thesis, Section 4.3.1]; here a share `carry` of the queries keeps the order of the data.
    """

    carry: float = key(
        0.0, "share of the queries at which a group has its own intent; at the others it has any", check=check_share
    )
    aspect = Aspect.documents
    is_redrawn = False

    def searches(self, n_clients: int) -> None:
        del n_clients

    def divide(self, whole: Whole) -> Division:
        n = check_intents(whole)
        check_even(whole.n_clients, n, "intents")
        kinds = []
        chosen = [choose_intents(split, self.carry, whole.key) for split in _splits(whole)]
        for group in range(n):
            train, vali, test = (
                judge(split, of_query[:, group]) for split, of_query in zip(_splits(whole), chosen, strict=True)
            )
            kinds.append(Kind(f"intent-{group + 1}", train, vali, test))
        return Division(tuple(kinds), tuple(range(n)), is_drawn=self.carry < 1)

    def measure(self, whole: Whole, division: Division) -> Skew:
        relevant = [(kind.train or whole.fold.train).grades > 0 for kind in division.kinds]
        missing = [share_missing(one, other) for one, other in permutations(relevant, 2)]
        rows = []
        for kind, own in zip(division.kinds, relevant, strict=True):
            others = [other for other in relevant if other is not own]
            alone = float(np.mean([share_missing(own, other) for other in others]))
            rows.append((kind.name, (("not relevant to another client", alone), ("relevant to both", 1 - alone))))
        measure = "share of one client's relevant documents that another client does not find relevant, mean over pairs"
        return Skew(
            "intents", float(np.mean(missing)), measure, "share of the client's relevant documents", tuple(rows)
        )


def check_intents(whole: Whole) -> int:
    """How many intents the data has."""
    counts = {split.n_intents for split in _splits(whole)}
    if counts == {0}:
        raise ValueError(
            "partition=intents needs data whose grades differ by intent, and here a document has the same for all: "
            "take intent-change-like or intent-change."
        )
    if len(counts) > 1:
        numbers = ", ".join(
            f"{name} {split.n_intents}" for name, split in zip(("train", "vali", "test"), _splits(whole), strict=True)
        )
        raise ValueError(
            f"partition=intents needs as many intents in every split, and fold {whole.fold.number} has {numbers}."
        )
    return counts.pop()


def _splits(whole: Whole) -> tuple[QuerySet, QuerySet, QuerySet]:
    return whole.fold.train, whole.fold.vali, whole.fold.test


def choose_intents(queries: QuerySet, carry: float, key: Array) -> Array:
    """[n_queries, n_intents] by which intent each group judges each query.

    Why by the query's id: a query has the same order wherever it stands, also where people are tested on what they
    trained on.
    """
    names = np.array([_number_of(query_id) for query_id in queries.query_ids], np.uint64)
    draws = draw_uniform(fold_in(stream(key, _ORDER), names), queries.n_intents)
    is_kept = draw_uniform(fold_in(stream(key, _CARRY), names), 1) < carry
    return np.where(is_kept, np.arange(queries.n_intents), np.argsort(draws, axis=1, kind="stable"))


def _number_of(query_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(query_id.encode(), digest_size=8).digest(), "little")


def judge(queries: QuerySet, intents: Array) -> QuerySet:
    """The same documents with the grades of one intent for each query; the features are not copied."""
    assert queries.intents is not None
    of_document = np.repeat(intents, queries.lengths)
    grades = queries.intents[of_document, np.arange(queries.n_documents)]
    return replace(queries, grades=grades, intents=None)


def share_missing(one: Array, other: Array) -> float:
    """Of the documents relevant to one, those that are not to the other."""
    return float(np.mean(~other[one])) if one.any() else 0.0
