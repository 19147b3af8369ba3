"""Interpolation: a client ranks with a mean of the shared ranker and of one that only its own clicks have moved
[mansour2020]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushrank.keys import check_share, key
from hushrank.remedies.remedy import Begun, Remedy, Who
from hushrank.types import Array, NamedArrays

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

    def begin(self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who) -> Begun:
        return Begun((1 - self.own_share) * params + self.own_share * own[_LOCAL])

    def finish(
        self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who, begun: Begun, moved: Any
    ) -> tuple[Any, dict[str, Any]]:
        return moved, {_LOCAL: own[_LOCAL] + moved}
