"""What is worth knowing about features before anybody trains on them: scales that differ, values that never do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hushrank.types import Array, Dataset, Notice, QuerySet

_ORDERS = 1_000  # Why: a weight of one feature then moves the scores as a thousand of another's do
_NAMED = 10  # features that a sentence lists


class FeatureRanges(NamedTuple):
    """The lowest and the highest value of each feature, [n_features]."""

    low: Array
    high: Array


def measure_ranges(sets: Iterable[QuerySet]) -> FeatureRanges:
    """Over all documents; a feature that a set lacks is 0 there."""
    return join_ranges(FeatureRanges(s.features.min(axis=0), s.features.max(axis=0)) for s in sets)


def join_ranges(ranges: Iterable[FeatureRanges]) -> FeatureRanges:
    """Over all of them; a feature that one lacks is 0 there."""
    listed = list(ranges)
    width = max((len(one.low) for one in listed), default=0)
    low, high = ([np.pad(side, (0, width - len(side))) for side in sides] for sides in zip(*listed, strict=True))
    return FeatureRanges(np.minimum.reduce(low), np.maximum.reduce(high))


def notice_dataset(dataset: Dataset) -> list[Notice]:
    """About the training queries, normalised as they are."""
    features = notice_features(measure_ranges(fold.train for fold in dataset.folds), normalise=dataset.normalise)
    return [*features, *_notice_undivided(dataset)]


def notice_features(ranges: FeatureRanges, *, normalise: str) -> list[Notice]:
    """What stands out in the ranges of the features, after this normalisation."""
    span = ranges.high.astype(np.float64) - ranges.low
    return [*_notice_scales(span, normalise), *_notice_constants(span)]


def _notice_undivided(dataset: Dataset) -> list[Notice]:
    if not any(fold.test is fold.train and fold.train.n_intents for fold in dataset.folds):
        return []
    sentence = "This set has no held-out queries: rankers are tested on the queries that they were trained on."
    advice = "So was the published one. To hold queries out, divide the file into train.txt, vali.txt and test.txt."
    return [Notice("no-held-out", sentence, advice, kind="note")]


def _notice_scales(span: Array, normalise: str) -> list[Notice]:
    """Ranges of which the widest is far wider than most.

    Why the tenth part: a few narrow features beside many wide ones cost little, a few wide ones beside many narrow
    ones cost the whole training. Why ranges: rare features of normalised data have a small spread and a range of 1.
    """
    varied = span[span > 0]
    if normalise != "none" or not len(varied):
        return []
    narrow, widest = float(np.quantile(varied, 0.1, method="lower")), float(varied.max())
    if widest < _ORDERS * narrow:
        return []
    sentence = (
        f"Features have very different scales: the widest range is {widest:.2g}, a tenth of them have ranges up to "
        f"{narrow:.2g}, and normalise is none. The wide ones decide the ranking alone."
    )
    return [Notice("scales", sentence, "Try --set normalise=query-minmax or --set normalise=standard.")]


def _notice_constants(span: Array) -> list[Notice]:
    places = np.flatnonzero(span == 0) + 1
    if not len(places):
        return []
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    names = ", ".join(str(place) for place in places[:_NAMED])
    are = "features has" if len(places) == 1 else "features have"
    sentence = f"{len(places)} of {len(span)} {are} the same value in every document ({names}{more})."
    return [Notice("constant-features", sentence, "They do no harm and teach nothing.", kind="note")]
