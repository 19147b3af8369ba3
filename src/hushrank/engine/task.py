"""What the engine can drive: anything that starts, advances by rounds and can be examined.

The engine knows nothing else about it: checkpoints, resuming, schedules, progress and stopping are the same for every
task. `batch.py` is the first one, a batch of simulated federations.
"""

from __future__ import annotations

from typing import Protocol

from hushrank.types import NamedArrays


class Task(Protocol):
    """Something that is trained round by round. All its state is named arrays, so that it can be kept and continued."""

    @property
    def rounds(self) -> int:
        """How many there are."""

    @property
    def eval_every(self) -> int:
        """Rounds between two examinations; the first is before the first round, the last after the last one."""

    @property
    def most_rounds(self) -> int:
        """That `advance` can be asked for at once."""

    def start(self) -> NamedArrays:
        """The state before the first round."""

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        """The state after rounds first to first + n - 1, and what each of them showed: [n, ...] by name.

        The same bits however the rounds are divided among calls.
        """

    def examine(self, state: NamedArrays) -> NamedArrays:
        """How good the state is: numbers or arrays by name."""
