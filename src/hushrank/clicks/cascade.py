"""People who read a list from the top, click, and perhaps leave after a click: the cascade click model [guo2009]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.clicks.table import ClickTable, check_probabilities
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class CascadeUser:
    """Examines top-down, clicks with P(click | grade), after a click stops with P(stop | click, grade).

    Differs: some published code draws "stop" at every examined document, clicked or not; here only a click can end it.
    """

    click: tuple[float, ...]  # [n_grades]
    stop: tuple[float, ...]  # [n_grades]

    def __post_init__(self) -> None:
        check_probabilities("click", self.click)
        check_probabilities("stop", self.stop, n_grades=len(self.click))

    def __call__(self, grades: Array, click_draws: Array, stop_draws: Array) -> Array:
        """[k] True where clicked."""
        is_clicked = np.zeros(len(grades), dtype=bool)
        for position, grade in enumerate(grades):
            is_clicked[position] = click_draws[position] < self.click[grade]
            if is_clicked[position] and stop_draws[position] < self.stop[grade]:
                break
        return is_clicked

    def as_table(self, k: int) -> ClickTable:
        """The same person as the simulator's probability table."""
        return ClickTable(examine=(1.0,) * k, click=self.click, stop=self.stop)
