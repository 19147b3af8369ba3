"""What made-up documents betray: do real ones that they were made from lie nearer to them than others do?

The observer has the made-up documents and one real document, and asks how far away the nearest made-up one is. The
documents of the training set are members, those of the test set are not: an area of .5 under the curve is chance. It is
a measure, not a bound: a better attack may find more. `reconstruction.py` does not fit: it guesses the search behind an
upload, and there is neither a search nor an upload behind made-up documents.
"""

from __future__ import annotations

import numpy as np

from hushrank.files import Json
from hushrank.metrics.roc import area_under_roc
from hushrank.types import Array

_FALSE_ALARMS = 0.05  # share of outsiders that the observer takes for members
_ROWS = 1024  # of distances at once


def measure_closeness(made_up: Array, members: Array, outsiders: Array) -> Json:
    """Each [n, n_features]; every feature counts by its spread over all real documents."""
    spread = np.concatenate([members, outsiders]).std(axis=0, dtype=np.float64)
    scale = np.where(spread > 0, spread, 1.0)
    near, far = (find_distances(documents / scale, made_up / scale) for documents in (members, outsiders))
    return {
        "auc": compare_distances(near, far),
        "found": float(np.mean(near < np.quantile(far, _FALSE_ALARMS))),
        "chance": _FALSE_ALARMS,
        "identical": float(np.mean(near == 0)),
        "identical_outsiders": float(np.mean(far == 0)),
    }


def measure_sums(members: Array, reference: Array, outsiders: Array) -> float:
    """The area for an observer of sums: how far a document lies towards the members' mean, seen from others' mean.

    The observer has mean and covariance of the members, and other documents of the same kind for reference.
    """
    mean, other = members.mean(axis=0, dtype=np.float64), reference.mean(axis=0, dtype=np.float64)
    direction = np.linalg.pinv(np.cov(members, rowvar=False), hermitian=True) @ (mean - other)
    return compare_distances(-(members @ direction), -(outsiders @ direction))


def find_distances(documents: Array, others: Array) -> Array:
    """[n] squared distance of each document from the nearest of the others."""
    lengths = np.sum(others * others, axis=1)
    found = []
    for first in range(0, len(documents), _ROWS):
        rows = documents[first : first + _ROWS]
        nearest = np.argmin(lengths - 2 * rows @ others.T, axis=1)
        found.append(np.sum((rows - others[nearest]) ** 2, axis=1))  # Why again: equal ones are then 0 apart
    return np.concatenate(found)


def compare_distances(near: Array, far: Array) -> float:
    """The chance that a member is nearer than an outsider, ties counted half."""
    return area_under_roc(-near, -far)
