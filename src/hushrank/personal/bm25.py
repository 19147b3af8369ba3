"""BM25 over titles: an inverted index, the best documents of queries, the score of given pairs [robertson2009].

    score(q, d) = sum over words w of q:  idf(w) tf (k1 + 1) / (tf + k1 (1 - b + b length(d) / mean length))
    idf(w) = log(1 + (N - df(w) + 1/2) / (df(w) + 1/2))

A word that stands twice in a query counts twice. Padding and unknown words match nothing, so a query of unknown words
only has no candidates. Equal scores are ordered by document number. Shapes: n queries with m candidates in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hushrank.personal.log import FIRST_WORD, Collection
from hushrank.types import Array

K1, B = 1.2, 0.75
_BLOCK_POSTINGS = 1 << 22  # Why: about 300 MB of sorting at most, however many queries come at once


@dataclass(frozen=True, slots=True)
class Bm25Index:
    """For each word the titles that hold it, with what the word adds to their score."""

    pointers: Array  # [n_words + 1] int64; word w owns the postings pointers[w]:pointers[w + 1]
    documents: Array  # [n_postings] int32, ascending within a word
    weights: Array  # [n_postings] float64
    n_documents: int


class Candidates(NamedTuple):
    """Documents of several queries, end to end, best first."""

    starts: Array  # [n + 1] int64
    documents: Array  # [m] int32
    scores: Array  # [m] float64


def make_index(
    collection: Collection,
    *,
    k1: float = K1,
    b: float = B,
    n_documents: int | None = None,
    mean_length: float | None = None,
) -> Bm25Index:
    """Every known word of every title, weighted.

    n_documents, mean_length: of the engine's whole collection, where this one holds a part of it; document frequencies
    are then the whole's, too.
    """
    n_counted = collection.n_documents if n_documents is None else n_documents
    mean_length = collection.mean_length if mean_length is None else mean_length
    rows, places = np.nonzero(collection.titles >= FIRST_WORD)
    keys = collection.titles[rows, places].astype(np.int64) * max(collection.n_documents, 1) + rows
    keys, counts = np.unique(keys, return_counts=True)
    words, documents = np.divmod(keys, max(collection.n_documents, 1))
    frequency = collection.document_frequency[words]
    idf = np.log1p((n_counted - frequency + 0.5) / (frequency + 0.5))
    length = collection.lengths[documents] / max(mean_length, 1e-9)
    weights = idf * counts * (k1 + 1) / (counts + k1 * (1 - b + b * length))
    pointers = np.concatenate([[0], np.cumsum(np.bincount(words, minlength=collection.n_words))])
    return Bm25Index(pointers.astype(np.int64), documents.astype(np.int32), weights, collection.n_documents)


def find_candidates(index: Bm25Index, queries: Array, sizes: int | Array) -> Candidates:
    """The best `sizes` (one number, or one for each query) documents of queries [n, n_query_words]."""
    wanted = np.broadcast_to(np.asarray(sizes, dtype=np.int64), (len(queries),))
    parts = [_find_block(index, queries[rows], wanted[rows]) for rows in _blocks(index, queries)]
    lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.starts) for part in parts)])
    return Candidates(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *(part.documents for part in parts)]),
        np.concatenate([np.zeros(0), *(part.scores for part in parts)]),
    )


def score_pairs(index: Bm25Index, queries: Array, documents: Array) -> tuple[Array, Array]:
    """BM25 score and number of matched query words, both [m], of documents [m] for queries [m, n_query_words]."""
    scores, n_matched = np.zeros(len(documents)), np.zeros(len(documents), dtype=np.int64)
    for words in queries.T:  # Why by place in the query: the same order of additions as find_candidates
        rows = np.flatnonzero((words >= FIRST_WORD) & (words < len(index.pointers) - 1))
        places = _find_postings(index, words[rows], documents[rows])
        is_found = places >= 0
        scores[rows[is_found]] += index.weights[places[is_found]]
        n_matched[rows[is_found]] += 1
    return scores, n_matched


def _find_postings(index: Bm25Index, words: Array, documents: Array) -> Array:
    """[n] the place of each (word, document), or -1: binary search in all posting lists at once."""
    low, high = index.pointers[words], index.pointers[words + 1]
    ends = high
    while (low < high).any():
        middle = (low + high) // 2
        is_below = index.documents[np.minimum(middle, len(index.documents) - 1)] < documents
        is_open = low < high
        low, high = np.where(is_open & is_below, middle + 1, low), np.where(is_open & ~is_below, middle, high)
    is_found = low < ends
    is_found[is_found] = index.documents[low[is_found]] == documents[is_found]
    return np.where(is_found, low, -1)


def _blocks(index: Bm25Index, queries: Array) -> Iterator[slice]:
    """Runs of queries with a bounded number of postings in all; a single query may have more."""
    n_postings = _count_postings(index, queries).sum(axis=1)
    block = np.cumsum(n_postings) // _BLOCK_POSTINGS
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(queries)]
    return (slice(first, stop) for first, stop in pairwise(edges) if stop > first)


def _count_postings(index: Bm25Index, queries: Array) -> Array:
    """[n, n_query_words] titles that hold each word; 0 for padding, unknown words and words of another vocabulary."""
    is_known = (queries >= FIRST_WORD) & (queries < len(index.pointers) - 1)
    words = np.where(is_known, queries, 0)
    return np.where(is_known, index.pointers[words + 1] - index.pointers[words], 0)


def _find_block(index: Bm25Index, queries: Array, wanted: Array) -> Candidates:
    counts = _count_postings(index, queries).ravel()
    firsts = index.pointers[np.where(counts > 0, queries.ravel(), 0)]
    places = np.repeat(firsts - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    owners = np.repeat(np.repeat(np.arange(len(queries)), queries.shape[1]), counts)
    keys = owners * index.n_documents + index.documents[places]
    order = np.argsort(keys, kind="stable")
    heads = np.flatnonzero(np.diff(keys[order], prepend=-1))
    scores = np.add.reduceat(index.weights[places][order], heads) if len(heads) else np.zeros(0)
    owners, documents = np.divmod(keys[order][heads], max(index.n_documents, 1))
    best = np.lexsort((documents, -scores, owners))
    ranks = np.arange(len(best)) - np.searchsorted(owners, owners)  # owners ascend before and after
    best = best[ranks < wanted[owners]]
    starts = np.searchsorted(owners[best], np.arange(len(queries) + 1))
    return Candidates(starts.astype(np.int64), documents[best].astype(np.int32), scores[best])
