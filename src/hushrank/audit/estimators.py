"""The two estimators: scores of many runs, or of many canaries in one run, become a lower bound on epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.audit.bounds import Guesses, event_epsilon, guesses_epsilon, normal_distance, rate_above, rate_below
from hushrank.privacy.accounting import gaussian_epsilon
from hushrank.types import Array

_THRESHOLDS = 400  # that are tried; Why: a finer choice gains less than the counts can tell apart
_CAUTION = 1e-3  # Why: an event is chosen as if the failure were this much smaller; chance makes rare ones look best
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)  # of the canaries that are guessed; Why: few are sure, many are numerous


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on epsilon, and what it was counted from."""

    epsilon: float  # 0: nothing is shown
    counts: dict[str, int]  # what was counted
    epsilon_if_normal: float | None = None  # a larger bound, of noise that is known to be normal


@dataclass(frozen=True, slots=True)
class Event:
    """What an attacker waits for: a score at or above a threshold, or below it."""

    threshold: float
    is_above: bool

    def count(self, scores: Array) -> int:
        return int(np.count_nonzero((scores >= self.threshold) == self.is_above))


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a bound is, and of which promise."""

    failure: float  # probability that a bound is larger than the truth
    delta: float  # 0: pure epsilon


def bound_from_runs(here: Array, there: Array, sure: Confidence, *, is_normal: bool = False) -> Bound:
    """From the scores of runs with the canary [n] and without [m].

    The first half of the runs chooses the event, the second half counts it: the choice does not spoil the confidence.
    Each of the two rates may be wrong with half of the failure. is_normal: also the bound for noise that is normal.
    """
    if min(len(here), len(there)) < 2:
        raise ValueError(f"{len(here)} and {len(there)} runs were scored, must be at least 2 of each.")
    (first_here, here), (first_there, there) = _halve(here), _halve(there)
    event = choose_event(first_here, first_there, sure)
    often, seldom = _rates(event, here, there, sure)
    counts = {
        "runs_with_canary": len(here),
        "runs_without_canary": len(there),
        "events_with_canary": event.count(here),
        "events_without_canary": event.count(there),
    }
    epsilon = max(0.0, float(event_epsilon(often, seldom, delta=sure.delta)))
    if not is_normal or sure.delta == 0:
        return Bound(epsilon, counts)
    event = choose_event(first_here, first_there, sure, is_normal=True)
    distance = float(normal_distance(*_rates(event, here, there, sure)))
    return Bound(epsilon, counts, gaussian_epsilon(distance, delta=sure.delta) if distance > 0 else 0.0)


def _halve(scores: Array) -> tuple[Array, Array]:
    return scores[: len(scores) // 2], scores[len(scores) // 2 :]


def choose_event(here: Array, there: Array, sure: Confidence, *, is_normal: bool = False) -> Event:
    """The event whose bound would be largest on these runs."""
    both = np.sort(np.concatenate([here, there]))
    ranks = np.unique(np.geomspace(1, len(both), _THRESHOLDS // 2).astype(np.int64)) - 1
    thresholds = np.unique(np.concatenate([both[ranks], both[len(both) - 1 - ranks]]))
    tried = []
    for is_above in (True, False):
        n_here, n_there = (_count_all(scores, thresholds, is_above=is_above) for scores in (here, there))
        often, seldom = (n_here, n_there) if is_above else (n_there, n_here)
        totals = (len(here), len(there)) if is_above else (len(there), len(here))
        low = rate_below(often, totals[0], failure=_CAUTION * sure.failure / 2)
        high = rate_above(seldom, totals[1], failure=_CAUTION * sure.failure / 2)
        found = normal_distance(low, high) if is_normal else event_epsilon(low, high, delta=sure.delta)
        tried.append((float(found.max()), Event(float(thresholds[found.argmax()]), is_above)))
    return max(tried, key=lambda each: each[0])[1]


def _count_all(scores: Array, thresholds: Array, *, is_above: bool) -> Array:
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return len(scores) - below if is_above else below


def _rates(event: Event, here: Array, there: Array, sure: Confidence) -> tuple[Array, Array]:
    """(at least, at most): how often the event comes where it is likelier, and where it is not."""
    likelier, other = (here, there) if event.is_above else (there, here)
    return (
        rate_below(np.asarray(event.count(likelier)), len(likelier), failure=sure.failure / 2),
        rate_above(np.asarray(event.count(other)), len(other), failure=sure.failure / 2),
    )


def bound_from_canaries(scores: Array, is_in: Array, sure: Confidence, *, shares: Sequence[float] = _SHARES) -> Bound:
    """From the scores [m] of the canaries of one run, and which of them were in it [m].

    The highest scores are guessed to be in, as many of the lowest to be out. How many are guessed is tried for each of
    `shares`, and the failure divided among the trials.
    """
    order, m = np.argsort(scores, kind="stable"), len(scores)
    best = Bound(0.0, {"canaries": m, "guesses": 0, "right": 0})
    for share in shares:
        k = max(1, int(share * m / 2))
        n_right = int(is_in[order[m - k :]].sum() + (~is_in[order[:k]]).sum())
        guesses = Guesses(m, 2 * k, n_right)
        epsilon = guesses_epsilon(guesses, delta=sure.delta, failure=sure.failure / len(shares))
        if epsilon > best.epsilon or not best.counts["guesses"]:
            best = Bound(epsilon, {"canaries": m, "guesses": 2 * k, "right": n_right})
    return best
