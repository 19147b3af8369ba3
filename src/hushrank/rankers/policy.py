"""From scores to a shown list: Plackett-Luce sampling (PDGD explores with it) and plain sorting."""

from __future__ import annotations

import numpy as np

from hushrank.types import Array


def sample_ranking(scores: Array, uniforms: Array, *, k: int = 10) -> Array:
    """[min(k, n)] document indices, drawn one after another with P(d) = e^score(d) / sum over those left.

    scores, uniforms: [n]. Adding a Gumbel draw to each score and sorting draws from the same distribution
    [oosterhuis2018, Eqs. 1-2; fpdgd, Eqs. 1-2].
    """
    gumbel = -np.log(-np.log(uniforms))
    return sort_ranking(scores + gumbel, k=k)


def sort_ranking(scores: Array, *, k: int = 10) -> Array:
    """[min(k, n)] document indices by decreasing score; equal scores keep their order."""
    return np.argsort(-scores, kind="stable")[:k]
