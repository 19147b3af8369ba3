"""What is audited: two federations that a relation calls neighbours, run by the code that runs real ones.

A trial gives scores: how much likelier what an observer saw is with the canary than without. An estimator makes a
bound of them. Which noise a mechanism adds is its own affair; a trial only lets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hushrank.types import Array

MOST_CANARIES = 4000  # Why: each has a number of its own in every client's update, so memory grows with the square


class AuditTrial(Protocol):
    """One federation with a canary, and its neighbour."""

    @property
    def rounds(self) -> int:
        """That are observed."""

    @property
    def work(self) -> int:
        """Numbers that one run draws, about."""

    @property
    def is_normal(self) -> bool:
        """Whether its two sides are told apart as two normal numbers are, if the mechanism does what it says."""

    @property
    def n_canaries(self) -> int:
        """Clients of one run that can be in or out, each by a coin."""

    def score_runs(self, keys: Array, looks: Sequence[int], *, is_here: bool) -> Array:
        """[n, n_looks] evidence for the canary after so many rounds, of a run for each key [n, 2]."""

    def score_canaries(self, key: Array, looks: Sequence[int], is_in: Array) -> Array:
        """[n_canaries, n_looks] of one run, in which these [n_canaries] are there."""


def check_canaries(n: int) -> None:
    if not 2 <= n <= MOST_CANARIES:
        raise ValueError(
            f"n_clients is {n}, must be from 2 to {MOST_CANARIES:,}: every client of the one run is a canary. Change "
            "it with --set n_clients=1000, or use --estimator runs."
        )
