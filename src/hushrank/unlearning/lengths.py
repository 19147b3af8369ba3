"""Lengths of their own updates that clients keep, and new updates scaled to them [thesis, section 6.2].

Every `every` rounds each client keeps one number: the L2 length of its update as it is made ready to send, clipped and
without noise. Functions take arrays of NumPy or of JAX (`xp` is the module), so that the plain round and the engines
run the same lines. Shapes: n clients, p parameters.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from hushrank.types import Array

LENGTH_BYTES = 4  # of a kept length, float32


class Filled(NamedTuple):
    """Kept lengths without gaps."""

    lengths: Array  # [n_clients, n_kept]; NaN only where a client has none at all
    n_filled: int  # how many were missing, of clients that have some
    without: tuple[int, ...]  # ids of the clients that have none


def count_kept(rounds: int, every: int) -> int:
    """Rounds 1, 1 + every, ... of so many."""
    return -(-rounds // every)


def is_kept(round: int, every: int) -> bool:
    """Whether clients keep the lengths of this round. (Numbers of JAX alike.)"""
    return (round - 1) % every == 0


def place_of(round: int, every: int) -> int:
    """Where the length of a round stands, or the latest before it. (Numbers of JAX alike.)"""
    return (round - 1) // every


def first_lengths(n_clients: int, n_kept: int) -> Array:
    """[n_clients, n_kept] nothing yet. NaN: the client did not take part in that round."""
    return np.full((n_clients, n_kept), np.nan, np.float32)


def measure_lengths(xp: ModuleType, updates: Array) -> Array:
    """[...] float32, of updates [..., p]."""
    return xp.sqrt(xp.sum(updates * updates, axis=-1)).astype(xp.float32)


def note_lengths(xp: ModuleType, lengths: Array, updates: Array, round: int, every: int) -> Array:
    """[n, n_kept] the lengths with those of a round's updates [n, p] at their place, if it is a round that counts."""
    here = (xp.arange(lengths.shape[-1]) == place_of(round, every)) & is_kept(round, every)
    return xp.where(here, measure_lengths(xp, updates)[:, None], lengths)


def calibrate(xp: ModuleType, updates: Array, lengths: Array) -> Array:
    """[n, p] the new updates' directions with the kept lengths [n]: |old| new / |new| [thesis, Eq. 6.2].

    An update of length 0 stays 0; without a kept length (NaN) it stays as it is.
    """
    own = measure_lengths(xp, updates)
    is_left = xp.isnan(lengths) | (own == 0)
    factors = xp.where(is_left, 1.0, lengths / xp.where(is_left, 1.0, own))
    return (updates * factors[:, None]).astype(updates.dtype)


def fill_gaps(lengths: Array) -> Filled:
    """Missing ones are the client's nearest earlier one, else its nearest later one."""
    is_there = ~np.isnan(lengths)
    places = np.arange(lengths.shape[1])
    earlier = np.maximum.accumulate(np.where(is_there, places, -1), axis=1)
    first = np.argmax(is_there, axis=1)[:, None]  # of those that are there
    filled = np.take_along_axis(lengths, np.where(earlier < 0, first, earlier), axis=1)
    has_some = is_there.any(axis=1)
    without = tuple(np.flatnonzero(~has_some).tolist())
    return Filled(filled, int(np.count_nonzero(~is_there[has_some])), without)
