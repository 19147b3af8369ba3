"""Named numbers side by side and one after another: what cells and rounds showed, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hushrank.types import Array, NamedArrays


def stack_named(rows: Sequence[Mapping[str, Array | float]]) -> dict[str, Array]:
    """{name: [n_rows, ...]} of rows that need not have the same names: NaN where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _stack([row.get(name) for row in rows]) for name in names}


def _stack(values: Sequence[Array | float | None]) -> Array:
    if all(value is not None for value in values):
        return np.stack([np.asarray(value) for value in values])
    known = next(np.asarray(value) for value in values if value is not None)
    missing = np.full(known.shape, np.nan, np.result_type(known, np.float32))
    return np.stack([missing if value is None else np.asarray(value) for value in values])


def extend_named(before: NamedArrays, more: NamedArrays) -> dict[str, Array]:
    """{name: [n + m, ...]}, NaN in the rounds in which a name was not there."""
    n, m = (len(next(iter(arrays.values()), ())) for arrays in (before, more))
    return {
        name: np.concatenate([_or_missing(before, name, n, more), _or_missing(more, name, m, before)])
        for name in dict.fromkeys((*before, *more))
    }


def _or_missing(arrays: NamedArrays, name: str, n: int, others: NamedArrays) -> Array:
    """[n, ...] the arrays' own, or as many NaN as the others' shape needs."""
    if name in arrays:
        return arrays[name]
    other = others[name]
    return np.full((n, *other.shape[1:]), np.nan if n else 0, np.result_type(other, np.float32) if n else other.dtype)
