"""What both paths of the LETOR reader share: the rows of a chunk, what a number looks like, and the error."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hushrank.types import Array

# Why: rows are stored dense, so one absurd index would ask for gigabytes. The widest public ranking set has 700.
MAX_FEATURES = 100_000
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LARGEST = float(np.finfo(np.float32).max)


class LetorError(ValueError):
    """A ranking file that cannot be read: one line with file, line number, what came, what is expected, what to do."""


@dataclass(frozen=True, slots=True)
class LetorRows:
    """The rows of one chunk of a file."""

    grades: Array  # [n_rows] uint8
    query_ids: list[bytes] | None  # [n_rows]; None where a side file says which rows belong together
    features: Array  # [n_rows, highest index in the chunk] float32
    n_pairs: Array  # [n_rows] features that were written out
    comments: list[bytes] | None  # [n_rows] what stood behind #, only where asked for


def as_float32(values: Array) -> Array:
    """float64 as float32, the largest in place of infinity. Why: Istella writes the largest double for "missing"."""
    return np.clip(values, -_LARGEST, _LARGEST).astype(np.float32)
