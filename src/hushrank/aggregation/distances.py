"""Distances between the updates of a round, some rows at a time: never an array [n, n, p].

Shapes: n clients, p parameters. Everything is computed in float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hushrank.types import Array

EUCLIDEAN, SQUARED = "euclidean", "squared"
DISTANCES = (EUCLIDEAN, SQUARED)
_DIFFERENCES = 1 << 16  # numbers of all differences up to which they are formed: exact, and quicker than a product
_BLOCK = 1 << 22  # distances held at once; Why: 32 MB of float64 are enough for full speed


def iterate_distances(updates: Array, distance: str) -> Iterator[tuple[slice, Array]]:
    """(rows, [n_rows, n] distances of these clients to everybody) until all rows are through."""
    n, p = updates.shape
    rows = updates.astype(np.float64)
    if n * n * p <= _DIFFERENCES:
        differences = rows[:, None] - rows
        squares = np.einsum("ijp,ijp->ij", differences, differences)
        yield slice(0, n), squares if distance == SQUARED else np.sqrt(squares)
        return
    # Why the one of median length: |a - b|^2 = |a|^2 - 2ab + |b|^2 cancels where both are long against their
    # difference, and neither a common shift nor a few huge updates can make this one long against the honest ones.
    lengths = np.einsum("ip,ip->i", rows, rows)
    rows -= rows[np.argpartition(lengths, n // 2)[n // 2]].copy()
    lengths = np.einsum("ip,ip->i", rows, rows)
    step = max(1, _BLOCK // n)
    for first in range(0, n, step):
        block = slice(first, min(first + step, n))
        squares = (-2 * rows[block]) @ rows.T
        squares += lengths
        squares += lengths[block, None]
        np.maximum(squares, 0, out=squares)
        squares[np.arange(block.stop - first), np.arange(first, block.stop)] = 0
        yield block, squares if distance == SQUARED else np.sqrt(squares, out=squares)
