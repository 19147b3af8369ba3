"""What clients keep of their updates for the day on which one of them leaves, and updates scaled to what they kept.

The arithmetic is in `unlearning/lengths.py`. Stores are [n_clients, ...], keyed by client id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hushrank.federation.state import KEPT_LENGTHS, LENGTHS, OPTIMISER, SUMS, part_of
from hushrank.privacy.clipping import clip_weights
from hushrank.privacy.protection import Clipping, clip_messages
from hushrank.types import Array, Client, DenseUpdate, NamedArrays, Weighted
from hushrank.unlearning.lengths import calibrate, is_kept, note_lengths, place_of

if TYPE_CHECKING:
    from hushrank.federation.round import Federation


def keep_lengths(
    federation: Federation,
    state: NamedArrays,
    params: Array,
    cohort: Sequence[Client],
    learnt: list[tuple[DenseUpdate, float]],
    *,
    round: int,
) -> tuple[NamedArrays, list[tuple[DenseUpdate, float]]]:
    """What the cohort learnt, scaled to the lengths that it kept where it has to be, and the new lengths noted."""
    every, stride = federation.keep_every, federation.calibrate_every
    if not learnt or (stride is None and (every is None or not is_kept(round, every))):
        return state, learnt
    ids = np.array([client.id for client in cohort])
    updates = clip_messages(np.stack([update.delta for update, _ in learnt]), federation.clipping)
    if stride is not None:
        stored = state[KEPT_LENGTHS][ids, place_of(round, stride)]
        updates = calibrate_within(params, updates, stored, federation.clipping)
        learnt = [
            (DenseUpdate(delta, update.n_interactions), quality)
            for delta, (update, quality) in zip(updates, learnt, strict=True)
        ]
    if every is None:
        return state, learnt
    return {**state, LENGTHS: note_own(state[LENGTHS], ids, updates, round=round, every=every)}, learnt


def note_own(lengths: Array, ids: Array, updates: Array, *, round: int, every: int) -> Array:
    """[n_clients, n_kept] with what these clients keep of a round's updates [n, p]."""
    after = lengths.copy()
    after[ids] = note_lengths(np, lengths[ids], updates, round, every)
    return after


def calibrate_within(params: Array, updates: Array, stored: Array, clipping: Clipping) -> Array:
    """[n, p] float32 updates of the stored lengths [n], clipped again: what a store says never exceeds the bound."""
    scaled = calibrate(np, updates, stored)
    if clipping.weight_norm:
        scaled = clip_weights(params + scaled, clipping.weight_norm) - params
    return clip_messages(scaled, clipping)


def add_shares(federation: Federation, state: NamedArrays, averaged: Sequence[Weighted], ids: Array) -> NamedArrays:
    """The state in which each client's sum has grown by what it adds to the ranker in this round; averaged, ids: the
    messages behind the mean, and whose they are [n]."""
    if not federation.keeps_sums or not averaged:
        return state
    weights = np.array([message.weight for message in averaged])
    rate = federation.server_step.rate_at(part_of(state, OPTIMISER))
    factors = find_shares(weights, weights.sum(), federation.divisor, rate)
    sums = state[SUMS].copy()
    sums[ids] += (factors[:, None] * np.stack([message.delta for message in averaged])).astype(sums.dtype)
    return {**state, SUMS: sums}


def find_shares(weights: Array, total: Array | np.floating, divisor: float | None, rate: float | Array) -> Array:
    """[n] what of each update stands in the new ranker: its share of the mean, times the server's rate. (NumPy or JAX
    arrays alike: only operators are used.)"""
    return rate * weights / (total + (total == 0) if divisor is None else divisor)
