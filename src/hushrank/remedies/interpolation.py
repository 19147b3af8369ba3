"""Interpolation: a client ranks with a mean of the shared ranker and of one that only its own clicks have moved
[mansour2020]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.keys import check_share, key
from hushrank.remedies.remedy import Begun, Remedy, Turn
from hushrank.types import Array

_LOCAL = "local"


@dataclass(frozen=True)
class Interpolation(Remedy):
    """Nothing but the update is sent. own_share=1: every client learns alone.

    Differs: one list is shown per search, by the mean of both rankers, and moves both.
    """

    has_memory: ClassVar[bool] = True

    own_share: float = key(0.5, "interpolation: weight of the client's own ranker; 1: local-only", check=check_share)

    def first_own(self, params: Array, n_clients: int) -> dict[str, Array]:
        return {_LOCAL: np.repeat(params[None], n_clients, axis=0)}

    def begin(self, turn: Turn) -> Begun:
        share = np.float32(self.own_share)
        return Begun((1 - share) * turn.params + share * turn.own[_LOCAL])

    def finish(self, turn: Turn, moved: Array) -> tuple[Array, dict[str, Array]]:
        return moved, {_LOCAL: turn.own[_LOCAL] + moved}
