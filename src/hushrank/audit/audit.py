"""An audit: what is claimed after so many rounds, and what was measured, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushrank.audit.estimators import Bound, Confidence, bound_from_canaries, bound_from_runs
from hushrank.audit.trial import AuditTrial
from hushrank.privacy.protection import Exposure, Protection
from hushrank.privacy.renyi import composed_epsilon
from hushrank.streams import draw_bits, fold_in, seed_key, stream
from hushrank.types import Array

ESTIMATORS = ("runs", "one-run")
CONFIDENCE = 0.999  # of a bound, unless given
_WORK = 5 * 10**7  # numbers drawn, unless the runs are given; Why: some twenty seconds
_MOST_RUNS, _LEAST_RUNS = 10**6, 2000  # of each federation, unless given
_AT_ONCE, _MOST_AT_ONCE = 2**20, 2**16  # numbers of a round, and runs, that are held at once
_HERE, _THERE, COINS = 0, 1, 2  # the draws of an audit: runs with the canary, runs without, who is in the one run
_LOOKS = 8  # numbers of rounds that are looked at, at most


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How an audit is done."""

    estimator: str = "runs"  # or one-run: canaries in many clients of a single run
    runs: int | None = None  # of each federation; None: what twenty seconds allow
    confidence: float = CONFIDENCE
    seed: int = 1
    report: Callable[[float], None] = lambda _: None  # hears which share of the work is done

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise ValueError(f"the estimator is {self.estimator!r}, must be one of {', '.join(ESTIMATORS)}.")
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}, must be from .5 to below 1, for instance {CONFIDENCE}.")
        if self.runs is not None and self.runs < 2:
            raise ValueError(f"runs is {self.runs}, must be at least 2: half of them choose what the others count.")


@dataclass(frozen=True, slots=True)
class Look:
    """A training up to a round: what is claimed for it, and what was measured."""

    rounds: int
    claim: float
    bound: Bound

    @property
    def is_above(self) -> bool:
        """Whether the claim is refuted. Why not by the bound for normal noise: that rests on more than was counted."""
        return self.bound.epsilon > self.claim


def audit_trial(
    trial: AuditTrial, claim: Callable[[int], float], *, delta: float | None, options: AuditOptions
) -> list[Look]:
    """At some numbers of rounds, the last of all; claim: (rounds) -> epsilon. Each bound has the stated confidence."""
    looks = choose_looks(trial.rounds)
    sure = Confidence(1 - options.confidence, delta or 0.0)
    bounds = (_audit_runs if options.estimator == "runs" else _audit_one_run)(trial, looks, sure, options)
    return [Look(rounds, claim(rounds), bound) for rounds, bound in zip(looks, bounds, strict=True)]


def choose_looks(rounds: int) -> list[int]:
    """1, ..., all of them, each about as many times the one before."""
    return sorted({max(1, int(n)) for n in np.geomspace(1, rounds, _LOOKS)} | {rounds})


def choose_runs(trial: AuditTrial) -> int:
    """Of each federation: as many as are done soon."""
    return int(np.clip(_WORK // (2 * trial.work), _LEAST_RUNS, _MOST_RUNS))


def _audit_runs(trial: AuditTrial, looks: Sequence[int], sure: Confidence, options: AuditOptions) -> list[Bound]:
    n = options.runs or choose_runs(trial)
    here, there = (_score_all(trial, looks, n, world, options) for world in (_HERE, _THERE))
    return [bound_from_runs(a, b, sure, is_normal=trial.is_normal) for a, b in zip(here.T, there.T, strict=True)]


def _score_all(trial: AuditTrial, looks: Sequence[int], n: int, world: int, options: AuditOptions) -> Array:
    """[n, n_looks] in pieces that fit into memory."""
    key, pieces = stream(seed_key(options.seed), world), list[Array]()
    size = min(max(1, _AT_ONCE * trial.rounds // trial.work), _MOST_AT_ONCE)
    for first in range(0, n, size):
        keys = fold_in(key, np.arange(first, min(first + size, n)))
        pieces.append(trial.score_runs(keys, looks, is_here=world == _HERE))
        options.report((world * n + first + len(keys)) / (2 * n))
    return np.concatenate(pieces)


def _audit_one_run(trial: AuditTrial, looks: Sequence[int], sure: Confidence, options: AuditOptions) -> list[Bound]:
    if options.runs is not None:
        raise ValueError("runs is for --estimator runs: the other one makes a single run, with n_clients canaries.")
    key = seed_key(options.seed)
    is_in = draw_bits(stream(key, COINS), trial.n_canaries) % 2 == 1
    scores = trial.score_canaries(stream(key, _HERE), looks, is_in)
    options.report(1.0)
    return [bound_from_canaries(column, is_in, sure) for column in scores.T]


def claim_epsilon(protection: Protection, exposure: Exposure) -> float:
    """What a mechanism promises for all rounds of an exposure, as its reports and ledgers say."""
    explained = protection.explain(exposure)
    if explained is not None and explained.get("epsilon") is not None:
        return float(explained["epsilon"])
    price = protection.price(exposure)
    if price is None or exposure.rounds is None:
        raise ValueError(f"privacy={protection.mode} promises no epsilon here: there is nothing to audit.")
    spent = composed_epsilon([replace(price, times=price.times * exposure.rounds)], delta=exposure.delta)
    if math.isinf(spent):
        raise ValueError("this mechanism has no pure epsilon: give --delta, for instance 1e-5.")
    return spent
