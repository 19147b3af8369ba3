"""What a block of clients keeps of its updates: twin of `federation/keeping.py`, compiled.

Shapes: C cells, b clients of a block, p parameters.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from hushrank.engine.cohort import Drawn, answers
from hushrank.engine.inputs import PARAMS, Cells
from hushrank.engine.local import clip_deltas, clip_local
from hushrank.engine.setting import Method
from hushrank.federation.keeping import find_shares
from hushrank.federation.state import KEPT_LENGTHS, LENGTHS, OPTIMISER, SUMS, part_of
from hushrank.types import NamedArrays
from hushrank.unlearning.lengths import calibrate, is_kept, measure_lengths, place_of


def keep_block(
    method: Method, cells: Cells, state: NamedArrays, cohort: Drawn, round: Any, ids: Any, weights: Any, delta: Any
) -> tuple[Any, dict[str, Any]]:
    """[C * b, p] the updates of clients [C, b], scaled where they have to be, and {name: [C, b, ...]} what is kept."""
    cell, kept = jnp.arange(len(ids))[:, None], dict[str, Any]()
    if method.calibrates:
        stored = state[KEPT_LENGTHS][cell, ids, place_of(round, method.stride)]
        delta = calibrate_rows(method, jnp.repeat(state[PARAMS], ids.shape[1], axis=0), delta, stored.ravel())
    if method.keep_every is not None:
        kept[LENGTHS] = measure_lengths(jnp, delta).reshape(ids.shape)
    if method.keeps_sums:
        factors = share_block(method, cells, state, cohort, round, weights)
        kept[SUMS] = state[SUMS][cell, ids] + factors[..., None] * delta.reshape(*ids.shape, -1)
    return delta, kept


def calibrate_rows(method: Method, params: Any, delta: Any, stored: Any) -> Any:
    """[n, p] twin of `keeping.calibrate_within`; params [n, p], stored [n]."""
    clipping = method.protection.clipping
    scaled = calibrate(jnp, delta, stored)
    if clipping.weight_norm:
        scaled = clip_local(params + scaled, clipping.weight_norm) - params
    return clip_deltas(scaled, *clipping[1:])


def share_block(method: Method, cells: Cells, state: NamedArrays, cohort: Drawn, round: Any, weights: Any) -> Any:
    """[C, b] what of each update stands in the new ranker; 0 in a round that is lost. weights [C, b]"""
    population = method.population
    is_there = jnp.arange(cohort.ids.shape[1]) < cohort.n[:, None]
    each = jnp.asarray(population.interactions)[cohort.ids % len(population.interactions)]
    each = jnp.ones_like(each) if method.counts_alike else each
    all_weights = jnp.where(is_there & answers(method, cells, cohort.ids, round), each, 0)  # [C, n_rows]
    is_heard = (all_weights > 0).sum(axis=1) >= method.quorum.needed(cohort.n)
    rate = method.server_step.rate_at(part_of(state, OPTIMISER))
    total = all_weights.sum(axis=1, keepdims=True)
    return jnp.where(is_heard[:, None], find_shares(weights, total, method.divisor, rate), 0.0)


def find_column(method: Method, lengths: Any, round: Any) -> Any:
    """Where the lengths of a round stand in [C, n_clients, n_kept]; beyond the end, if they are not kept."""
    every = method.keep_every or 1
    return jnp.where(is_kept(round, every), place_of(round, every), lengths.shape[-1])
