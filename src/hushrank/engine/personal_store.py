"""What each client of personalised search keeps for itself: its personal word vectors, keyed by its id.

Only clients that were visited have rows, and only as many as they have words of their own. Everybody else begins with
the global vectors. So 100,000 users of whom 1,000 were visited take the memory of 1,000.

A row begins as the public vector of its word and moves little: whoever reads it finds the word. So the store is in no
message, and on disk only while a training may have to continue from it, in checkpoints that their owner alone may read.
"""

from __future__ import annotations

import numpy as np

from hushrank.federation.state import PERSONAL
from hushrank.types import Array, NamedArrays

STARTS = f"{PERSONAL}/starts"  # [n_clients] where a client's rows begin; -1: not visited yet
ROWS = f"{PERSONAL}/own-words"  # [n_rows, dim]
_FIRST_ROOM = 1024  # rows


class PersonalStore:
    """Rows may be replaced; a client's number of rows stays as it was at its first visit."""

    def __init__(self, state: NamedArrays) -> None:
        self._starts = np.array(state[STARTS])
        self._n = len(state[ROWS])
        self._rows = np.array(state[ROWS])

    @staticmethod
    def start(n_clients: int, dim: int) -> dict[str, Array]:
        return {STARTS: np.full(n_clients, -1, np.int64), ROWS: np.zeros((0, dim), np.float32)}

    def state(self) -> dict[str, Array]:
        return {STARTS: self._starts, ROWS: self._rows[: self._n]}

    def read(self, client: int, n_rows: int) -> Array | None:
        """[n_rows, dim]; None: the client begins with the global vectors."""
        first = int(self._starts[client])
        return None if first < 0 else self._rows[first : first + n_rows]

    def write(self, client: int, rows: Array) -> None:
        if self._starts[client] < 0:
            self._starts[client] = self._n
            self._n += len(rows)
            if self._n > len(self._rows):
                room = np.zeros((max(2 * self._n, _FIRST_ROOM), self._rows.shape[1]), np.float32)
                room[: len(self._rows)] = self._rows
                self._rows = room
        first = int(self._starts[client])
        self._rows[first : first + len(rows)] = rows
