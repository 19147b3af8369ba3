"""What people saw while the ranker was learning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushrank.types import Array


def discounted_sum(values_per_round: Sequence[float] | Array, *, gamma: float = 0.9995) -> float:
    """Online performance: sum over rounds t = 1, 2, ... of gamma^(t - 1) * value_t.

    A round's value is the mean nDCG of the lists shown in it; a query without a relevant document counts as 0 here.
    """
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma is {gamma}, must be above 0 and at most 1.")
    values = np.asarray(values_per_round, dtype=np.float64)
    return float(np.sum(values * gamma ** np.arange(len(values))))
