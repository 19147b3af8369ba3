"""Random neighbours in a large secure sum: how many each client needs, and which it chooses [bell2020].

Each client shares its secrets with `degree` others that it draws itself, after it has seen the roster, and has pair
masks with those and with all that drew it. The server sees who drew whom, and may then silence whom it likes. What it
cannot do is take out a small group: to remove a client's own mask it needs `threshold` of the client and those it drew,
and each honest one that helps stays in the sum with a pair mask that nobody else knows. So a sum over a set A of honest
clients comes out only if each of A drew `threshold` - 1 or more from A and the colluding. All draws are independent:

    P[some A smaller than least_honest] <= sum over a < least_honest of C(n, a) * P[X_a >= threshold - 1]^a,
    X_a hypergeometric: `degree` drawn of n - 1, of whom n_colluding + a - 1 are of A or colluding.

The same sum bounds that the colluding alone hold `threshold` - 1 shares of somebody (a = 1), so no client's two secrets
come out. A sum fails, without harm, if somebody drew too many that fall silent.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hushrank.types import Array

SECURITY_BITS = 40  # Why: the chance of 2^-40 per sum is the usual statistical bound, as in [bell2020]
LOSS_BITS = 20  # Why: one sum in a million is lost because of who drew whom


class Neighbours(NamedTuple):
    """How a client's secrets are shared."""

    degree: int  # others that it shares with
    threshold: int  # shares, its own included, that give a secret back


@lru_cache(maxsize=64)
def plan_neighbours(
    n_clients: int,
    *,
    n_colluding: int,
    n_silent: int,
    least_honest: int,
    security_bits: int = SECURITY_BITS,
    loss_bits: int = LOSS_BITS,
) -> Neighbours | None:
    """The fewest neighbours that keep both bounds on a roster of n_clients; None if only all others would do.

    n_colluding: at most, with the server. n_silent: at most, of those on the roster, for a sum that must not be lost.
    """

    def try_degree(degree: int) -> Neighbours | None:
        threshold = _highest_threshold(n_clients, degree, n_silent=n_silent, loss_bits=loss_bits)
        found, most = Neighbours(degree, threshold), max(least_honest - 1, 1)
        # Why three: the smallest and the largest set are quick to test, and nearly always those that decide
        for sizes in (np.array([1]), np.array([most]), np.arange(1, most + 1)):
            if _log2_of_exposure(n_clients, found, sizes, n_colluding=n_colluding) > -security_bits:
                return None
        return found

    failed = 1
    while failed < n_clients - 2:  # Why doubling: more neighbours serve better, so where none serve it ends soon
        degree = min(2 * failed, n_clients - 2)
        if try_degree(degree):
            return next(found for d in range(failed + 1, degree + 1) if (found := try_degree(d)))
        failed = degree
    return None


def _highest_threshold(n_clients: int, degree: int, *, n_silent: int, loss_bits: int) -> int:
    """The largest number of neighbours that, but for 2^-loss_bits in all, nobody lacks; 0 if there is none."""
    n_awake = max(n_clients - 1 - n_silent, 0)
    allowed = -(loss_bits + math.log2(n_clients)) * math.log(2)
    lacking = _log_chances(n_clients - 1, np.array([n_awake]), degree)[0]  # of exactly 0, 1, ... awake
    below = np.logaddexp.accumulate(lacking)  # [degree + 1] log P[at most i are awake]
    return int(np.count_nonzero(below <= allowed))


def log2_of_exposure(n_clients: int, found: Neighbours, *, n_colluding: int, least_honest: int) -> float:
    """log2 of the bound above, on a sum over fewer honest clients or on two secrets of one of them."""
    return _log2_of_exposure(n_clients, found, np.arange(1, max(least_honest, 2)), n_colluding=n_colluding)


def _log2_of_exposure(n_clients: int, found: Neighbours, sizes: Array, *, n_colluding: int) -> float:
    """The same, of sets of these sizes alone: [n_sizes], a."""
    inside = np.minimum(n_colluding + sizes - 1, n_clients - 1)
    needed = max(found.threshold - 1, 0)
    tails = np.logaddexp.reduce(_log_chances(n_clients - 1, inside, found.degree, least=needed), axis=1)
    factorials = _log_factorials(n_clients)
    sets = factorials[n_clients] - factorials[sizes] - factorials[n_clients - sizes]
    return float(np.logaddexp.reduce(sets + sizes * np.minimum(tails, 0.0)) / math.log(2))


def _log_chances(n: int, n_marked: Array, n_drawn: int, *, least: int = 0) -> Array:
    """[len(n_marked), n_drawn + 1 - least] log of C(m, i) C(n - m, d - i) / C(n, d): that i of d drawn are marked."""
    factorials, hits = _log_factorials(n), np.arange(least, n_drawn + 1)[None]
    marked = np.asarray(n_marked)[:, None]
    misses, rest = n_drawn - hits, n - marked
    can_be = (hits <= marked) & (misses <= rest)
    free_hits, free_misses = np.where(can_be, marked - hits, 0), np.where(can_be, rest - misses, 0)
    logs = factorials[marked] - factorials[hits] - factorials[free_hits]
    logs = logs + factorials[rest] - factorials[misses] - factorials[free_misses]
    all_ways = factorials[n] - factorials[n_drawn] - factorials[n - n_drawn]
    return np.where(can_be, logs - all_ways, -np.inf)


@lru_cache(maxsize=8)
def _log_factorials(n: int) -> Array:
    """[n + 1] log i!, to about 1e-12 of itself."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def choose_neighbours(key: bytes, others: Iterable[int], degree: int) -> list[int]:
    """`degree` of the others, each set equally likely to whoever lacks the 32-byte key; by ascending id."""
    ranked = sorted(others, key=lambda i: hashlib.sha256(key + struct.pack("<Q", i)).digest())
    return sorted(ranked[:degree])
