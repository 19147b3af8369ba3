"""What a search draws and computes for many documents at once: loops that the compiler turns into vector instructions.

Nothing here is written for one processor. LLVM makes of flat loops without branches, and of the operations in
`lanes.py`, what the widest registers can do, and ordinary instructions where there are none. Arrays have room for whole
registers: `make_room`. What is computed beyond a list's end is never read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hushrank.engine.compiled import FLAGS, FUSED, MAKING
from hushrank.engine.lanes import (
    LANES,
    add_up,
    count_bits,
    greatest,
    least,
    load,
    load_some,
    lowest_bit,
    mask_less,
    multiply_add,
    select,
    splat,
    spread,
    store,
)

SPAN = np.float32(40)  # Why: e^40 and e^-40, their products and squares of sums are all within float32
NEAR = np.float32(1 + 4e-6)  # Why: some ten times what this way and the plain one are rounded by
ROWS = 6  # of a product at once; Why six: with sixteen lanes, twelve of the sixteen registers of AVX2 hold sums
MOST_FOUND = 4 * LANES  # candidates for a list of k <= LANES documents; Why: more are rare, and go the plain way
_ONE, _ZERO, _HALF, _INFINITE = np.float32(1), np.float32(0), np.float32(0.5), np.float32(np.inf)
_LARGEST = np.float32(3e38)
_LOG2_E, _LOG_2, _LOG_2_REST = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROOT = np.int32(0x3F3504F3)  # the bits of sqrt(1/2)
# Fitted such that the largest relative error is least: (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt(1/2) to
# sqrt(2), and (e^r - 1 - r) / r^2 for |r| up to log(2) / 2; the highest power first.
_L7, _L6, _L5, _L4 = (np.float32(c) for c in (-0.07634493, 0.12761575, -0.13160183, 0.14201759))
_L3, _L2, _L1, _L0 = (np.float32(c) for c in (-0.16623357, 0.20001227, -0.2500082, 0.33333331))
_E4, _E3, _E2, _E1, _E0 = (np.float32(c) for c in (0.00138146128, 0.00836871006, 0.041668389, 0.166665211, 0.49999994))


@njit(**MAKING)
def make_room(n: int) -> Any:
    """[>= n] float32 for `fill_uniform`, which writes both words of LANES blocks at a time."""
    return np.empty((n + 2 * LANES - 1) // (2 * LANES) * (2 * LANES), np.float32)


@njit(**FLAGS)
def threefry(k0: Any, k1: Any, low: Any) -> Any:
    """Both words of block (0, low); twin of `streams.threefry`."""
    k2 = np.uint32(k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = np.uint32(k0), np.uint32(low + k1)
    x0, x1 = _mix(x0, x1, 13, 15, 26, 6)
    x0, x1 = np.uint32(x0 + k1), np.uint32(x1 + k2 + np.uint32(1))
    x0, x1 = _mix(x0, x1, 17, 29, 16, 24)
    x0, x1 = np.uint32(x0 + k2), np.uint32(x1 + k0 + np.uint32(2))
    x0, x1 = _mix(x0, x1, 13, 15, 26, 6)
    x0, x1 = np.uint32(x0 + k0), np.uint32(x1 + k1 + np.uint32(3))
    x0, x1 = _mix(x0, x1, 17, 29, 16, 24)
    x0, x1 = np.uint32(x0 + k1), np.uint32(x1 + k2 + np.uint32(4))
    x0, x1 = _mix(x0, x1, 13, 15, 26, 6)
    return np.uint32(x0 + k2), np.uint32(x1 + k0 + np.uint32(5))


@njit(inline="always")
def _mix(x0: Any, x1: Any, a: int, b: int, c: int, d: int) -> Any:
    x0, x1 = _turn(x0, x1, np.uint32(a))
    x0, x1 = _turn(x0, x1, np.uint32(b))
    x0, x1 = _turn(x0, x1, np.uint32(c))
    return _turn(x0, x1, np.uint32(d))


@njit(inline="always")
def _turn(x0: Any, x1: Any, r: Any) -> Any:
    x0 = np.uint32(x0 + x1)
    return x0, np.uint32(x0 ^ np.uint32(np.uint32(x1 << r) | np.uint32(x1 >> np.uint32(np.uint32(32) - r))))


@njit(**FLAGS)
def fill_uniform(out: Any, n: int, key: Any) -> None:
    """out[:n] as `streams.draw_uniform`; out is made by `make_room`."""
    for j in range((n + 2 * LANES - 1) // (2 * LANES) * LANES):
        x0, x1 = threefry(key[0], key[1], np.uint32(j))
        out[2 * j], out[2 * j + 1] = _to_uniform(x0), _to_uniform(x1)


@njit(**FLAGS)
def fill_both(out: Any, half: int, key: Any, other: Any) -> None:
    """out[:half] by one key and out[half : 2 * half] by another as `fill_uniform`; half is a multiple of LANES."""
    for j in range(half):
        is_other = np.uint32(2 * j >= half)
        k0, k1 = (other[0], other[1]) if is_other else (key[0], key[1])
        x0, x1 = threefry(k0, k1, np.uint32(np.uint32(j) - is_other * np.uint32(half // 2)))
        out[2 * j], out[2 * j + 1] = _to_uniform(x0), _to_uniform(x1)


@njit(inline="always")
def _to_uniform(word: Any) -> Any:
    return (np.float32(np.int32(word >> np.uint32(9))) + _HALF) * np.float32(2.0**-23)


@njit(**FLAGS)
def fold_lanes(keys: Any, names: Any, first: Any, out: Any) -> None:
    """out [2, LANES]: `streams.fold_in` of keys [2, LANES] and first + names [LANES]."""
    for lane in range(len(names)):  # Why not LANES: a loop of known length is unrolled instead of being made a vector
        low = np.uint32(first + names[lane])
        out[0, lane], out[1, lane] = threefry(keys[0, lane], keys[1, lane], low)


@njit(inline="always")
def _log(x: Any) -> Any:
    """Of a normal positive number, to 1e-7 of its value also near 1."""
    bits = np.int32(np.float32(x).view(np.int32) - _ROOT)
    power = np.float32(bits >> np.int32(23))
    f = np.float32(np.int32(np.int32(bits & np.int32(0x7FFFFF)) + _ROOT).view(np.float32) - _ONE)
    p = ((((((_L7 * f + _L6) * f + _L5) * f + _L4) * f + _L3) * f + _L2) * f + _L1) * f + _L0
    return (f + (p * f * (f * f) + (power * _LOG_2_REST - _HALF * (f * f)))) + power * _LOG_2


@njit(inline="always")
def _exp(x: Any) -> Any:
    """Of a number within +-80, to 1e-7 of the result."""
    power = np.floor(x * _LOG2_E + _HALF)
    r = x - power * _LOG_2 - power * _LOG_2_REST
    p = (((_E4 * r + _E3) * r + _E2) * r + _E1) * r + _E0
    scale = np.int32(np.int32(np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (p * r * r + r + _ONE) * scale


@njit(**FUSED)
def fill_masses(scores: Any, length: int, masses: Any) -> bool:
    """masses[:length] = e^(score - the first score), zeros up to the register's end; whether float32 holds them."""
    n_far, first = np.int32(0), scores[0]
    for d in range(_pad(scores, length, first)):
        x = np.float32(scores[d] - first)
        n_far += np.int32(not abs(x) < SPAN)
        masses[d] = _exp(min(max(x, -SPAN), SPAN))
    _pad(masses, length, _ZERO)
    return n_far == 0


@njit(**FLAGS)
def _pad(array: Any, length: int, value: Any) -> int:
    """Fill up the last register; how much there is then."""
    wide = (length + LANES - 1) // LANES * LANES
    for d in range(length, wide):
        array[d] = value
    return wide


@njit(**FUSED)
def fill_times(draws: Any, masses: Any, length: int, times: Any) -> None:
    """times[:length] = -log(draw) / mass: who comes in when, in a race that is won in proportion to mass."""
    for d in range((length + LANES - 1) // LANES * LANES):
        times[d] = -_log(draws[d]) / masses[d]


@njit(**FLAGS)
def pick_first(times: Any, length: int, k: int, places: Any, candidates: Any, found: Any) -> int:
    """places[:min(k, length)], the least time first, k <= LANES; returns how many, 0 if two are too close to tell.

    places, candidates, found: room for MOST_FOUND numbers
    """
    bound = splat(min(_bound_first(times, length, k, found) * NEAR, _LARGEST))  # Why: times beyond the end are infinite
    n_found = 0
    for start in range(0, length, 4 * LANES):  # Why four registers: one mask, so one loop whose end is a surprise
        is_below = 0
        for at in range(start, min(length, start + 4 * LANES), LANES):
            is_below |= mask_less(load(times, at), bound) << (at - start)
        if n_found + count_bits(is_below) > MOST_FOUND:
            return 0
        while is_below != 0:
            place = start + lowest_bit(is_below)
            candidates[n_found], found[n_found] = place, times[place]
            n_found, is_below = n_found + 1, is_below & (is_below - 1)
    wide, is_taken, n_shown = _pad(found, n_found, _INFINITE), 0, min(k, length)
    for i in range(n_found):
        near, at = splat(found[i] * NEAR), -1
        for start in range(0, wide, LANES):
            at += count_bits(mask_less(load(found, start), near))
        places[at] = candidates[i]
        is_taken |= 1 << at
    is_whole = ~is_taken & ((1 << n_shown) - 1) == 0  # Why: of two that are near, both take the later place
    return n_shown if is_whole else 0


@njit(**FLAGS)
def _bound_first(times: Any, length: int, k: int, room: Any) -> Any:
    """Not less than the k-th least time, and seldom much more: the k-th least of the least in each lane."""
    first = load(times, 0)
    for start in range(LANES, length, LANES):
        first = least(first, load(times, start))
    store(room, 0, first)
    bound = _ZERO
    for lane in range(LANES):
        if count_bits(mask_less(first, splat(room[lane]))) < k:
            bound = max(bound, room[lane])
    return bound


@njit(**FLAGS)
def multiply_rows(rows: Any, vector: Any, out: Any) -> None:
    """out[:n] = rows [n, p] @ vector [p].

    Why from the first number to the last: memory is then read ahead. With a row's end before its beginning, lists of
    136 features took 1.3 to 1.8 times as long.
    """
    p = len(vector)
    whole, last = p - p % LANES, (1 << p % LANES) - 1  # what whole registers hold, and the lanes of the rest
    rest = load_some(vector, whole, last)
    for row in range(rows.shape[0]):
        total = splat(_ZERO)
        for f in range(0, whole, LANES):
            total = multiply_add(load(rows, row * p + f), load(vector, f), total)
        total = multiply_add(load_some(rows, row * p + whole, last), rest, total)
        out[row] = add_up(total)


@njit(**FLAGS)
def add_some_rows(total: Any, factor: Any, rows: Any, places: Any, weights: Any, n: int) -> None:
    """total [p] += factor * the sum of weights[i] * rows[places[i]] over i < n, rows [.., p or more].

    `total` has room for whole registers; zero is added to what lies beyond its end.
    """
    p, wide = len(total), rows.shape[1]
    whole, last = p - p % LANES, (1 << p % LANES) - 1
    for f in range(0, whole, LANES):
        lanes = splat(_ZERO)
        for i in range(n):
            lanes = multiply_add(load(rows, places[i] * wide + f), splat(weights[i]), lanes)
        store(total, f, multiply_add(lanes, splat(factor), load(total, f)))
    if last:
        lanes = splat(_ZERO)
        for i in range(n):
            lanes = multiply_add(load_some(rows, places[i] * wide + whole, last), splat(weights[i]), lanes)
        store(total, whole, multiply_add(lanes, splat(factor), load(total, whole)))


@njit(**FLAGS)
def apply_gradient(local: Any, gradient: Any, rate: Any) -> None:
    """local += rate * gradient, gradient = 0; both are parts of `make_room`."""
    for f in range(0, len(local), LANES):
        store(local, f, multiply_add(load(gradient, f), splat(rate), load(local, f)))
        store(gradient, f, splat(_ZERO))


@njit(**FLAGS)
def multiply(out: Any, left: Any, right: Any, first: Any) -> None:
    """out[:n] = first + left @ right: [n, whole registers] of [n, m] and [m, w], `first` [w] for all rows.

    A sum runs over m in order, whichever block it is in. What a register holds beyond a row's end is what lies there,
    so `right` and `first` have room for one more. Why in registers: a loop of Numba alone keeps its sums in memory,
    and takes three times as long.
    """
    n = left.shape[0]
    for column in range(0, right.shape[1], LANES):  # Why first: sixteen columns of `right` then stay in the cache
        for row in range(0, n, ROWS):
            _multiply_six(out, left, right, load(first, column), row, n - 1, column)


@njit(**FLAGS)
def _multiply_six(out: Any, left: Any, right: Any, first: Any, row: int, last: int, column: int) -> None:
    """Of six rows from this one; where there are fewer, the last one several times."""
    depth, width, wide = right.shape[0], right.shape[1], out.shape[1]
    i, j, k, l, m = min(row + 1, last), min(row + 2, last), min(row + 3, last), min(row + 4, last), min(row + 5, last)
    a = b = c = d = e = f = first
    for at in range(depth):
        lanes = load(right, at * width + column)
        a = multiply_add(spread(left, row * depth + at), lanes, a)
        b = multiply_add(spread(left, i * depth + at), lanes, b)
        c = multiply_add(spread(left, j * depth + at), lanes, c)
        d = multiply_add(spread(left, k * depth + at), lanes, d)
        e = multiply_add(spread(left, l * depth + at), lanes, e)
        f = multiply_add(spread(left, m * depth + at), lanes, f)
    store(out, row * wide + column, a)
    store(out, i * wide + column, b)
    store(out, j * wide + column, c)
    store(out, k * wide + column, d)
    store(out, l * wide + column, e)
    store(out, m * wide + column, f)


@njit(**FLAGS)
def add_products(total: Any, factor: Any, left: Any, places: Any, right: Any, n: int, sums: Any) -> None:
    """total [m, w] += factor * the sum of left[places[i]] x right[i] over i < n: [m] and [whole registers].

    Where w is no multiple of LANES, a register reaches into the next row of `total`: so `total` has room for one more,
    and `right` zeros after w, which are added there. sums [m, LANES]: room
    """
    for column in range(0, total.shape[1], LANES):
        for first in range(0, n, ROWS):
            _add_six(total, factor, left, places, right, first, n - 1, column, sums)


@njit(**FLAGS)
def _add_six(
    total: Any, factor: Any, left: Any, places: Any, right: Any, first: int, last: int, column: int, sums: Any
) -> None:
    """Of six products from this one; where there are fewer, the others are zero."""
    depth, width, wide, none = left.shape[1], total.shape[1], right.shape[1], splat(_ZERO)
    h, i, j = first, min(first + 1, last), min(first + 2, last)
    k, l, m = min(first + 3, last), min(first + 4, last), min(first + 5, last)
    a = load(right, h * wide + column)
    b = load(right, i * wide + column) if i > h else none
    c = load(right, j * wide + column) if j > i else none
    d = load(right, k * wide + column) if k > j else none
    e = load(right, l * wide + column) if l > k else none
    f = load(right, m * wide + column) if m > l else none
    h, i, j = places[h] * depth, places[i] * depth, places[j] * depth
    k, l, m = places[k] * depth, places[l] * depth, places[m] * depth
    for at in range(depth):
        lanes = none if first == 0 else load(sums, at * LANES)
        lanes = multiply_add(spread(left, h + at), a, lanes)
        lanes = multiply_add(spread(left, i + at), b, lanes)
        lanes = multiply_add(spread(left, j + at), c, lanes)
        lanes = multiply_add(spread(left, k + at), d, lanes)
        lanes = multiply_add(spread(left, l + at), e, lanes)
        lanes = multiply_add(spread(left, m + at), f, lanes)
        if first + ROWS <= last:  # Why: the total is rounded once, as in the plain twin
            store(sums, at * LANES, lanes)
        else:
            store(total, at * width + column, multiply_add(lanes, splat(factor), load(total, at * width + column)))


@njit(**FLAGS)
def pull_lanes(shown: Any, shares: Any, is_clicked: Any, seen: int, pulls: Any) -> None:
    """pulls [LANES] of the shown documents, each clicked one against all that are not; twin of `pdgd.pdgd_gradient`.

    shown: [LANES] the masses of the shown documents, above 0; shares: [LANES] 1 / the mass that was left at each place
    """
    one, masses, pulled = splat(_ONE), load(shown, 0), splat(_ZERO)
    clicked: Any = 0
    for i in range(seen):
        clicked |= np.int64(is_clicked[i]) << i
    is_skipped = ((1 << seen) - 1) & ~clicked
    while clicked != 0:
        at = lowest_bit(clicked)
        mass, ratio = splat(shown[at]), one
        more = select((1 << at) - 1, masses - mass, mass - masses)  # the upper document's mass less the lower one's
        for i in range(1, seen):
            is_between = (1 << i) - 1 if i <= at else -(1 << i)
            factor = greatest(multiply_add(more, splat(shares[i]), one), splat(_ZERO))
            ratio = select(is_between, ratio * factor, ratio)
        both = mass + masses
        pull = select(is_skipped, mass * masses / (both * both * (one + ratio)), splat(_ZERO))
        pulled = pulled - pull + select(1 << at, splat(add_up(pull)), splat(_ZERO))
        clicked &= clicked - 1
    store(pulls, 0, pulled)
