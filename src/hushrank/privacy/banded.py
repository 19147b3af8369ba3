"""Noise that takes part of itself back: what a round adds, the next rounds subtract a little of, each less.

A ranker is the sum of all rounds' updates, so noise adds up in it; what is taken back does not. The noise w of rounds
1, 2, ... solves C w = z, where z is fresh in every round and C has the first `width` coefficients of the square root of
summation, r_j = binomial(2 j, j) / 4^j, on its diagonals [kalinin2024]: w_t = z_t - r_1 w_(t-1) - r_2 w_(t-2) - ...
Whoever answers in round t moves C x by r_0, r_1, ... in rounds t, t + 1, ... to t + width - 1. Answers that are `width`
rounds apart never meet there, so that each costs one Gaussian number of sensitivity sqrt(r_0^2 + r_1^2 + ...).

Everything is a whole number: updates and noise of steps, coefficients and fresh noise of 2^-BITS. Let x be a round's
sum. What is published, y = x + w, is computed of v = C x + z alone: w_t is z_t - r_1 w_(t-1) - ... rounded to whole
steps, and x_t + w_t is v_t - r_1 y_(t-1) - ... rounded, because x is whole. So y tells no more than v does, and v is
the discrete Gaussian mechanism, round after round, whatever later updates learn from earlier rankers [denisov2022]: the
Renyi costs of a client's rounds add up to those of its answers in any case.

Shapes: n numbers of a sum.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from hushrank.types import Array

BITS = 10  # Why: coefficients may be any, and these are within .0005 of the square root's; more would need longer words


@cache
def coefficients(width: int) -> tuple[int, ...]:
    """r_0 to r_(width - 1) in units of 2^-BITS; r_0 is 1."""
    if width < 1:
        raise ValueError(f"the noise is taken back over {width} rounds, must be at least 1.")
    exact = [1.0]
    for j in range(1, width):
        exact.append(exact[-1] * (2 * j - 1) / (2 * j))
    return tuple(round(2**BITS * each) for each in exact)


def column_norm(width: int) -> float:
    """sqrt(r_0^2 + r_1^2 + ...): how much more fresh noise an answer needs than if it stood in one round alone."""
    return math.sqrt(sum(each**2 for each in coefficients(width))) / 2**BITS


def next_noise(past: Array, fresh: Array) -> Array:
    """[n] int64 w_t in steps. past: [width - 1, n] the noise before, latest first; fresh: [n] z_t in 2^-BITS steps."""
    taken_back = np.asarray(coefficients(len(past) + 1)[1:], np.int64) @ past
    return np.asarray(fresh - taken_back + 2 ** (BITS - 1) >> BITS)


def count_answers(rounds: int, separation: int) -> int:
    """The most rounds of so many that are at least `separation` apart."""
    return -(-rounds // separation)


def sum_errors(rounds: int, width: int) -> Array:
    """[rounds] standard deviation of the noise in the sum of rounds 1 to t, in those of fresh noise."""
    band = np.asarray(coefficients(width)) / 2**BITS
    answer = np.zeros(rounds)  # of w to one fresh number
    answer[0] = 1.0
    for t in range(1, rounds):
        reach = min(t, width - 1)
        answer[t] = -band[1 : reach + 1] @ answer[t - reach : t][::-1]
    return np.asarray(np.sqrt(np.cumsum(np.cumsum(answer) ** 2)))
