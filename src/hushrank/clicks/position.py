"""People who look less often the further down a result stands: the position-based click model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.clicks.table import ClickTable, check_probabilities
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class PositionUser:
    """Examines rank i with probability (1 / i)^eta and clicks an examined document with P(click | grade)."""

    click: tuple[float, ...]  # [n_grades]
    eta: float = 1.0

    def __post_init__(self) -> None:
        check_probabilities("click", self.click)
        if not self.eta >= 0:
            raise ValueError(
                f"eta is {self.eta}, must be >= 0: people look at the first result at least as often as at later ones."
            )

    def __call__(self, grades: Array, click_draws: Array, stop_draws: Array) -> Array:  # noqa: ARG002 - nobody stops early
        """[k] True where clicked."""
        examined = self.examine(len(grades))
        return np.asarray(click_draws < np.asarray(self.click, dtype=np.float32)[grades] * examined)

    def examine(self, k: int) -> Array:
        """[k] how likely each rank is looked at."""
        return (np.arange(1, k + 1, dtype=np.float64) ** -self.eta).astype(np.float32)

    def as_table(self, k: int) -> ClickTable:
        """The same person as the simulator's probability table."""
        return ClickTable(examine=tuple(map(float, self.examine(k))), click=self.click, stop=(0.0,) * len(self.click))
