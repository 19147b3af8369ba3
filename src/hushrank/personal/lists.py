"""Lists of candidates: shortened without losing clicks, filled up with what BM25 finds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.personal.bm25 import Bm25Index, Candidates, find_candidates, score_pairs
from hushrank.personal.log import Collection, ListSizes, Periods, SearchLog, SearchPopulation
from hushrank.types import Array


def keep_top(starts: Array, is_clicked: Array, sizes: Array) -> Array:
    """[m] True for the first `sizes` [n] documents of each list, the last ones giving way to clicked ones below.

    All clicked documents stay, even where there are more of them than the size.
    """
    lengths = np.diff(starts)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((np.arange(len(owners)), ~is_clicked, owners))  # clicked first, then by rank
    is_kept = np.zeros(len(owners), dtype=bool)
    is_kept[order] = np.arange(len(owners)) - starts[owners] < sizes[owners]
    return is_kept | is_clicked


def complete_lists(index: Bm25Index, queries: Array, given: Candidates, sizes: Array) -> tuple[Candidates, Array]:
    """Given documents of each query [n, 20] with the best that BM25 finds beside them, all ordered by BM25.

    Returns the lists, and [m] whether a document was given. `sizes` [n] is the length of a list; 0, or a number of
    given ones above it: these alone. The scores of `given` are not used.
    """
    found = find_candidates(index, queries, sizes)
    owners = np.concatenate([_owners(given.starts), _owners(found.starts)])
    documents = np.concatenate([given.documents, found.documents])
    is_given = np.arange(len(owners)) < len(given.documents)
    keys = owners * max(index.n_documents, 1) + documents
    _, firsts = np.unique(keys, return_index=True)  # Why: the first of two equal ones is the given one
    owners, documents, is_given = owners[firsts], documents[firsts], is_given[firsts]
    scores, _ = score_pairs(index, queries[owners], documents)
    order = np.lexsort((documents, -scores, owners))
    owners, documents, scores, is_given = owners[order], documents[order], scores[order], is_given[order]
    starts = np.searchsorted(owners, np.arange(len(queries) + 1)).astype(np.int64)
    kept = keep_top(starts, is_given, sizes)
    starts = np.searchsorted(owners[kept], np.arange(len(queries) + 1)).astype(np.int64)
    return Candidates(starts, documents[kept].astype(np.int32), scores[kept]), is_given[kept]


def cut_lists(log: SearchLog, size: int) -> SearchLog:
    """The log with at most `size` documents in a list, as `keep_top` chooses them."""
    kept = keep_top(log.starts, log.is_clicked, np.full(log.n_searches, size))
    return replace(
        log,
        starts=np.concatenate([[0], np.cumsum(kept)])[log.starts],
        documents=log.documents[kept],
        is_clicked=log.is_clicked[kept],
        dwell=None if log.dwell is None else log.dwell[kept],
    )


@dataclass(frozen=True)
class EvenLists:
    """A population whose lists are equally long in all periods, so that all weeks measure the same task."""

    population: SearchPopulation
    size: int  # of all lists

    @property
    def name(self) -> str:
        return self.population.name

    @property
    def description(self) -> str:
        return f"{self.population.description}; here {self.size} documents in the lists of all weeks"

    @property
    def identity(self) -> str:
        return f"{self.population.identity}, {self.size}"

    @property
    def is_generated(self) -> bool:
        return self.population.is_generated

    @property
    def n_users(self) -> int:
        return self.population.n_users

    @property
    def collection(self) -> Collection:
        return self.population.collection

    @property
    def periods(self) -> Periods:
        return self.population.periods

    @property
    def list_sizes(self) -> ListSizes:
        return ListSizes(test=self.size, other=self.size)

    @property
    def n_query_words(self) -> int:
        return self.population.n_query_words

    def log_of(self, user: int) -> SearchLog:
        return cut_lists(self.population.log_of(user), self.size)


def even_lists(population: SearchPopulation) -> SearchPopulation:
    """The population with the shorter lists of the two in all periods."""
    sizes = population.list_sizes
    if sizes.test == sizes.other:
        return population
    if 0 in (sizes.test, sizes.other):
        raise ValueError(
            "the lists of this population are filled up in one period and as they were read in the others, so that "
            "weeks cannot be compared: read the log again with list sizes that are both 0 or both above 0."
        )
    return EvenLists(population, min(sizes.test, sizes.other))


def _owners(starts: Array) -> Array:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
