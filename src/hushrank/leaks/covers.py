"""How often an engine that remembers, and has learnt nothing, finds the person's query among its covers.

An engine that keeps what one id asked knows the topics that this id comes back to. It takes each set of a query and its
covers, weighs every text by how well its topics fit those of all *other* sets of the same id, and guesses the text that
fits best. By chance it would be right once in k + 1 sets. Shapes: n searches of one user, k covers each, T topics.
"""

from __future__ import annotations

import numpy as np

from hushrank.privacy.cover_topics import CoverTopics, infer_mix
from hushrank.types import Array


def guess_queries(topics: CoverTopics, queries: Array, covers: Array) -> Array:
    """[n] the probability with which the engine is right, for queries [n, L] and covers [n, k, L].

    Sets with the same texts count once among the others: the same query has the same covers, and says nothing new.
    """
    texts = np.concatenate([queries[:, None], covers], axis=1)  # [n, k + 1, L]
    mixes = infer_mix(topics, texts.reshape(-1, texts.shape[2])).reshape(*texts.shape[:2], -1)
    others = sum_other_sets(mixes, queries)
    fit = np.einsum("nkt,nt->nk", mixes, others)
    is_best = fit >= fit.max(axis=1, keepdims=True) - 1e-12
    return np.asarray(is_best[:, 0] / is_best.sum(axis=1))


def sum_other_sets(mixes: Array, queries: Array) -> Array:
    """[n, T] the topics of all other sets, for sets with mixes [n, k + 1, T]; each query [n, L] counts once."""
    _, firsts, back = np.unique(np.sort(queries, axis=1), axis=0, return_index=True, return_inverse=True)
    sums = mixes.sum(axis=1)
    return np.asarray(sums[firsts].sum(axis=0) - sums[firsts[back.ravel()]])
