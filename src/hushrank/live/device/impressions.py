"""One list that a person was shown on their own device, and how it stands in a row of the device's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushrank.types import Array

SAMPLED, SORTED = "plackett-luce", "sorted"  # policies: how a list was made of its scores
PERSONAL = ("features", "scores", "ranking", "clicks")  # what is deleted when a list is old
COLUMNS = "round, policy, seed, direction, n_candidates, features, scores, ranking, clicks"


@dataclass(frozen=True, slots=True)
class Impression:
    """One list that was shown, all that made it so, and the clicks on it. n candidates, k shown."""

    round: int  # of the ranker that made the list
    features: Array  # [n, n_features] float32 of every candidate
    scores: Array  # [n] float32 of every candidate, as the list was made
    ranking: Array  # [k] candidates' places among the n, as shown
    is_clicked: Array  # [k] bool
    policy: str = SAMPLED  # drawn from the scores (plackett-luce), or by decreasing score (sorted)
    seed: int | None = None  # of the perturbation under which it was shown (evolution strategies)
    direction: int | None = None  # 1: by params + noise, -1: by params - noise

    def __post_init__(self) -> None:
        check_impression(self)


def check_impression(impression: Impression) -> None:
    """Refuse what cannot have been shown. Says counts only: what was shown and clicked is personal."""
    n, shown, clicks = len(impression.scores), impression.ranking, impression.is_clicked
    if np.ndim(impression.features) != 2 or len(impression.features) != n or not n:
        raise ValueError(f"features are {np.shape(impression.features)} for {n} scores, must be one row for each.")
    if not (np.isfinite(impression.features).all() and np.isfinite(impression.scores).all()):
        raise ValueError("a feature or a score is not a finite number: such a list cannot be learnt from.")
    if len(shown) != len(clicks) or not len(shown):
        raise ValueError(
            f"{len(shown)} documents and {len(clicks)} click marks came, must be equally many, at least 1."
        )
    if len(np.unique(shown)) != len(shown) or np.min(shown) < 0 or np.max(shown) >= n:
        raise ValueError(f"a ranking names different documents, each from 0 to {n - 1}: this one does not.")
    if impression.policy not in (SAMPLED, SORTED):
        raise ValueError(f"policy is {impression.policy!r}, must be {SAMPLED} or {SORTED}.")
    if (impression.seed is None) != (impression.direction is None) or impression.direction not in (None, 1, -1):
        raise ValueError("a perturbed list has a seed and a direction, 1 or -1; another list has neither.")


def as_row(impression: Impression) -> tuple[Any, ...]:
    """Its values for `COLUMNS`; arrays as little-endian bytes."""
    return (
        impression.round,
        impression.policy,
        impression.seed,
        impression.direction,
        len(impression.scores),
        np.ascontiguousarray(impression.features, "<f4").tobytes(),
        np.ascontiguousarray(impression.scores, "<f4").tobytes(),
        np.ascontiguousarray(impression.ranking, "<i4").tobytes(),
        np.ascontiguousarray(impression.is_clicked, bool).tobytes(),
    )


def as_impression(row: Sequence[Any]) -> Impression:
    """From the values of `COLUMNS`."""
    round, policy, seed, direction, n_candidates, features, scores, ranking, clicks = row
    return Impression(
        round,
        np.frombuffer(features, "<f4").reshape(n_candidates, -1),
        np.frombuffer(scores, "<f4"),
        np.frombuffer(ranking, "<i4"),
        np.frombuffer(clicks, bool),
        policy,
        seed,
        direction,
    )
