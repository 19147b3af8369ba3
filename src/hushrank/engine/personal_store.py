"""What each client of personalised search keeps for itself: its personal word vectors, in an array of its own.

Only clients that were visited have one, and only with as many rows as they have words of their own. Everybody else
begins with the global vectors. So 100,000 users of whom 1,000 were visited take the memory of 1,000, and a step copies
nothing of those whom it does not visit.

A row begins as the public vector of its word and moves little: whoever reads it finds the word. So the store is in no
message, and on disk only while a training may have to continue from it, in checkpoints that their owner alone may read.
"""

from __future__ import annotations

import numpy as np

from hushrank.federation.state import PERSONAL
from hushrank.types import Array, NamedArrays

ROWS = f"{PERSONAL}/own-words/"  # then the client's id: [n_rows, dim]


class PersonalStore:
    """Of one step: what a state holds, and what this step replaces. The state itself stays as it is."""

    def __init__(self, state: NamedArrays) -> None:
        self._known = {name: rows for name, rows in state.items() if name.startswith(ROWS)}
        self._changed = dict[str, Array]()

    def state(self) -> dict[str, Array]:
        """Of all visited clients; those whom this step did not visit have the arrays that they had."""
        return {**self._known, **self._changed}

    def read(self, client: int) -> Array | None:
        """[n_rows, dim]; None: the client begins with the global vectors."""
        name = f"{ROWS}{client}"
        return self._changed.get(name, self._known.get(name))

    def write(self, client: int, rows: Array) -> None:
        self._changed[f"{ROWS}{client}"] = np.array(rows)  # Why a copy: these are a view into those of a whole block
