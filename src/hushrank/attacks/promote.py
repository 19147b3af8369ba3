"""A targeted attack: chosen documents are to rise for chosen queries, and little else is to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from hushrank.attacks.knowledge import mean_length, send_alike
from hushrank.keys import above_zero, at_least, check_seed
from hushrank.keys import key as setting
from hushrank.streams import Purpose, draw_below, draw_bits, fold_in, seed_key, stream
from hushrank.types import Array, AttackView, Knowledge, QuerySet, Ranker

_TOP = 10  # places of a page


class Lists(NamedTuple):
    """Queries with one document each that somebody wants to see higher, end to end."""

    features: Array  # [n_documents, n_features]
    query_of: Array  # [n_documents] from 0 on
    chosen: Array  # [n_queries] which document it is


@dataclass(frozen=True)
class Promote:
    """Malicious clients want one irrelevant document of each target query to rise; the seed says which.

    The queries are those of training that have a document of grade 0 and more than ten in all (or, where there are
    none, more than one). Which document is chosen of a query does not depend on the number of targets.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.own
    targets: int = setting(10, "number of queries for which a document is promoted", check=at_least(1))
    target_seed: int = setting(0, "says which queries and documents these are", check=check_seed)
    length: float = setting(1.0, "how many times as long as an honest update", check=above_zero)

    def aim(self, ranker: Ranker, queries: QuerySet) -> Promotion:
        """The attack on a ranker that is trained with these queries."""
        key = stream(seed_key(self.target_seed), Purpose.ATTACK)
        order = choose_queries(queries, key)
        if len(order) <= self.targets:
            raise ValueError(
                f"targets is {self.targets}, but {len(order)} training queries have an irrelevant document among "
                "others, and some must be left to compare with: take fewer targets."
            )
        chosen = [choose_document(queries, query, key) for query in order]
        targets, others = (
            join_lists(queries, order[part], chosen[part]) for part in (slice(self.targets), slice(self.targets, None))
        )
        return Promotion(ranker, targets, others, self.length)

    def __call__(self, view: AttackView, *, key: Array) -> Array:  # noqa: ARG002
        raise ValueError(
            "attack=promote is aimed at a ranker and its training queries before it is made: call aim first."
        )


@dataclass(frozen=True)
class Promotion:
    """The attack, aimed: all send the direction in which the targets gain on what stands above them, as long as an
    honest update on average."""

    ranker: Ranker
    targets: Lists
    others: Lists  # the rest: what an attack on the targets does to documents that nobody promotes
    length: float = 1.0
    knowledge: ClassVar[Knowledge] = Knowledge.own

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None
        weights = weigh(self.targets, self.ranker.score(view.params, self.targets.features))
        rise = np.asarray(self.ranker.score_gradient(view.params, self.targets.features, weights), np.float64)
        steepness = np.sqrt(rise @ rise)
        length = self.length * mean_length(view.own) / steepness if steepness > 0 else 0.0
        return send_alike(view, length * rise)

    def measure(self, params: Array) -> dict[str, float]:
        """Of the promoted documents, and of as irrelevant ones of other queries: mean rank, share in the top ten."""
        found: dict[str, float] = {}
        for name, lists in (("promote", self.targets), ("promote/others", self.others)):
            ranks = rank_chosen(lists, self.ranker.score(params, lists.features))
            found |= {f"{name}/rank": float(ranks.mean()), f"{name}/top{_TOP}": float((ranks <= _TOP).mean())}
        return found


def choose_queries(queries: QuerySet, key: Array) -> list[int]:
    """Those that can be targets, in an order by chance."""
    has_irrelevant = np.minimum.reduceat(queries.grades, queries.starts[:-1]) == 0
    fits = has_irrelevant & (queries.lengths > _TOP)
    fits = fits if fits.any() else has_irrelevant & (queries.lengths > 1)
    order = np.argsort(draw_bits(key, queries.n_queries), kind="stable")
    return [int(query) for query in order if fits[query]]


def choose_document(queries: QuerySet, query: int, key: Array) -> int:
    """Its place within the query."""
    irrelevant = np.flatnonzero(queries.grades[queries.rows(query)] == 0)
    return int(irrelevant[draw_below(fold_in(key, np.asarray(query)), len(irrelevant), 1)[0]])


def join_lists(queries: QuerySet, some: list[int], places: list[int]) -> Lists:
    lengths = queries.lengths[some]
    starts = np.cumsum(lengths) - lengths
    features = np.concatenate([queries.features[queries.rows(query)] for query in some])
    return Lists(features, np.repeat(np.arange(len(some)), lengths), starts + np.array(places))


def is_above(lists: Lists, scores: Array) -> Array:
    """[n_documents] whether each stands above the chosen one of its query; of equal scores the first does."""
    chosen = lists.chosen[lists.query_of]
    return np.asarray(
        (scores > scores[chosen]) | ((scores == scores[chosen]) & (np.arange(len(scores)) < chosen)), bool
    )


def rank_chosen(lists: Lists, scores: Array) -> Array:
    """[n_queries] from 1 on."""
    return 1 + np.bincount(lists.query_of, weights=is_above(lists, scores), minlength=len(lists.chosen))


def weigh(lists: Lists, scores: Array) -> Array:
    """[n_documents] 1 for the chosen, -1 divided among those above it; among all others where it stands at the top."""
    rivals = is_above(lists, scores).astype(np.float64)
    is_top = np.bincount(lists.query_of, weights=rivals, minlength=len(lists.chosen)) == 0
    rivals[is_top[lists.query_of]] = 1.0
    rivals[lists.chosen] = 0.0
    n_rivals = np.bincount(lists.query_of, weights=rivals, minlength=len(lists.chosen))
    weights: Array = -rivals / np.maximum(n_rivals, 1.0)[lists.query_of]
    weights[lists.chosen] = 1.0
    return weights
