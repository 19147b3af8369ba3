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

    def take(self, block: list[Array], updates: Array, weights: Array, scales: Array | None = None) -> None:
        """A block's next updates [n, p] with weights [n]; in the block's own thread. A block begins empty.

        scales [n]: what the updates are multiplied with first; None: they are whole.
        """

    def start(self) -> list[Array]:
        """Nothing so far."""

    def add(self, so_far: list[Array], block: list[Array]) -> None:
        """One more block; blocks come in order."""

    def finish(self, so_far: list[Array]) -> Array:
        """All blocks of the round."""


@dataclass(frozen=True, slots=True)
class RunningSum:
    """One total; blocks are added in order, so that the number of threads does not affect results."""

    format: SumFormat | None  # of a secure sum's numbers
    n_params: int

    def add(self, so_far: list[Array], block: list[Array]) -> None:
        for part in block:
            so_far[0] += part

    def finish(self, so_far: list[Array]) -> Array:
        return so_far[0]


@dataclass(frozen=True, slots=True)
class WeightedSum(RunningSum):
    """[p] float32, the weighted sum of all updates."""

    def take(self, block: list[Array], updates: Array, weights: Array, scales: Array | None = None) -> None:
        factors = weights if scales is None else weights * scales
        if not block:
            block.append(np.zeros(self.n_params, factors.dtype))
        add_rows(block[0], updates, factors)

    def start(self) -> list[Array]:
        return [np.zeros(self.n_params, np.float32)]


@dataclass(frozen=True, slots=True)
class WordSum(RunningSum):
    """[p + 1] uint32, what the words of a secure sum add up to, without keys and masks."""

    format: SumFormat

    def take(self, block: list[Array], updates: Array, weights: Array, scales: Array | None = None) -> None:
        arrives = weights > 0
        block.append(self.format.add(_whole(updates, scales)[arrives], weights[arrives]))

    def start(self) -> list[Array]:
        return [np.zeros(self.n_params + 1, np.uint32)]


@dataclass(frozen=True, slots=True)
class Gathering:
    """[n_answered, p] every update that arrived, in the order of the clients."""

    n_params: int

    def take(self, block: list[Array], updates: Array, weights: Array, scales: Array | None = None) -> None:
        block.append(_whole(updates, scales)[weights > 0])

    def start(self) -> list[Array]:
        return [np.zeros((0, self.n_params), np.float32)]

    def add(self, so_far: list[Array], block: list[Array]) -> None:
        so_far.extend(block)

    def finish(self, so_far: list[Array]) -> Array:
        return np.concatenate(so_far)


def _whole(updates: Array, scales: Array | None) -> Array:
    return updates if scales is None else (scales[:, None] * updates).astype(updates.dtype)


# {how updates are added up: the collector}
COLLECTORS: dict[str, Callable[..., Collector]] = {OpenSum.name: WeightedSum, MaskedSum.name: WordSum}
