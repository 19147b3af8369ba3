"""How well a number tells two kinds apart: the ROC curve, the area under it, and how sure one may be of it.

A high number says "positive". Values come in groups that belong together, such as several trainings about one person.
The interval is a percentile bootstrap over the groups, because values within a group are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.streams import Purpose, draw_below, fold_in, seed_key, stream
from hushrank.types import Array

FALSE_ALARMS = 0.05  # share of negatives that may be taken for positives where one point of the curve is named
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class RatedGroup:
    """The values of one group."""

    positives: tuple[float, ...]
    negatives: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Roc:
    """A curve from (0, 0) to (1, 1): one corner for each value that a threshold can have."""

    false_alarms: Array  # [n] share of the negatives at or above the threshold, not decreasing
    found: Array  # [n] share of the positives at or above it, not decreasing

    def found_at(self, false_alarms: float = FALSE_ALARMS) -> float:
        """The largest share of positives that a threshold finds with at most so many false alarms."""
        return float(self.found[self.false_alarms <= false_alarms].max())


@dataclass(frozen=True, slots=True)
class MeasuredRoc:
    """A curve with its area, and what they were measured on."""

    roc: Roc
    area: float  # .5: chance, 1: always right
    interval: tuple[float, float] | None  # of the area; None: no group disagrees, so that resampling shows no spread
    confidence: float
    found: float  # share of positives found at 5 % false alarms; with fewer than 20 negatives: without any
    n_groups: int
    n_positives: int
    n_negatives: int


def area_under_roc(positives: Array, negatives: Array) -> float:
    """The chance that a positive is above a negative, ties counted half: Mann-Whitney's U over all pairs."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, side="left")
    ties = np.searchsorted(ordered, positives, side="right") - below
    return float(np.mean(below + ties / 2) / len(negatives))


def find_roc(positives: Array, negatives: Array) -> Roc:
    """The curve of all thresholds, the highest first."""
    thresholds = np.unique(np.concatenate([positives, negatives]))[::-1]
    found, false_alarms = (
        (len(values) - np.searchsorted(np.sort(values), thresholds, side="left")) / len(values)
        for values in (positives, negatives)
    )
    return Roc(np.concatenate([[0.0], false_alarms]), np.concatenate([[0.0], found]))


def measure_roc(groups: Sequence[RatedGroup], *, confidence: float = 0.95, seed: int = 0) -> MeasuredRoc:
    """The curve over all values, and an interval of its area by drawing whole groups with replacement."""
    _check_groups(groups)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, must be between 0 and 1, for instance .95.")
    positives = np.concatenate([np.asarray(group.positives, np.float64) for group in groups])
    negatives = np.concatenate([np.asarray(group.negatives, np.float64) for group in groups])
    areas = _resample_areas(groups, seed=seed)
    low, high = np.quantile(areas, [(1 - confidence) / 2, (1 + confidence) / 2])
    roc = find_roc(positives, negatives)
    return MeasuredRoc(
        roc,
        area_under_roc(positives, negatives),
        (float(low), float(high)) if low < high else None,
        confidence,
        roc.found_at(),
        len(groups),
        len(positives),
        len(negatives),
    )


def _resample_areas(groups: Sequence[RatedGroup], *, seed: int) -> Array:
    """[n_resamples] areas. Pairs are counted once, for each group's positives and each group's negatives."""
    n = len(groups)
    pairs = np.array([[len(a.positives) * len(b.negatives) for b in groups] for a in groups], np.float64)
    wins = pairs * [[area_under_roc(np.array(a.positives), np.array(b.negatives)) for b in groups] for a in groups]
    keys = fold_in(stream(seed_key(seed), Purpose.BOOTSTRAP), np.arange(_RESAMPLES))
    drawn = draw_below(keys, n, n)
    times = np.stack([np.bincount(row, minlength=n) for row in drawn]).astype(np.float64)  # how often each group
    return np.sum(times @ wins * times, axis=1) / np.sum(times @ pairs * times, axis=1)


def _check_groups(groups: Sequence[RatedGroup]) -> None:
    if len(groups) < 2:
        raise ValueError(f"{len(groups)} groups came, must be at least 2: one alone has no spread to judge by.")
    for place, group in enumerate(groups):
        if not group.positives or not group.negatives:
            raise ValueError(f"group {place} lacks positives or negatives: each must have at least one of both.")
        if not np.isfinite([*group.positives, *group.negatives]).all():
            raise ValueError(f"a value of group {place} is not finite, so it cannot be compared.")
