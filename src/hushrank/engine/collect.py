"""What becomes of single updates behind a kernel: summed as they come, or gathered all at once.

A kernel hands out the updates of a block of clients [n, p]. *Streams* add blocks up in order and need memory for one;
*gatherers* keep every row, for rules and attacks that must see all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushrank.engine.kernel import add_rows
from hushrank.federation.summation import MaskedSum, OpenSum
from hushrank.privacy.sum_format import SumFormat
from hushrank.types import Array


class Collector(Protocol):
    """How the blocks of one cell's round are put together."""

    def reduce(self, updates: Array, weights: Array) -> Array:
        """What a block comes down to, of updates [n, p] with weights [n]; in the block's own thread."""

    def start(self) -> list[Array]:
        """Nothing so far."""

    def add(self, so_far: list[Array], part: Array) -> None:
        """One more block; blocks come in order."""

    def finish(self, so_far: list[Array]) -> Array:
        """All blocks of the round."""


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """[p] the weighted sum of all updates; blocks are added in order, so that no number of threads changes a bit."""

    format: SumFormat | None  # none is needed
    n_params: int

    def reduce(self, updates: Array, weights: Array) -> Array:
        total = np.zeros(self.n_params, updates.dtype)
        add_rows(total, updates, weights.astype(updates.dtype, copy=False))
        return total

    def start(self) -> list[Array]:
        return [np.zeros(self.n_params, np.float32)]

    def add(self, so_far: list[Array], part: Array) -> None:
        so_far[0] += part

    def finish(self, so_far: list[Array]) -> Array:
        return so_far[0]


@dataclass(frozen=True, slots=True)
class WordSum:
    """[p + 1] uint32, what the words of a secure sum add up to, without keys and masks."""

    format: SumFormat
    n_params: int

    def reduce(self, updates: Array, weights: Array) -> Array:
        arrives = weights > 0
        return self.format.add(updates[arrives], weights[arrives])

    def start(self) -> list[Array]:
        return [np.zeros(self.n_params + 1, np.uint32)]

    def add(self, so_far: list[Array], part: Array) -> None:
        so_far[0] += part

    def finish(self, so_far: list[Array]) -> Array:
        return so_far[0]


@dataclass(frozen=True, slots=True)
class Gathering:
    """[n_answered, p] every update that arrived, in the order of the clients."""

    n_params: int

    def reduce(self, updates: Array, weights: Array) -> Array:
        return updates[weights > 0]

    def start(self) -> list[Array]:
        return [np.zeros((0, self.n_params), np.float32)]

    def add(self, so_far: list[Array], part: Array) -> None:
        so_far.append(part)

    def finish(self, so_far: list[Array]) -> Array:
        return np.concatenate(so_far)


# {how updates are added up: the collector}
COLLECTORS: dict[str, Callable[..., Collector]] = {OpenSum.name: WeightedSum, MaskedSum.name: WordSum}
