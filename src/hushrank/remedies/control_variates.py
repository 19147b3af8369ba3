"""Control variates: every client corrects its steps by how its gradients differ from everybody's [karimireddy2020]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.keys import check_share, key
from hushrank.remedies.remedy import Begun, MeanMessage, Remedy, Turn
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

    @property
    def tells(self) -> str:
        return "how the client's mean gradient changed since its last round"

    def n_extra(self, n_params: int) -> int:
        return n_params

    def first_shared(self, n_params: int) -> dict[str, Array]:
        return {_VARIATE: np.zeros(n_params, np.float32)}

    def first_own(self, params: Array, n_clients: int) -> dict[str, Array]:
        return {_VARIATE: np.zeros((n_clients, len(params)), np.float32)}

    def begin(self, turn: Turn) -> Begun:
        return Begun(super().begin(turn).starts, self._shift(turn))

    def finish(self, turn: Turn, moved: Array) -> tuple[Array, dict[str, Array]]:
        steps = turn.xp.maximum(turn.n_steps, 1)[:, None].astype(np.float32) * np.float32(turn.rate)
        variate = moved / steps - self._shift(turn)  # Eq. 4, (ii): c_i - c + (y_i - x) / (K eta)
        return turn.xp.concatenate([moved, variate - turn.own[_VARIATE]], axis=1), {_VARIATE: variate}

    def absorb(self, shared: NamedArrays, mean: MeanMessage) -> dict[str, Array]:
        change = mean.numbers[len(shared[_VARIATE]) :]
        return {_VARIATE: shared[_VARIATE] + np.float32(mean.n_cohort / mean.n_clients) * change}  # Eq. 5

    def _shift(self, turn: Turn) -> Array:
        """[n, p] of every local gradient."""
        return np.float32(self.correction) * (turn.shared[_VARIATE] - turn.own[_VARIATE])  # Eq. 3: c - c_i
