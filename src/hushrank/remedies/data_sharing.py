"""Data-sharing: some training queries are everybody's, and a first ranker is trained on them [zhao2018].

Differs: the published text draws the global set from the entire data set; here it is drawn from the training queries of
a fold, so that no test query is in it. As in the published code, a query that every client gets leaves the parts that
clients have of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushrank.data.queries import join_queries, slice_queries, take_queries
from hushrank.keys import at_least, check_share, key
from hushrank.remedies.remedy import Remedy, Shared
from hushrank.streams import draw_uniform
from hushrank.types import Array, QuerySet


@dataclass(frozen=True)
class DataSharing(Remedy):
    """A global set G of whole queries; a share alpha of it goes to every client, who searches in all that it has alike.

    Clients that judge the same documents by different intents get the union of the intents for the queries of G.
    """

    shared_share: float = key(0.1, "the global set, as a share of the training queries", check=check_share)
    alpha: float = key(1.0, "share of the global set that every client gets", check=check_share)
    warm_up: int = key(
        1000,
        "searches of central PDGD on the global set, whose ranker is the first; 0: none",
        check=at_least(0),
    )

    @property
    def warning(self) -> str | None:
        return (
            f"The server has {100 * self.shared_share:.3g} % of all training queries with documents and grades, and "
            f"every client has {100 * self.alpha:.3g} % of these: nothing protects them."
        )

    def share(self, train: QuerySet, parts: Sequence[QuerySet], *, key: Array) -> Shared:
        order = np.argsort(draw_uniform(key, train.n_queries), kind="stable")
        common = take_queries(train, order[: self.count_shared(train)])
        given = self.take_given(common)
        return Shared(common, tuple(replace_queries(part, train, given) for part in parts), self.warm_up)

    def count_shared(self, train: QuerySet) -> int:
        """Queries of the global set; refuses none."""
        n = round(self.shared_share * train.n_queries)
        if not n:
            raise ValueError(
                f"shared_share is {self.shared_share}, which is none of {train.n_queries} training queries: raise it, "
                "or leave remedy out."
            )
        return n

    def take_given(self, common: QuerySet) -> QuerySet:
        """What every client gets: nothing for alpha=0, otherwise at least one query."""
        n = round(self.alpha * common.n_queries)
        return slice_queries(common, 0, max(n, 1) if self.alpha else 0)


def replace_queries(part: QuerySet, train: QuerySet, given: QuerySet) -> QuerySet:
    """A client's queries, those that everybody gets exchanged for what everybody gets."""
    if not given.n_queries:
        return part
    names = set(given.query_ids)
    is_given = np.array([name in names for name in part.query_ids], bool)
    if part.features is train.features:  # the same documents, so that at most their grades differ: no copy of features
        grades = np.where(np.repeat(is_given, part.lengths), train.grades, part.grades)
        return part if np.array_equal(grades, part.grades) else replace(part, grades=grades)
    return join_queries([take_queries(part, np.flatnonzero(~is_given)), given])
