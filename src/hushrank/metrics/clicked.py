"""How well a new order of candidates serves the clicks: AP, reciprocal rank, P@1 and P-Improve [fedps, section 4.1].

Relevant is what was clicked. Shapes: B searches, D candidates in their original order, padding behind them. Candidates
of equal score keep their original order. Searches without a click are left out of every measure and counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class ClickedMeasures:
    """One number for each search with a click, in the order of the searches; `n_skipped` others had none."""

    average_precision: Array  # [n] float64; its mean is MAP
    reciprocal_rank: Array  # [n] its mean is MRR
    first_is_clicked: Array  # [n] 0 or 1; its mean is P@1
    n_skipped: int


@dataclass(frozen=True, slots=True)
class PairChanges:
    """How the new order treats pairs of a clicked and an unclicked candidate; counts of several sets may be added."""

    n_up: int  # the clicked one was below and is now above
    n_down: int  # the clicked one was directly above and is now below
    n_pairs: int

    @property
    def p_improve(self) -> float:
        """(up - down) / pairs; NaN without a pair."""
        return (self.n_up - self.n_down) / self.n_pairs if self.n_pairs else float("nan")

    def __add__(self, other: PairChanges) -> PairChanges:
        return PairChanges(self.n_up + other.n_up, self.n_down + other.n_down, self.n_pairs + other.n_pairs)


def measure_clicked(scores: Array, is_clicked: Array, is_document: Array) -> ClickedMeasures:
    """AP, reciprocal rank and P@1 of the order by decreasing score [B, D]."""
    _check(scores, is_clicked, is_document)
    order = np.argsort(np.where(is_document, -np.asarray(scores, np.float64), np.inf), axis=-1, kind="stable")
    has_click = (is_clicked & is_document).any(axis=-1)
    ranked = np.take_along_axis(is_clicked & is_document, order, axis=-1)[has_click]
    ranks = np.arange(1, ranked.shape[-1] + 1)
    precisions = np.cumsum(ranked, axis=-1) / ranks
    return ClickedMeasures(
        np.sum(precisions * ranked, axis=-1) / np.count_nonzero(ranked, axis=-1),
        1.0 / (1 + np.argmax(ranked, axis=-1)),
        ranked[:, 0].astype(np.float64),
        int(np.count_nonzero(~has_click)),
    )


def count_changes(scores: Array, is_clicked: Array, is_document: Array) -> PairChanges:
    """What P-Improve counts, over all searches [B, D].

    For a clicked candidate, each unclicked one above it in the original list is a pair, and so is the next one below it
    if that is unclicked: people who click have looked at these.
    """
    _check(scores, is_clicked, is_document)
    clicked, unclicked = (is_clicked & is_document)[..., :, None], (~is_clicked & is_document)[..., None, :]
    place = np.arange(is_clicked.shape[-1])
    was_below = clicked & unclicked & (place[:, None] > place[None, :])
    was_above = clicked & unclicked & (place[:, None] + 1 == place[None, :])
    difference = np.asarray(scores)[..., :, None] - np.asarray(scores)[..., None, :]
    counted = (was_below & (difference > 0), was_above & (difference < 0), was_below | was_above)
    n_up, n_down, n_pairs = (int(np.count_nonzero(which)) for which in counted)
    return PairChanges(n_up, n_down, n_pairs)


def _check(scores: Array, is_clicked: Array, is_document: Array) -> None:
    if not np.shape(scores) == np.shape(is_clicked) == np.shape(is_document):
        shapes = (np.shape(scores), np.shape(is_clicked), np.shape(is_document))
        raise ValueError(f"scores, is_clicked and is_document have shapes {shapes}, must be the same.")
    if np.isnan(np.asarray(scores)[is_document]).any():
        raise ValueError("scores hold NaN, so there is no ranking. Did training diverge? Try a smaller rate.")
