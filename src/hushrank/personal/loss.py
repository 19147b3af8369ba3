"""LambdaRank with average precision: pairs of a clicked and an unclicked candidate, each as heavy as its swap matters.

    loss = sum over pairs of lambda_ij log(1 + e^-(s_i - s_j)),   lambda_ij = |change of AP when i and j swap|

i is clicked, j is not, and the swap is in the original list [burges2010; fedps, section 3.3.1]. `loss_fast.py` is the
twin for the simulator. Shapes: B searches, D candidates in their original order.
"""

from __future__ import annotations

import numpy as np

from hushrank.metrics.relevant import average_precision
from hushrank.types import Array


def weigh_pairs(is_clicked: Array) -> Array:
    """[D, D] float64 lambda of each pair (clicked, unclicked) of one list [D], zero elsewhere: the definition."""
    before = average_precision(is_clicked)
    weights = np.zeros((len(is_clicked), len(is_clicked)))
    for i in np.flatnonzero(is_clicked):
        for j in np.flatnonzero(~np.asarray(is_clicked)):
            swapped = is_clicked.copy()
            swapped[[i, j]] = swapped[[j, i]]
            weights[i, j] = abs(average_precision(swapped) - before)
    return weights


def count_pairs(is_clicked: Array, is_document: Array) -> Array:
    """[B] pairs of a clicked and an unclicked candidate."""
    n_clicked = np.count_nonzero(is_clicked & is_document, axis=-1)
    return n_clicked * (np.count_nonzero(is_document, axis=-1) - n_clicked)


def pair_loss(scores: Array, is_clicked: Array, is_document: Array) -> tuple[float, Array]:
    """The loss over all pairs of searches [B, D], and its gradient [B, D] with respect to the scores."""
    total, gradient = 0.0, np.zeros_like(scores)
    for query in range(len(scores)):
        n = int(np.count_nonzero(is_document[query]))  # Why: padding stands behind the candidates
        difference = scores[query, :n, None] - scores[query, None, :n]
        weights = weigh_pairs(is_clicked[query, :n])
        total += float(np.sum(weights * np.logaddexp(0.0, -difference)))
        pull = weights * -0.5 * (1.0 - np.tanh(0.5 * difference))  # -lambda / (1 + e^(s_i - s_j))
        gradient[query, :n] = pull.sum(axis=1) - pull.sum(axis=0)
    return total, gradient
