"""MaxRR: the reciprocal rank of the highest clicked result, as seen and as expected [foltr-es, section 5].

Only clicks on the first k results count, so MaxRR takes k + 1 values: 0 (no click), 1/k, ..., 1/2, 1.
Shapes: the last axis is the list as shown; leading axes are batches.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hushrank.metrics.query_mean import QueryMean
from hushrank.types import Array, QuerySet


class ClickChances(Protocol):
    """P(click | rank, grade, still reading) = examine[rank] click[grade]; a person stops only after a click."""

    @property
    def examine(self) -> tuple[float, ...]:
        """[k or more]"""

    @property
    def click(self) -> tuple[float, ...]:
        """[n_grades]"""


def max_rr(is_clicked: Array, *, k: int = 10) -> float:
    """1 / rank of the highest clicked result among the first k; 0 without a click there."""
    ranks = np.flatnonzero(np.asarray(is_clicked)[: _at_least_one(k)]) + 1
    return float(1.0 / ranks[0]) if len(ranks) else 0.0


def max_rr_values(k: int = 10) -> tuple[float, ...]:
    """[k + 1] every value that MaxRR@k can take, ascending."""
    return (0.0, *(1.0 / rank for rank in range(_at_least_one(k), 0, -1)))


def max_rr_distribution(ranked_grades: Array, user: ClickChances, *, k: int = 10) -> Array:
    """[..., k + 1] how likely each value of `max_rr_values(k)` is, for lists of grades [..., n].

    P(first click at rank i) = c_i (1 - c_1) ... (1 - c_(i-1)), with c_i the chance of a click at rank i. Whether people
    stop after a click does not matter, because the first click settles MaxRR.
    """
    return _first_click_distribution(_click_chances(ranked_grades, user, k), k)


def expected_max_rr(ranked_grades: Array, user: ClickChances, *, k: int = 10) -> Array:
    """[...] the expectation of MaxRR@k over this person's clicks, for lists of grades [..., n]."""
    return np.asarray(max_rr_distribution(ranked_grades, user, k=k) @ np.array(max_rr_values(k)))


def mean_expected_max_rr(queries: QuerySet, scores: Array, user: ClickChances, *, k: int = 10) -> QueryMean:
    """The expected MaxRR@k of a ranker's scores [n_documents], over *all* queries [foltr-es, section 6.3, Table 3].

    Unlike nDCG, queries without a relevant document count: people click on their documents too, and the rank of that
    click is what they experience. (For the perfect user they count as 0.) Equal scores keep the order of the file.
    Differs: the published code sorts unstably and from the end, so there equal scores are in no stated order.
    """
    if np.shape(scores) != (queries.n_documents,):
        raise ValueError(f"scores have shape {np.shape(scores)}, must be one per document: ({queries.n_documents},).")
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("scores hold NaN, so there is no ranking. Did training diverge? Try a smaller learning_rate.")
    ranked = queries.grades[np.lexsort((-values, np.repeat(np.arange(queries.n_queries), queries.lengths)))]
    place = np.arange(_at_least_one(k))
    rows = queries.starts[:-1, None] + place  # [n_queries, k]
    is_shown = place < queries.lengths[:, None]
    chances = _click_chances(ranked[np.where(is_shown, rows, 0)], user, k) * is_shown
    expected = _first_click_distribution(chances, k) @ np.array(max_rr_values(k))
    return QueryMean(float(expected.mean()) if len(expected) else float("nan"), len(expected), 0)


def _click_chances(ranked_grades: Array, user: ClickChances, k: int) -> Array:
    """[..., min(n, k)] the chance of a click at each rank that is reached."""
    shown = np.asarray(ranked_grades)[..., : _at_least_one(k)]
    if len(user.examine) < shown.shape[-1]:
        raise ValueError(f"the click table covers {len(user.examine)} ranks, lists of {shown.shape[-1]} came.")
    return np.asarray(user.click)[shown] * np.asarray(user.examine)[: shown.shape[-1]]


def _first_click_distribution(chances: Array, k: int) -> Array:
    """[..., k + 1] no click first, then a first click at rank k, ..., 2, 1; ranks that do not exist have chance 0."""
    unclicked = np.cumprod(1.0 - chances, axis=-1)
    above = np.concatenate([np.ones_like(unclicked[..., :1]), unclicked], axis=-1)  # nothing clicked above rank i
    missing = np.zeros((*chances.shape[:-1], k - chances.shape[-1]))
    return np.concatenate([above[..., -1:], missing, (chances * above[..., :-1])[..., ::-1]], axis=-1)


def _at_least_one(k: int) -> int:
    if k < 1:
        raise ValueError(f"k is {k}, must be at least 1.")
    return k
