"""Word vectors from titles: positive pointwise mutual information, factorised [levy2014]; a user's own to begin with.

    ppmi(v, w) = max(0, log(n(v, w) N / (n(v) n(w)^.75 N^.25)))        (the contexts' counts are smoothed)

n(v, w) counts titles with both words. The best d factors of that matrix give the vectors U sqrt(S), each then scaled to
length 1: KNRM uses cosines, and everything else gets inputs of a known size. Row 0 (padding) is 0 and row 1 (unknown)
is 0 too, so that an unknown word is like nothing. Training needs SciPy and belongs on a server; devices get the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushrank.extras import require_package
from hushrank.personal.log import FIRST_WORD, Collection, SearchLog
from hushrank.types import Array

N_DIMENSIONS = 100
_SMOOTHING = 0.75  # of the contexts' counts, so that rare words do not stand out
_HALF_WAY = 5.0  # clicks after which a word's personal start lies half-way between everybody's use and the user's


def train_vectors(collection: Collection, *, n_dimensions: int = N_DIMENSIONS) -> Array:
    """[n_words, n_dimensions] float32, the same bits for the same titles on the same machine.

    A vocabulary of fewer words than dimensions gives vectors that are 0 in the last dimensions. A word that shares no
    title with another has the vector 0.
    """
    require_package("scipy")
    matrix = _make_ppmi(collection)
    n = matrix.shape[0]
    vectors = np.zeros((collection.n_words, n_dimensions), dtype=np.float32)
    if n == 0:
        return vectors
    n_factors = min(n_dimensions, n)
    left, sizes = _factorise(matrix, n_factors)
    # Why: the sign of a factor is arbitrary; its largest entry is made positive.
    left *= np.sign(left[np.argmax(np.abs(left), axis=0), np.arange(n_factors)])
    vectors[FIRST_WORD:, :n_factors] = scale_rows(left * np.sqrt(sizes))
    return vectors


def scale_rows(rows: Array) -> Array:
    """Each row at length 1; rows of nearly nothing become 0."""
    norms = np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 1e-8)


def find_words(log: SearchLog, collection: Collection) -> Array:
    """[k] int32 the words of a user's queries and clicked titles, ascending: those that get vectors of the user's own.

    Known words only. Which words these are never leaves the client.
    """
    clicked = collection.titles[np.unique(log.documents[log.is_clicked])]
    words = np.unique(np.concatenate([log.queries.ravel(), clicked.ravel()]))
    return words[words >= FIRST_WORD].astype(np.int32)


def start_personal(vectors: Array, log: SearchLog, collection: Collection, *, from_log: bool = False) -> Array:
    """[k, d] first personal vectors of the words of `find_words`: everybody's, or moved towards the user's own use.

    Why not PPMI of the user's log: counts of a handful of titles make no vectors. Instead, with `from_log`, a query's
    word goes n / (n + 5) of the way to the mean of the n titles that the user clicked for it. A word without clicks
    keeps everybody's vector.
    """
    words = find_words(log, collection)
    start = np.array(vectors[words], dtype=np.float32)
    if not from_log or not len(words):
        return start
    owners, documents = log.owners()[log.is_clicked], log.documents[log.is_clicked]
    titles = scale_rows(vectors[collection.titles[documents]].sum(axis=1, dtype=np.float64))
    queries = log.queries[owners]
    sums, counts = np.zeros(start.shape), np.zeros(len(words))
    for place in range(queries.shape[1]):
        is_known = queries[:, place] >= FIRST_WORD
        rows = np.searchsorted(words, queries[is_known, place])
        np.add.at(sums, rows, titles[is_known])
        np.add.at(counts, rows, 1)
    share = (counts / (counts + _HALF_WAY))[:, None]
    own = sums / np.maximum(counts, 1)[:, None]
    return np.where(counts[:, None] > 0, scale_rows((1 - share) * start + share * own), start).astype(np.float32)


def _make_ppmi(collection: Collection) -> Any:
    """Sparse [n_words - 2, n_words - 2]: positive mutual information of known words."""
    from scipy import sparse

    rows, places = np.nonzero(collection.titles >= FIRST_WORD)
    words = collection.titles[rows, places] - FIRST_WORD
    shape = (collection.n_documents, max(collection.n_words - FIRST_WORD, 0))
    incidence = sparse.csr_matrix((np.ones(len(rows)), (rows, words)), shape=shape)
    incidence.data[:] = 1  # Why: a word that stands twice in a title counts once
    together = (incidence.T @ incidence).tocoo()
    is_pair = together.row != together.col
    left, right, counts = together.row[is_pair], together.col[is_pair], together.data[is_pair]
    total = np.bincount(left, weights=counts, minlength=shape[1])
    contexts = total**_SMOOTHING
    with np.errstate(divide="ignore"):
        information = np.log(counts * contexts.sum() / (total[left] * contexts[right]))
    is_positive = information > 0
    cells = (information[is_positive], (left[is_positive], right[is_positive]))
    return sparse.csr_matrix(cells, shape=(shape[1], shape[1]))


def _factorise(matrix: Any, n_factors: int) -> tuple[Array, Array]:
    """Left vectors [n, n_factors] and sizes, largest first."""
    n = matrix.shape[0]
    if n_factors >= n - 1 or n <= 4 * n_factors:  # Why: the sparse method finds few of many; small ones are dense
        left, sizes, _ = np.linalg.svd(matrix.toarray())
        return left[:, :n_factors], sizes[:n_factors]
    from scipy.sparse.linalg import svds

    left, sizes, _ = svds(matrix, k=n_factors, v0=np.full(n, n**-0.5), tol=1e-6)
    order = np.argsort(-sizes, kind="stable")
    return left[:, order], sizes[order]
