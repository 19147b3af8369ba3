"""Control variates: every client corrects its steps by how its gradients differ from everybody's [karimireddy2020]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushrank.keys import check_share, key
from hushrank.remedies.remedy import Begun, Remedy, Who
from hushrank.types import Array, NamedArrays

_VARIATE = "variate"


@dataclass(frozen=True)
class ControlVariates(Remedy):
    """SCAFFOLD with the second choice of variates: a client's own is its mean gradient in the round before.

    Differs: steps go up a gradient, so that variates are directions of ascent.
    """

    has_memory: ClassVar[bool] = True
    has_shifts: ClassVar[bool] = True

    correction: float = key(1.0, "control-variates: share of the correction that is made; 0: none", check=check_share)

    def n_extra(self, n_params: int) -> int:
        return n_params

    def first_shared(self, n_params: int) -> dict[str, Array]:
        return {_VARIATE: np.zeros(n_params, np.float32)}

    def first_own(self, params: Array, n_clients: int) -> dict[str, Array]:
        return {_VARIATE: np.zeros((n_clients, len(params)), np.float32)}

    def begin(self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who) -> Begun:
        starts = xp.broadcast_to(params, (len(who.ids), len(params)))
        return Begun(starts, self.correction * (shared[_VARIATE] - own[_VARIATE]))  # Eq. 3: c - c_i

    def finish(
        self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who, begun: Begun, moved: Any
    ) -> tuple[Any, dict[str, Any]]:
        per_step = moved / (xp.maximum(who.n_steps, 1)[:, None] * who.rate).astype(moved.dtype)
        variate = per_step - begun.shifts  # Eq. 4, (ii): c_i - c + (y_i - x) / (K eta)
        return xp.concatenate([moved, variate - own[_VARIATE]], axis=1), {_VARIATE: variate}

    def absorb(self, xp: Any, shared: NamedArrays, combined: Any, n_clients: int, n_cohort: int) -> dict[str, Any]:
        change = combined[len(shared[_VARIATE]) :]
        return {_VARIATE: (shared[_VARIATE] + n_cohort / n_clients * change).astype(np.float32)}  # Eq. 5
