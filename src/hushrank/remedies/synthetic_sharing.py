"""Synthetic sharing: as data-sharing, but the global set is made up from sums over clients [thesis, Section 7.2.4].

Clients send `Moments` once, before the first round; `moments.py` says what is in them and what they betray. The server
adds them up and draws queries: list lengths and grades, a normal vector for each query and one for each document, cut
to [0, 1] where all features lie there. No document of a client is in the set, and all clients keep what they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.data.queries import join_queries
from hushrank.keys import at_least, key
from hushrank.remedies.data_sharing import DataSharing
from hushrank.remedies.moments import add_moments, draw_queries, fit_model, sum_documents
from hushrank.remedies.remedy import Shared
from hushrank.types import Array, QuerySet


@dataclass(frozen=True)
class SyntheticSharing(DataSharing):
    """Where clients judge the same documents by different intents, a grade is that of a client drawn at random."""

    synthetic_queries: int | None = key(
        None, "queries of the global set; default: as many as data-sharing has", check=at_least(1)
    )

    @property
    def warning(self) -> str | None:
        return (
            "The server has sums over each client's documents by grade (means and covariances), and everybody has "
            "queries made up from them: nothing protects these sums."
        )

    def share(self, train: QuerySet, parts: Sequence[QuerySet], *, key: Array) -> Shared:
        common = self.make_up(train, parts, key=key)
        return Shared(common, add_queries(parts, self.take_given(common)), self.warm_up)

    def make_up(self, train: QuerySet, parts: Sequence[QuerySet], *, key: Array) -> QuerySet:
        """The global set. Of the training queries the server knows how many there are, and the clients' sums."""
        n_grades = int(train.grades.max()) + 1
        sums = add_moments([sum_documents(part, n_grades) for part in parts])
        n_copies = sum(part.n_documents for part in parts) / train.n_documents  # clients may have the same documents
        if n_copies == 1 and sums.lists.sum() > count_lists(train):
            raise ValueError(
                "remedy=synthetic-sharing counts lists by grade, and here the documents that a query has of one grade "
                "are divided among clients: use partition=labels-1 with one client for each grade, or "
                "remedy=data-sharing."
            )
        n_queries = self.synthetic_queries or self.count_shared(train)
        return draw_queries(fit_model(sums, train.n_queries * n_copies), n_queries, key=key)


def count_lists(queries: QuerySet) -> int:
    """Pairs of a query and a grade that some of its documents have."""
    of_query = np.repeat(np.arange(queries.n_queries), queries.lengths)
    return len(np.unique(np.stack([of_query, queries.grades]), axis=1).T)


def add_queries(parts: Sequence[QuerySet], given: QuerySet) -> tuple[QuerySet, ...]:
    """Each client's queries and what everybody gets; clients with the same features go on sharing them."""
    if not given.n_queries:
        return tuple(parts)
    joined: dict[int, QuerySet] = {}
    found = []
    for part in parts:
        own = join_queries([part, given])
        first = joined.setdefault(id(part.features), own)
        found.append(QuerySet(first.features, own.grades, own.starts, own.query_ids))
    return tuple(found)
