"""Discrete Laplace, Gaussian and Polya numbers, exactly, from random bits: what a live federation hides behind.

Why exact: noise made of floating-point numbers has holes and an end, and a sum that falls into a hole which only one
client's update can fill tells that the update is in it. Here every number is a whole number of grid steps, and every
whole number is possible. The samplers [canonne2020, Algorithms 1 to 3] make no floating-point number: all they do is
to toss coins of probability a / b for whole numbers a and b, and to draw below a whole number without remainder. So
the law is the formula's to the last bit, if the bits are the operating system's. Standard library only; a Gaussian
number takes about ten microseconds. `draws.py` has the quick twins for the simulator.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

_WORD = 64
_WORDS = 1024  # Why: asked of the operating system at once


class Coins:
    """Coins of rational probability, tossed with random words."""

    def __init__(self, read: Callable[[int], bytes] = os.urandom) -> None:
        self._read = read  # (number of bytes) -> so many random bytes
        self._words: list[int] = []

    def word(self) -> int:
        """64 bits, used once."""
        if not self._words:
            self._words = list(struct.unpack(f"<{_WORDS}Q", self._read(8 * _WORDS)))
        return self._words.pop()

    def draw_below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, all equally likely: as many bits as it has, again where too large."""
        n_bits = (bound - 1).bit_length()
        n_words = -(-n_bits // _WORD)
        while True:
            drawn = 0
            for _ in range(n_words):
                drawn = drawn << _WORD | self.word()
            drawn >>= _WORD * n_words - n_bits
            if drawn < bound:
                return drawn

    def toss(self, above: int, below: int) -> bool:
        """True with probability above / below, if that is at most 1.

        A uniform number is compared with the fraction 64 binary digits at a time, until they differ.
        """
        while True:
            digits, above = divmod(above << _WORD, below)
            drawn = self.word()
            if drawn != digits:
                return drawn < digits

    def toss_exp(self, above: int, below: int) -> bool:
        """True with probability e^(-above / below) [canonne2020, Algorithm 1]."""
        while above > below:
            if not self._toss_alternating(1, 1, first=1):
                return False
            above -= below
        return self._toss_alternating(above, below, first=1)

    def toss_two_over_e(self) -> bool:
        """True with probability 2 / e: Algorithm 1 for e^-1, given that its first two coins came up, of which the
        second does so in half of all cases."""
        return self._toss_alternating(1, 1, first=3)

    def _toss_alternating(self, above: int, below: int, *, first: int) -> bool:
        """Whether the first coin of probability x / k, k = first, first + 1, ..., that fails is one of odd k."""
        k = first
        while self.toss(above, below * k):
            k += 1
        return k % 2 == 1


def sample_laplace(coins: Coins, *, scale: int) -> int:
    """x with probability proportional to e^(-|x| / scale) [canonne2020, Algorithm 2]."""
    while True:
        low = coins.draw_below(scale)
        if not coins.toss_exp(low, scale):
            continue
        size = low
        while coins.toss_exp(1, 1):
            size += scale
        is_negative = coins.toss(1, 2)
        if size or not is_negative:  # Why: 0 would come twice as often
            return -size if is_negative else size


def sample_gaussian(coins: Coins, *, variance: int, scale: int) -> int:
    """x with probability proportional to e^(-x^2 / (2 variance)) [canonne2020, Algorithm 3].

    scale: of the Laplace numbers that are accepted or not; any is right, floor(sqrt(variance)) + 1 is quick.
    """
    below = 2 * variance * scale * scale
    while True:
        x = sample_laplace(coins, scale=scale)
        if coins.toss_exp((abs(x) * scale - variance) ** 2, below):
            return x


def sample_poisson(coins: Coins) -> int:
    """k with probability e^-1 / k!: a geometric number of probability 2^-(k + 1), kept with 2^k / (2 k!)."""
    while True:
        k = 0
        while coins.toss(1, 2):
            k += 1
        factorial = 1
        for i in range(2, k + 1):
            factorial *= i
        if coins.toss(2**k, 2 * factorial):
            return k


def sample_laplace_shares(coins: Coins, n: int, *, scale: int, n_shares: int) -> list[int]:
    """n numbers, each a share of a discrete Laplace number: the sum of n_shares of them has exactly its law.

    A discrete Laplace number is the difference of two geometric ones, and each of these the sum of n_shares Polya
    (negative binomial) numbers of shape r = 1 / n_shares. By its generating function ((1 - q) / (1 - q z))^r,
    q = e^(-1/scale), a Polya number is the sum of the points of a Poisson process that has a point k = 1, 2, ... with
    intensity r q^k / k. Points are proposed at a rate that is never less and kept by coins: in [2^j, 2^(j + 1)) each k
    with r / 2^j, so r for the range; beyond B = 2^J >= scale, blocks i = 1, 2, ... of B numbers with r 2^-i each. The
    ranges of all numbers and both signs have a Poisson number of proposals together, which fall anywhere alike.
    """
    n_ranges = (scale - 1).bit_length() + 1
    places = 2 * n * n_ranges
    shares = [0] * n
    for _ in range(_sample_poisson_of(coins, places, n_shares)):
        place = coins.draw_below(places)
        j, place = place % n_ranges, place // n_ranges
        shares[place // 2] += (1 - 2 * (place % 2)) * _sample_point(coins, j, scale=scale, is_last=j == n_ranges - 1)
    return shares


def _sample_poisson_of(coins: Coins, above: int, below: int) -> int:
    """A Poisson number of mean above / below: a sum of such numbers of mean 1, the last of them thinned."""
    whole, rest = divmod(above, below)
    count = sum(sample_poisson(coins) for _ in range(whole))
    return count + sum(coins.toss(rest, below) for _ in range(sample_poisson(coins)))


def _sample_point(coins: Coins, j: int, *, scale: int, is_last: bool) -> int:
    """A point that was proposed in range j, or 0 where it is not kept.

    A range keeps k with 2^j / k e^(-k / scale); block i of the last one with (2 / e)^i B / k e^(-(k - i scale) /
    scale), which is r q^k / k over r 2^-i / B.
    """
    width, block = 1 << j, 1
    if not is_last:
        k = width + coins.draw_below(width)
        return k if coins.toss(width, k) and coins.toss_exp(k, scale) else 0
    while coins.toss(1, 2):
        block += 1
    k = block * width + coins.draw_below(width)
    is_kept = all(coins.toss_two_over_e() for _ in range(block))
    return k if is_kept and coins.toss(width, k) and coins.toss_exp(k - block * scale, scale) else 0
