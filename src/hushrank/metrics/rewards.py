"""What an evolution strategy can make larger: rewards that take finitely many values, and rewards in a stated range.

The first are privatised by randomised response, the second by Laplace noise. Each is a number for one shown list.
MaxRR, LastRR and click-through need clicks only; nDCG and DCG need relevance grades, so only a simulation has them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushrank.metrics.max_rr import max_rr, max_rr_values
from hushrank.metrics.ndcg import dcg, ndcg
from hushrank.types import Array

Measure = Callable[[Array, Array, Array], float]  # (ranked_grades [k], is_clicked [k], all_grades) -> value


@dataclass(frozen=True, slots=True)
class FiniteReward:
    """A measure rounded to the nearest of finitely many values (a tie goes to the lower one)."""

    name: str
    values: tuple[float, ...]  # ascending
    measure: Measure

    def __post_init__(self) -> None:
        if len(self.values) < 2 or not np.all(np.diff(self.values) > 0):
            raise ValueError(f"reward {self.name} has values {self.values}, must be at least two, ascending.")

    def __call__(self, ranked_grades: Array, is_clicked: Array, all_grades: Array) -> float:
        value = self.measure(ranked_grades, is_clicked, all_grades)
        return self.values[int(np.argmin(np.abs(np.asarray(self.values) - value)))]


@dataclass(frozen=True, slots=True)
class RangeReward:
    """A measure that can take any value from `low` to `high`; what lies beyond is moved to the nearer end."""

    name: str
    low: float
    high: float
    measure: Measure

    def __post_init__(self) -> None:
        if not -np.inf < self.low < self.high < np.inf:
            raise ValueError(f"reward {self.name} goes from {self.low} to {self.high}, must be finite and ascending.")

    def __call__(self, ranked_grades: Array, is_clicked: Array, all_grades: Array) -> float:
        return min(max(self.measure(ranked_grades, is_clicked, all_grades), self.low), self.high)


def finite_reward(name: str, *, k: int = 10, n_points: int = 11, top_grade: int = 2) -> FiniteReward:
    """The reward called `name` for pages of k results.

    n_points: of the grid onto which nDCG (0 to 1) and DCG (0 to the best list of top_grade documents) are rounded; the
    other rewards have values of their own.
    """
    measure = _measure_named(name, k)
    if name in _CLICK_VALUES:
        return FiniteReward(name, _CLICK_VALUES[name](k), measure)
    if n_points < 2:
        raise ValueError(f"n_points is {n_points}, must be at least 2: the ends of the grid.")
    grid = np.linspace(0.0, _highest(name, k, top_grade), n_points)
    return FiniteReward(name, tuple(map(float, grid)), measure)


def range_reward(name: str, *, k: int = 10, top_grade: int = 2) -> RangeReward:
    """The reward called `name`, not rounded."""
    return RangeReward(name, 0.0, _highest(name, k, top_grade), _measure_named(name, k))


def last_rr(is_clicked: Array, *, k: int = 10) -> float:
    """1 / rank of the lowest clicked result among the first k; 0 without a click there."""
    ranks = np.flatnonzero(np.asarray(is_clicked)[:k]) + 1
    return float(1.0 / ranks[-1]) if len(ranks) else 0.0


def click_through(is_clicked: Array, *, k: int = 10) -> float:
    """1 if anything among the first k was clicked, else 0: its mean is the share of lists that are not abandoned.

    Differs: elsewhere click-through is also the number of clicks per list.
    """
    return float(np.any(np.asarray(is_clicked)[:k]))


# {name: the measure at k of (ranked_grades, is_clicked, all_grades)}
_MEASURES: dict[str, Callable[..., float]] = {
    "MaxRR": lambda _, is_clicked, __, *, k: max_rr(is_clicked, k=k),
    "LastRR": lambda _, is_clicked, __, *, k: last_rr(is_clicked, k=k),
    "click-through": lambda _, is_clicked, __, *, k: click_through(is_clicked, k=k),
    "nDCG": lambda ranked_grades, _, all_grades, *, k: ndcg(ranked_grades, all_grades, k=k),
    "DCG": lambda ranked_grades, _, __, *, k: dcg(ranked_grades, k=k),
}
_CLICK_VALUES: dict[str, Callable[[int], tuple[float, ...]]] = {
    "MaxRR": max_rr_values,
    "LastRR": max_rr_values,
    "click-through": lambda _: (0.0, 1.0),
}
REWARD_NAMES = tuple(_MEASURES)


def _measure_named(name: str, k: int) -> Measure:
    if name not in _MEASURES:
        spelt = {known.lower(): known for known in REWARD_NAMES}
        near = difflib.get_close_matches(name.lower(), spelt, n=1)
        hint = f"did you mean {spelt[near[0]]!r}?" if near else f"known: {', '.join(REWARD_NAMES)}."
        raise ValueError(f"no reward is called {name!r}; {hint}")
    return partial(_MEASURES[name], k=k)


def _highest(name: str, k: int, top_grade: int) -> float:
    if name == "DCG":
        return dcg(np.full(k, top_grade), k=k)
    return 1.0
