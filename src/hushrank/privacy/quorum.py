"""How many answers a round needs before its sum may be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Quorum:
    """How many answers a round needs. With fewer it is lost: the ranker stays as it is."""

    least: int = 1  # 0: the noise of a round is whole even where nobody answers
    is_most: bool = False  # and more than two thirds of those asked: the threshold of a secure sum

    def raised(self, least: int) -> Quorum:
        """The same, but never fewer than this."""
        return self if least <= self.least else replace(self, least=least)

    def needed(self, n_asked: Any) -> Any:
        """Of so many clients. (Numbers, NumPy or JAX arrays alike: only operators are used.)"""
        more = (2 * n_asked // 3 + 1 - self.least) * self.is_most
        return self.least + more * (more > 0)

    def count(self, weights: Sequence[float]) -> int:
        """How many of the messages that arrived count: who learnt nothing takes part in a secure sum all the same."""
        return len(weights) if self.is_most else sum(weight > 0 for weight in weights)
