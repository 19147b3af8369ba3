"""Pairwise differentiable gradient descent: what one person's clicks on one list say about the ranker [oosterhuis2018].

Shapes: n candidates, k shown (k <= n), positions 0 .. k - 1 of the shown list.
"""

from __future__ import annotations

import numpy as np

from hushrank.types import Array, Ranker


def pdgd_gradient(
    ranker: Ranker, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array
) -> Array:
    """[n_params] the direction in which the clicked documents rise.

    features [n, n_features] and scores [n] of every candidate, ranking [k] indices as shown, is_clicked [k].
    `scores` are those with which the list was sampled. No click gives zero.
    """
    shown = scores[ranking]
    weights = np.zeros(len(ranking), dtype=scores.dtype)
    log_left = log_mass_left(scores, ranking)
    for k, l in infer_preferences(is_clicked):
        rho = reversal_weight(shown, log_left, k, l)  # [fpdgd, Eq. 6]
        weight = (
            rho * sigmoid(shown[k] - shown[l]) * sigmoid(shown[l] - shown[k])
        )  # e^k e^l / (e^k + e^l)^2 [fpdgd, Eq. 5]
        weights[k] += weight
        weights[l] -= weight
    return ranker.score_gradient(params, features[ranking], weights)  # sum of weight (f'(k) - f'(l)) [fpdgd, Eq. 5]


def infer_preferences(is_clicked: Array) -> list[tuple[int, int]]:
    """Pairs (k, l) of positions, k preferred: each clicked one over each unclicked one that the person must have seen.

    Seen are the positions above the last click and the one directly below it.
    """
    if not is_clicked.any():
        return []
    last = int(np.flatnonzero(is_clicked)[-1])
    seen = range(min(last + 2, len(is_clicked)))
    return [(k, l) for k in seen if is_clicked[k] for l in seen if not is_clicked[l]]


def log_mass_left(scores: Array, ranking: Array) -> Array:
    """[k] log of the sum of e^score over the candidates left at each position (logarithms: scores may be huge)."""
    is_hidden = np.ones(len(scores), dtype=bool)
    is_hidden[ranking] = False
    tail = np.logaddexp.reduce(scores[is_hidden], initial=-np.inf)
    upwards = np.concatenate([[tail], scores[ranking][::-1]])
    left: Array = np.logaddexp.accumulate(upwards)[:0:-1]
    return left


def reversal_weight(shown: Array, log_left: Array, k: int, l: int) -> float:
    """rho = P(R*) / (P(R) + P(R*)), R* the list with positions k and l swapped [fpdgd, Eq. 6].

    With a < b the two positions and D_i the mass left at i, only the denominators of a < i <= b differ: D_i in R is
    D_i + e^s_a - e^s_b in R*, so P(R) / P(R*) is the product of (D_i + e^s_a - e^s_b) / D_i over them.
    """
    a, b = min(k, l), max(k, l)
    left = log_left[a + 1 : b + 1]
    with np.errstate(over="ignore"):  # Why: an infinite ratio is the right limit, rho = 0
        ratio = np.prod(np.maximum(1.0 + np.exp(shown[a] - left) - np.exp(shown[b] - left), 0.0))
    return float(1.0 / (1.0 + ratio))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), written so that it cannot overflow."""
    value: Array = 0.5 * (1.0 + np.tanh(0.5 * x))
    return value
