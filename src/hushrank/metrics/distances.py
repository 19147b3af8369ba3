"""How far apart two rankers are: by their parameters, and by the lists that people would see.

Rankings are those of `rank_by_score`: equal scores keep the order of the file, so that no list has ties. Queries with
fewer than two documents have only one ranking; they are skipped and counted.

Shapes: N documents of all queries that count, end to end; a place is a document's rank within its query, from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.metrics.query_mean import rank_by_score
from hushrank.types import Array, QuerySet

PERSISTENCE = 0.9  # p of rank-biased overlap: the first ten ranks then have 86 % of the weight


@dataclass(frozen=True, slots=True)
class RankingDistance:
    """Two rankers' lists compared, means over queries; 1 where all lists are the same. NaN without a query."""

    rbo: float  # rank-biased overlap, from 0 to 1
    tau: float  # Kendall's tau, from -1 (reversed) to 1
    n_queries: int  # in the mean
    n_skipped: int  # with fewer than two documents, left out


def relative_distance(params: Array, reference: Array) -> float:
    """L2 distance of two rankers' parameters [n_params], in lengths of the reference."""
    ours, theirs = _check_parameters(params, reference)
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def cosine_similarity(params: Array, reference: Array) -> float:
    """The cosine of the angle between two rankers' parameters [n_params]; 0 where one of them has no direction."""
    ours, theirs = _check_parameters(params, reference)
    length = float(np.linalg.norm(ours))
    return float(ours @ theirs / (length * np.linalg.norm(theirs))) if length else 0.0


def compare_rankings(queries: QuerySet, scores: Array, reference: Array, *, p: float = PERSISTENCE) -> RankingDistance:
    """Two rankers by their scores [n_documents] of the same queries. p: as in `rank_biased_overlaps`."""
    if not 0 < p < 1:
        raise ValueError(f"p is {p}, must be between 0 and 1: the chance that a reader goes on to the next rank.")
    counts = queries.lengths > 1
    is_counted, lengths = np.repeat(counts, queries.lengths), queries.lengths[counts]
    ours, theirs = (_find_places(queries, each)[is_counted] for each in (scores, reference))
    found = (rank_biased_overlaps(ours, theirs, lengths, p=p), kendall_taus(ours, theirs, lengths))
    rbo, tau = (float(values.mean()) if len(lengths) else float("nan") for values in found)
    return RankingDistance(rbo, tau, len(lengths), queries.n_queries - len(lengths))


def rank_biased_overlaps(ours: Array, theirs: Array, lengths: Array, *, p: float = PERSISTENCE) -> Array:
    """[n_queries] RBO_ext of two rankings of the same documents, by their places [N] [webber2010].

    With X_d the documents that both have among their first d, of n:

        RBO_ext = X_n / n · p^n + (1 - p) / p · sum over d = 1..n of X_d / d · p^d, and X_n = n for whole rankings.
    """
    starts = np.cumsum(lengths) - lengths
    first = np.repeat(starts, lengths)
    depths = np.arange(len(ours)) - first + 1  # d
    entering = np.bincount(
        first + np.maximum(ours, theirs), minlength=len(ours)
    )  # documents that X_d has and X_d-1 not
    common = np.cumsum(entering) - first  # X_d: each earlier query has as many documents as ranks
    return p**lengths + (1 - p) / p * _add_up(common / depths * p**depths, starts)


def kendall_taus(ours: Array, theirs: Array, lengths: Array) -> Array:
    """[n_queries] Kendall's tau of two rankings, by their places [N]: 1 - 2 · share of the pairs in another order.

    Without ties, as here, tau-b is the same number.
    """
    pairs = lengths * (lengths - 1) / 2
    return 1 - 2 * count_inversions(ours, theirs, lengths) / pairs


def count_inversions(ours: Array, theirs: Array, lengths: Array) -> Array:
    """[n_queries] pairs of documents that two rankings, by their places [N], have in another order.

    Read in their order, our places are sorted by one bit after another, the highest first. Documents that share all
    higher bits form a block. A set bit before an unset one of the same block is an inversion, and each is met once.
    """
    starts = np.cumsum(lengths) - lengths
    block = np.repeat(starts, lengths)  # where the block of each document begins
    sequence = np.empty_like(ours)
    sequence[block + theirs] = ours
    total = np.zeros(len(lengths), np.int64)
    for bit in reversed(range(int(max(lengths, default=1) - 1).bit_length())):
        is_set = (sequence >> bit) & 1 == 1
        before = np.cumsum(is_set) - is_set
        before -= before[block]  # set ones before each document, in its block
        total += _add_up(np.where(is_set, 0, before), starts)
        n_unset = np.bincount(block[~is_set], minlength=len(block))[block]
        place = np.where(is_set, block + n_unset + before, np.arange(len(block)) - before)
        inner = np.where(is_set, block + n_unset, block)
        sequence[place], block[place] = sequence.copy(), inner
    return total


def _add_up(values: Array, starts: Array) -> Array:
    """[n_queries] sums over each query's documents."""
    return np.add.reduceat(values, starts) if len(starts) else np.zeros(0, values.dtype)


def _find_places(queries: QuerySet, scores: Array) -> Array:
    """[n_documents] the rank of each document within its query, from 0."""
    if np.shape(scores) != (queries.n_documents,):
        raise ValueError(f"scores have shape {np.shape(scores)}, must be one per document: ({queries.n_documents},).")
    places = np.empty(queries.n_documents, np.int64)
    for rows in map(queries.rows, range(queries.n_queries)):
        places[rows][rank_by_score(scores[rows])] = np.arange(rows.stop - rows.start)
    return places


def _check_parameters(params: Array, reference: Array) -> tuple[Array, Array]:
    """Both in float64."""
    if np.ndim(params) != 1 or np.shape(params) != np.shape(reference):
        raise ValueError(
            f"parameters of shapes {np.shape(params)} and {np.shape(reference)} came, must be two flat vectors of the "
            "same length: compare rankers of one kind and one number of features."
        )
    ours, theirs = np.asarray(params, np.float64), np.asarray(reference, np.float64)
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        raise ValueError("a parameter is not finite, so there is no distance. Did training diverge?")
    if not theirs.any():
        raise ValueError("the reference has length 0: a distance relative to it is not defined.")
    return ours, theirs
