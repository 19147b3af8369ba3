"""Personal re-ranking on a device: an engine's list in the order that suits one person, by that person's own log.

    personal = PersonalRanker(shared_words)                # everybody's words, and a starting ranker
    order = personal.rank(history, query, documents, time=now)     # [n] places of the documents, best first

The profile is made anew from the log at each search, so that forgetting an entry forgets all of it. NumPy alone: no JAX
is loaded. The features are those of the lab, bit for bit (tests/personal/test_rerank.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushrank.personal.features import N_FEATURES, make_features
from hushrank.personal.queries.light import starting_weights
from hushrank.personal.queries.local_log import FoundDocument, LoggedSearch, SharedWords, read_searches
from hushrank.types import Array

MOST_SEARCHES = 500  # of the log that a profile is made from: the latest. Why: bounds what one search takes


class PersonalRanker:
    """Orders lists for one person. It keeps nothing between two searches but what everybody shares."""

    def __init__(self, shared: SharedWords, weights: Array | None = None) -> None:
        """weights: [N_FEATURES] of a federation; None: those that every device begins with."""
        weights = starting_weights() if weights is None else np.asarray(weights, dtype=np.float64)
        if weights.shape != (N_FEATURES,) or not np.isfinite(weights).all():
            raise ValueError(f"weights have shape {weights.shape}, must be {N_FEATURES} finite numbers.")
        self.shared, self.weights, self._numbers = shared, weights, shared.number_words()

    def features(
        self, history: Sequence[LoggedSearch], query: str, documents: Sequence[FoundDocument], *, time: int
    ) -> Array:
        """[n, N_FEATURES] float32 of the engine's documents for this search, by the searches before it."""
        now = LoggedSearch(time, query, tuple(documents), ())
        source, log = read_searches([*history[-MOST_SEARCHES:], now], self.shared, self._numbers)
        return make_features(source, log, first=log.n_searches - 1)

    def rank(
        self, history: Sequence[LoggedSearch], query: str, documents: Sequence[FoundDocument], *, time: int
    ) -> Array:
        """[n] places in the engine's list, best first; equal scores keep the engine's order."""
        if not documents:
            return np.zeros(0, dtype=np.int64)
        scores = self.features(history, query, documents, time=time) @ self.weights
        return np.argsort(-scores, kind="stable")

    def explain(self, features: Array) -> Array:
        """[n, N_FEATURES] what each feature adds to each document's score."""
        return np.asarray(features * self.weights)
