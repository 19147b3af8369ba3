"""PDGD from lists that were shown earlier, by a policy that wrote down what it did.

PDGD is sound on lists that the ranker being updated has shown. For any other list, rho must come from the policy that
showed it, not from today's scores. The log holds what that takes: the probability with which each document was
put into its position, given those above it.

Shapes: n candidates, k shown (k <= n); propensities [k], each in (0, 1].
"""

from __future__ import annotations

import math

import numpy as np

from hushrank.learners.pdgd import infer_preferences, log_mass_left, reversal_weight, sigmoid
from hushrank.types import Array, Ranker

_NEARLY_ONE = float(np.nextafter(1.0, 0.0))
_SMALLEST = float(np.finfo(np.float64).tiny)


def logged_pdgd_gradient(
    ranker: Ranker,
    params: Array,
    features: Array,
    ranking: Array,
    is_clicked: Array,
    propensities: Array,
    *,
    max_weight: float | None = None,
) -> Array:
    """[n_params] the direction in which the clicked documents of a logged list rise; no click gives zero.

    features [n, n_features] of every candidate, ranking [k] indices as shown, is_clicked [k], propensities [k].
    rho comes from the propensities (`logged_masses`), the pair gradient from today's scores. `max_weight` corrects for
    lists that today's ranker would show more or less often than the logging policy: the gradient is multiplied
    by min(P_now(list) / P_logged(list), max_weight). None: no correction.
    """
    _check_logged(ranking, is_clicked, propensities, n_candidates=len(features), max_weight=max_weight)
    shown = ranker.score(params, features[ranking])
    weights = _weigh_pairs(shown, is_clicked, *logged_masses(propensities))
    if max_weight is not None and weights.any():
        now = log_propensities(ranker.score(params, features), ranking)
        weights *= importance_weight(now, propensities, max_weight=max_weight)
    return ranker.score_gradient(params, features[ranking], weights)


def rescored_pdgd_gradient(
    ranker: Ranker,
    params: Array,
    features: Array,
    scores: Array,
    ranking: Array,
    is_clicked: Array,
    *,
    max_weight: float | None = None,
) -> Array:
    """[n_params] the same from a log that holds the scores [n] of every candidate with which the list was sampled.

    On a list that today's ranker has shown it is `pdgd_gradient`, bit for bit, whatever `max_weight` of at least 1.
    """
    _check_list(ranking, is_clicked, n_candidates=len(features), max_weight=max_weight)
    logged = log_propensities(scores, ranking)
    today = ranker.score(params, features)
    weights = _weigh_pairs(today[ranking], is_clicked, scores[ranking], log_mass_left(scores, ranking))
    if max_weight is not None and weights.any():
        weights *= importance_weight(log_propensities(today, ranking), logged, max_weight=max_weight)
    return ranker.score_gradient(params, features[ranking], weights)


def _weigh_pairs(shown: Array, is_clicked: Array, log_masses: Array, log_left: Array) -> Array:
    """[k] how much each shown document should rise: rho by the logged masses, the pair gradient by today's scores."""
    weights = np.zeros(len(shown), dtype=shown.dtype)
    for k, l in infer_preferences(is_clicked):
        rho = reversal_weight(log_masses, log_left, k, l)  # [fpdgd, Eq. 6], under the policy that showed the list
        weight = rho * sigmoid(shown[k] - shown[l]) * sigmoid(shown[l] - shown[k])  # [fpdgd, Eq. 5], today
        weights[k] += weight
        weights[l] -= weight
    return weights


def logged_masses(propensities: Array) -> tuple[Array, Array]:
    """Log of the mass e_i of each shown document, and of the mass D_i left at its position: both [k].

    A Plackett-Luce policy puts a document of mass e_i into position i with p_i = e_i / D_i. rho does not change when
    all masses are multiplied by the same number, so let all candidates together have D_1 = 1. Then e_i = p_i D_i and
    D_(i+1) = D_i - e_i = D_i (1 - p_i): the propensities alone give every mass that rho needs, those of the documents
    that were not shown being part of D. Logarithms, because a product of many small numbers vanishes.
    """
    p = np.asarray(propensities, dtype=np.float64)
    # Why: a document that takes all the mass but a rounding error has p = 1; what stands below it has the error's size.
    kept = np.log1p(-np.minimum(p[:-1], _NEARLY_ONE))
    log_left = np.concatenate([[0.0], np.cumsum(kept)])
    return np.log(p) + log_left, log_left


def log_propensities(scores: Array, ranking: Array) -> Array:
    """[k] what to write into a log: P(document at i | those above it) = e^s_i / sum of e^s over the candidates left.

    scores [n] of all candidates, ranking [k] indices as shown. Float64, and never 0: a log must be readable.
    """
    scores = np.asarray(scores, dtype=np.float64)
    return np.clip(np.exp(scores[ranking] - log_mass_left(scores, ranking)), _SMALLEST, 1.0)


def importance_weight(now: Array, logged: Array, *, max_weight: float) -> float:
    """min(P_now(list) / P_logged(list), max_weight), each P the product of a list's propensities [k]."""
    log_ratio = float(np.sum(np.log(now)) - np.sum(np.log(logged)))
    return max_weight if log_ratio >= math.log(max_weight) else math.exp(log_ratio)


def _check_logged(
    ranking: Array, is_clicked: Array, propensities: Array, *, n_candidates: int, max_weight: float | None
) -> None:
    """Refuse what cannot be a logged list. Says counts only: what was shown and clicked is personal."""
    if not (len(ranking) == len(is_clicked) == len(propensities)) or not len(ranking):
        raise ValueError(
            f"{len(ranking)} documents, {len(is_clicked)} click marks and {len(propensities)} propensities came, must "
            "be equally many and at least 1: one of each per shown document."
        )
    if not np.all((propensities > 0) & (propensities <= 1)):
        raise ValueError("a propensity is outside (0, 1]: a shown document was shown with some probability.")
    _check_list(ranking, is_clicked, n_candidates=n_candidates, max_weight=max_weight)


def _check_list(ranking: Array, is_clicked: Array, *, n_candidates: int, max_weight: float | None) -> None:
    if len(ranking) != len(is_clicked) or not len(ranking):
        raise ValueError(
            f"{len(ranking)} documents and {len(is_clicked)} click marks came, must be equally many, at least 1."
        )
    if len(np.unique(ranking)) != len(ranking) or np.min(ranking) < 0 or np.max(ranking) >= n_candidates:
        raise ValueError(f"a ranking names different documents, each from 0 to {n_candidates - 1}: this one does not.")
    if max_weight is not None and not 0 < max_weight < math.inf:
        raise ValueError(f"max_weight is {max_weight}, must be a number > 0. For no correction, set it to None.")
