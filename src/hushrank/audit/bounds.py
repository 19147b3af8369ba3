"""From counts of right and wrong guesses to a lower bound on epsilon that holds with a stated confidence.

Two kinds of counts. Many runs, each with or without the canary, are independent: Clopper and Pearson's intervals hold
for both rates. Many canaries in one run are not: the noise that one guess is made of may be that of another, so only
the bound of [steinke2023] holds. Both bounds say: were epsilon smaller, such counts would come up too rarely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushrank.extras import require_package
from hushrank.types import Array

_CLOSE = 1e-4  # of an epsilon; Why: far below what any number of runs can tell apart
_LARGEST = 50.0  # of an epsilon that is looked for: e^50 is more than anybody can count


def rate_below(counts: Array, n: int, *, failure: float) -> Array:
    """[...] the least rate that `counts` of n do not refute; too high with probability `failure` [clopper1934]."""
    counts = np.asarray(counts)
    low = _beta_quantile(failure, np.maximum(counts, 1), n - counts + 1)
    return np.where(counts == 0, 0.0, low)


def rate_above(counts: Array, n: int, *, failure: float) -> Array:
    """[...] the highest rate that `counts` of n do not refute; too low with probability `failure` [clopper1934]."""
    counts = np.asarray(counts)
    high = _beta_quantile(1 - failure, counts + 1, np.maximum(n - counts, 1))
    return np.where(counts == n, 1.0, high)


def event_epsilon(often: Array, seldom: Array, *, delta: float) -> Array:
    """[...] the epsilon that an event shows: P <= e^epsilon P' + delta, so epsilon >= ln((P - delta) / P').

    0 or less: it shows nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log((np.asarray(often) - delta) / seldom)
    return np.where(np.asarray(often) > delta, found, -np.inf)


def normal_distance(often: Array, seldom: Array) -> Array:
    """[...] how many deviations two normal numbers are apart that exceed a threshold with these probabilities."""
    require_package("scipy")
    from scipy.special import ndtri

    with np.errstate(invalid="ignore"):
        found = ndtri(np.asarray(often)) - ndtri(np.asarray(seldom))
    return np.where(np.isfinite(found), found, -np.inf)


@dataclass(frozen=True, slots=True)
class Guesses:
    """What an attacker said about the canaries of one run."""

    n_canaries: int  # each in or out by a coin
    n_guesses: int  # of how many it said which
    n_right: int


def chance_of_guesses(guesses: Guesses, *, epsilon: float, delta: float) -> float:
    """How often so many guesses are right at most, if (epsilon, delta) holds [steinke2023, Theorem 5.2].

    Without delta the number of right guesses is at most as large as that of coins which fall right with probability
    e^epsilon / (1 + e^epsilon), however the guesses depend on each other. delta adds 2 m delta max_i P(v - i <= W < v)
    / i: what it may betray, spent on as many canaries as serves best. W: that number of coins, v: right guesses.
    """
    require_package("scipy")
    from scipy.stats import binom

    right = 1.0 / (1.0 + math.exp(-epsilon))
    coins = binom(guesses.n_guesses, right)
    chance = float(coins.sf(guesses.n_right - 1))
    if delta > 0 and guesses.n_right > 0:
        short = np.arange(1, guesses.n_right + 1)  # i
        within = np.cumsum(coins.pmf(guesses.n_right - short))
        chance += 2 * guesses.n_canaries * delta * float(np.max(within / short))
    return min(chance, 1.0)


def guesses_epsilon(guesses: Guesses, *, delta: float, failure: float) -> float:
    """The largest epsilon that these guesses refute; with probability `failure` they refute one that holds."""
    low, high = 0.0, _LARGEST
    if chance_of_guesses(guesses, epsilon=0.0, delta=delta) > failure:
        return 0.0
    while high - low > _CLOSE:
        middle = (low + high) / 2
        is_refuted = chance_of_guesses(guesses, epsilon=middle, delta=delta) <= failure
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def _beta_quantile(chance: float, a: Array, b: Array) -> Array:
    require_package("scipy")
    from scipy.special import betaincinv

    return np.asarray(betaincinv(a, b, chance))
