"""Measures that only ask whether a document is relevant (grade >= 1): reciprocal rank, average precision, precision.

Shapes: `ranked_grades` are the grades of all documents of one query, in ranked order.
"""

from __future__ import annotations

import numpy as np

from hushrank.types import Array


def reciprocal_rank(ranked_grades: Array) -> float:
    """1 / rank of the first relevant document; 0 without one. Its mean over queries is MRR."""
    ranks = _relevant_ranks(ranked_grades)
    return float(1.0 / ranks[0]) if len(ranks) else 0.0


def average_precision(ranked_grades: Array) -> float:
    """Mean, over the relevant documents, of the precision at each one's rank; 0 without one. Its mean is MAP."""
    ranks = _relevant_ranks(ranked_grades)
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else 0.0


def precision(ranked_grades: Array, *, k: int = 10) -> float:
    """Relevant documents among the first k, over k, also when the list is shorter than k (as in trec_eval)."""
    if k < 1:
        raise ValueError(f"k is {k}, must be at least 1.")
    return float(np.count_nonzero(np.asarray(ranked_grades)[:k]) / k)


def _relevant_ranks(ranked_grades: Array) -> Array:
    """The ranks 1, 2, ... at which relevant documents stand."""
    return np.flatnonzero(np.asarray(ranked_grades)) + 1
