"""One probability table for every click model here, so that the simulator needs one kernel for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from hushrank.types import Array, User


@dataclass(frozen=True, slots=True)
class ClickTable:
    """P(click | rank, grade) = examine[rank] click[grade]; after a click the person leaves with P = stop[grade]."""

    examine: tuple[float, ...]  # [k] 1 everywhere: cascade
    click: tuple[float, ...]  # [n_grades]
    stop: tuple[float, ...]  # [n_grades] 0 everywhere: position-based


@runtime_checkable
class TableUser(User, Protocol):
    """A person whose clicks are such a table; others run on the plain engine only."""

    def as_table(self, k: int) -> ClickTable:
        """The same person, for lists of k."""


def click_in_order(table: ClickTable, grades: Array, draw: Callable[[], float]) -> Array:
    """[k] True where clicked; draws are made when they are needed: one for each document, one more after a click.

    Why: the published code of FOLtR-ES draws so, and there the order of the draws matters (`learners/es_published.py`).
    """
    is_clicked = np.zeros(len(grades), dtype=bool)
    for position, grade in enumerate(grades):
        is_clicked[position] = draw() < table.click[grade] * table.examine[position]
        if is_clicked[position] and draw() < table.stop[grade]:
            break
    return is_clicked


def check_probabilities(name: str, values: Sequence[float], *, n_grades: int | None = None) -> None:
    """Refuse a table with too few grades or with anything outside [0, 1]."""
    if n_grades is not None and len(values) != n_grades:
        raise ValueError(
            f"the {name} table has {len(values)} grades, the click table {n_grades}: give both one value per grade."
        )
    if len(values) < 2:
        raise ValueError(f"the {name} table has {len(values)} grades, needs at least 2 (not relevant, relevant).")
    for grade, value in enumerate(values):
        if not 0 <= value <= 1:
            raise ValueError(f"the {name} probability of grade {grade} is {value}, must be from 0 to 1.")
