"""How much a privatised reward really betrays: the largest epsilon over all lists that could have been shown.

The bound of randomised response supposes that one query always gives a value and another never does. People are not
like that. So: take every placement of grades in a list, each with its distribution of rewards, and find the
two lists that one answer tells apart best [foltr-es, Eq. 9 and section 6.1].
"""

from __future__ import annotations

import math

import numpy as np

from hushrank.privacy.randomised_response import check_p
from hushrank.types import Array

_MOST_LISTS = 50_000_000


def enumerate_grades(length: int, *, n_grades: int = 3) -> Array:
    """[n_grades^length, length] uint8: every list of grades."""
    if length < 1 or n_grades < 2:
        raise ValueError(f"length is {length} and n_grades {n_grades}, must be at least 1 and 2.")
    if n_grades**length > _MOST_LISTS:
        raise ValueError(f"there are {n_grades}^{length} lists, more than {_MOST_LISTS:,}: use shorter lists.")
    return np.indices((n_grades,) * length, dtype=np.uint8).reshape(length, -1).T


def empirical_epsilon(distributions: Array, *, p: float) -> float:
    """epsilon = max over answers f and lists a, b of ln(P(f | a) / P(f | b)) [foltr-es, Eq. 9]; infinite at p = 1
    where a list never gives an answer that another gives.

    distributions [n_lists, n_values]: how likely each true value is. The best pair of lists for an answer is the one
    where it is likeliest and the one where it is rarest, so no pair has to be looked at.
    """
    shown = privatised_distribution(distributions, p=p)
    highest, lowest = shown.max(axis=0), shown.min(axis=0)
    if np.any((lowest == 0) & (highest > 0)):
        return math.inf
    possible = highest > 0
    return float(np.max(np.log(highest[possible] / lowest[possible])))


def privatised_distribution(distributions: Array, *, p: float) -> Array:
    """[..., n_values] how likely each answer is: P(f) p + (1 - P(f)) (1 - p) / (n - 1) [foltr-es, section 4]."""
    truths = np.asarray(distributions, dtype=np.float64)
    n = check_p(p, truths.shape[-1])
    if not (np.all(truths >= 0) and np.allclose(truths.sum(axis=-1), 1.0)):
        raise ValueError("a distribution has a negative chance or does not sum to 1.")
    return truths * p + (1.0 - truths) * ((1.0 - p) / (n - 1))
