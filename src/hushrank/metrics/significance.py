"""Is a difference real? Tests over folds and repeats, from SciPy's t distribution.

All tests compare `ours` with `theirs`; a positive difference means that ours are higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class Comparison:
    """A two-tailed t-test of two sets of results."""

    statistic: float  # t
    p: float  # two-tailed
    n: int  # pairs, or for independent sets the values of both together
    degrees_of_freedom: float
    mean_difference: float  # ours minus theirs
    interval: tuple[float, float]  # in which the mean difference lies with the given confidence
    confidence: float


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two one-sided paired t-tests: is the mean difference inside (-margin, margin)?"""

    statistic: float  # t of the side with the larger p
    p: float  # the larger of the two one-sided p values; small means equal within the margin
    n: int  # pairs
    degrees_of_freedom: float
    mean_difference: float  # ours minus theirs
    interval: tuple[float, float]  # equal within the margin at level alpha when the 1 - 2 alpha interval is inside it
    confidence: float
    margin: float


def paired_t_test(ours: Sequence[float], theirs: Sequence[float], *, confidence: float = 0.95) -> Comparison:
    """Student's t-test of the differences of results that belong together (same fold, same repeat)."""
    differences = _differences(ours, theirs)
    n = len(differences)
    return _compare(float(differences.mean()), _standard_error(differences), n, n - 1.0, confidence)


def independent_t_test(
    ours: Sequence[float], theirs: Sequence[float], *, equal_variance: bool = False, confidence: float = 0.95
) -> Comparison:
    """t-test of unrelated results: Welch's by default, Student's with `equal_variance`."""
    a, b = _values(ours), _values(theirs)
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    if equal_variance:
        dof = float(len(a) + len(b) - 2)
        pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / dof
        error = sqrt(pooled * (1 / len(a) + 1 / len(b)))
    else:
        spread = va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)
        dof = float((va + vb) ** 2 / spread) if spread > 0 else float(len(a) + len(b) - 2)
        error = sqrt(va + vb)
    return _compare(float(a.mean() - b.mean()), error, len(a) + len(b), dof, confidence)


def equivalence_test(
    ours: Sequence[float], theirs: Sequence[float], *, margin: float, confidence: float = 0.9
) -> Equivalence:
    """Two one-sided tests on pairs: a small p says that the two are equal within the margin."""
    if not margin > 0:
        raise ValueError(f"margin is {margin}, must be > 0: the largest difference that still counts as equal.")
    from scipy.stats import t as student

    differences = _differences(ours, theirs)
    mean, error, dof = float(differences.mean()), _standard_error(differences), len(differences) - 1.0
    above = _statistic(mean + margin, error)  # against "ours are lower by the margin or more"
    below = _statistic(mean - margin, error)  # against "ours are higher by the margin or more"
    p_above, p_below = float(student.sf(above, dof)), float(student.cdf(below, dof))
    statistic, p = (above, p_above) if p_above >= p_below else (below, p_below)
    return Equivalence(
        statistic, p, len(differences), dof, mean, _interval(mean, error, dof, confidence), confidence, margin
    )


def bonferroni(p_values: Sequence[float], *, n_tests: int | None = None) -> tuple[float, ...]:
    """p values of several tests made at once: each times the number of tests, at most 1."""
    n = len(p_values) if n_tests is None else n_tests
    if n < len(p_values):
        raise ValueError(f"n_tests is {n}, must be at least the number of p values given, {len(p_values)}.")
    return tuple(min(1.0, p * n) for p in p_values)


def _compare(mean: float, error: float, n: int, dof: float, confidence: float) -> Comparison:
    from scipy.stats import t as student

    statistic = _statistic(mean, error)
    p = float(2 * student.sf(abs(statistic), dof))
    return Comparison(statistic, p, n, dof, mean, _interval(mean, error, dof, confidence), confidence)


def _statistic(mean: float, error: float) -> float:
    """mean / error. Without any spread: 0 when the mean is 0, infinite otherwise."""
    if error > 0:
        return mean / error
    return float(np.sign(mean)) * inf if mean else 0.0


def _interval(mean: float, error: float, dof: float, confidence: float) -> tuple[float, float]:
    from scipy.stats import t as student

    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, must be between 0 and 1, for instance .95.")
    reach = float(student.ppf((1 + confidence) / 2, dof)) * error
    return mean - reach, mean + reach


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / sqrt(len(values)))


def _differences(ours: Sequence[float], theirs: Sequence[float]) -> Array:
    if len(ours) != len(theirs):
        raise ValueError(
            f"pairs are needed: {len(ours)} results against {len(theirs)}. Use the same folds and repeats."
        )
    return _values(np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64))


def _values(results: Sequence[float] | Array) -> Array:
    values = np.asarray(results, dtype=np.float64)
    if len(values) < 2:
        came = "one result has" if len(values) else "no results have"
        raise ValueError(f"{came} no spread to test against: use at least two folds or repeats.")
    if not np.isfinite(values).all():
        raise ValueError("a result is not finite, so it cannot be tested.")
    return values
