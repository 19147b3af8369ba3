"""Results as a tidy table: one row per observation, one NumPy array per column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hushrank.types import Array

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length: `table["value"]` is an array, `table.rows` a list of dictionaries."""

    columns: Mapping[str, Array]  # {name: [n_rows]}

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise KeyError(f"no column is called {name!r}; there are {', '.join(self.columns)}.")
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __repr__(self) -> str:
        return f"Table of {len(self)} rows: {', '.join(self.columns)}"

    @property
    def rows(self) -> list[dict[str, object]]:
        """One dictionary per row, with Python's own numbers and words."""
        values = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in values]

    def where(self, **values: object) -> Table:
        """The rows whose columns have these values: `metrics.where(metric="offline/nDCG@10", fold=1)`."""
        is_kept = np.ones(len(self), dtype=bool)
        for name, value in values.items():
            is_kept &= self[name] == value
        return Table({name: column[is_kept] for name, column in self.columns.items()})

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with the same columns."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_pandas needs pandas: install it with pip install pandas, or use .rows, a list of dictionaries."
            ) from error
        return pandas.DataFrame(dict(self.columns))


def table_of(rows: Iterable[Mapping[str, object]], names: Sequence[str]) -> Table:
    """The table with these columns; what a row does not have is NaN among numbers and None among words."""
    listed = list(rows)
    return Table({name: column_of([row.get(name) for row in listed]) for name in names})


def column_of(values: Sequence[object]) -> Array:
    """[n_rows] of one kind of number or of words where all are; objects where they are mixed."""
    kinds = {type(value) for value in values}
    if kinds <= {float, int, type(None)} and kinds & {float, int} and kinds != {int}:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if kinds in ({int}, {bool}, {str}):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
