"""A secure sum in the fused loop: what the protocol's words would add up to, without keys and masks.

Shapes: C cells, p parameters; p + 1 words of each cell, the last one for the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hushrank.engine.noise import noise_steps
from hushrank.engine.setting import Method
from hushrank.privacy.sum_format import SumFormat
from hushrank.types import Array

Work: TypeAlias = Callable[..., tuple[Array, float]]  # (params, *fixed, key, round, ids, n, weights) -> (sum, quality)


@dataclass(frozen=True, slots=True)
class Cohort:
    """The clients of one cell in one round."""

    ids: Array  # [n]
    n_interactions: Array  # [n]
    weights: Array  # [n] float32, 0 for those whose update never arrives

    @property
    def n_answered(self) -> int:
        return int(np.count_nonzero(self.weights))


def no_words(method: Method, n_cells: int) -> Array:
    """[C, p + 1] what nobody adds up to."""
    return np.zeros((n_cells, method.n_params + 1), np.uint32)


def secure_block(work: Work, format: SumFormat) -> Work:
    """As `work`, but client by client, and what comes out are the words of their sum."""
    alone = np.ones(1, np.float32)

    def add_block(params: Array, *arguments: Any) -> tuple[Array, float]:
        *fixed, ids, n_interactions, weights = arguments
        found = [work(params, *fixed, ids[i : i + 1], n_interactions[i : i + 1], alone) for i in range(len(ids))]
        updates, arrives = np.stack([update for update, _ in found]), weights > 0
        return format.add(updates[arrives], weights[arrives]), sum(shown for _, shown in found)

    return add_block


def average_words(method: Method, words: Array, cohorts: list[Cohort], keys: list[Array], round: int) -> Array:
    """[C, p] float32 the mean of each cell; zeros where too few answered for a sum to be opened."""
    format = method.secure_sum
    assert format is not None
    means = np.zeros((len(cohorts), method.n_params), np.float32)
    for cell, (cohort, key) in enumerate(zip(cohorts, keys, strict=True)):
        if cohort.n_answered >= method.quorum.needed(len(cohort.ids)):
            noise = np.append(noise_steps(method, format, key, round), 0).astype(np.uint32)
            total, weight = format.decode(words[cell] + noise, n_summed=cohort.n_answered)
            means[cell] = total / (method.divisor or weight)
    return means
