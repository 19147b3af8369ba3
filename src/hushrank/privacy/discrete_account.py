"""What Gaussian noise costs when it is discrete: the accountants' epsilon of continuous noise, and a proven addition.

Renyi accountants need none: the discrete Gaussian has the curve of the continuous one [canonne2020], and
discrete Laplace noise of a scale that `laplace.py` rounds up is dominated by continuous noise. This file is for the
tight accountants, which know the continuous Gaussian only. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_KEPT_BACK = 2.0**-30  # of delta, twice; Why: epsilon hardly depends on so little of it


@dataclass(frozen=True, slots=True)
class NoiseGrid:
    """The whole numbers that updates and noise are."""

    clip_steps: float  # clip norm in steps
    n_params: int  # numbers in the sum of a round
    n_shares: int = 1  # of which the noise is made; 1: one draw


def discrete_epsilon(
    continuous: Callable[[float], float], *, delta: float, deviation: float, n_values: int, n_shares: int = 1
) -> float:
    """epsilon at delta of a mechanism whose n_values noisy numbers, of all rounds, carry discrete Gaussian noise.

    continuous: (delta) -> epsilon of the same mechanism with continuous noise. deviation: of the noise, in steps (s).

    Let x be whole. Then round(x + g) = x + round(g), so that *rounded* Gaussian noise R is continuous noise and then a
    computation: it keeps (e, d) for d = `delta` and e = continuous(d), with any sampling, relation and composition.
    Let D be the discrete Gaussian. With p the normal density of deviation s and Z the sum of p over all whole numbers,

        R(k) / D(k) = Z * integral of cosh(k u / s^2) e^(-u^2 / (2 s^2)) over u from -1/2 to 1/2.

    Poisson's summation gives 1 <= Z <= 1 + 2 / (e^(2 pi^2 s^2) - 1). By cosh >= 1 and Jensen the integral is at least
    e^(-1 / (24 s^2)), and by sinh(v) / v <= e^(v^2 / 6) at most e^(k^2 / (24 s^4)). So for the n values of all rounds,
    whatever each depends on, D <= e^a R with a = n / (24 s^2) everywhere, and R <= e^b D where the noise has length
    |k| <= r, b = r^2 / (24 s^4) + n ln Z. Rounded noise is longer than r = s (sqrt(n) + sqrt(2 t)) + sqrt(n) / 2 with
    probability e^-t at most. Going from D to R, to the neighbour's R, and back to D, for every event S:

        D(S) <= e^a R(S) <= e^a (e^e R'(S) + d) <= e^(a + e + b) D'(S) + e^a (d + e^(e - t)).

    The sum of h shares, each discrete Gaussian of variance v = s^2 / h, is not D, but within a factor e^(+-T) of it
    (`share_distance`), which counts once in a and once in b. Another small part of delta is kept back for what no
    formula of the sum sees: an honest message that is beyond the range of its bytes, less likely than e^-50.
    """
    distance = share_distance(deviation**2 / n_shares, n_shares=n_shares)
    there = n_values * (1.0 / (24.0 * deviation**2) + distance)
    left = delta * math.exp(-there) if math.isfinite(there) else 0.0
    if left * _KEPT_BACK == 0.0:
        return math.inf
    epsilon = continuous(left * (1.0 - 2.0 * _KEPT_BACK))
    t = epsilon - math.log(left * _KEPT_BACK)
    length = deviation * (math.sqrt(n_values) + math.sqrt(2.0 * t)) + math.sqrt(n_values) / 2.0
    turns = 2.0 * math.pi**2 * deviation**2
    log_z = math.log1p(2.0 / math.expm1(turns)) if turns < 700 else 0.0  # Why 700: below 2^-1000 beyond
    return epsilon + there + length**2 / (24.0 * deviation**4) + n_values * (log_z + distance)


def share_distance(variance: float, *, n_shares: int) -> float:
    """T: the sum of discrete Gaussian shares of a variance and one discrete Gaussian differ by at most e^(+-T) in
    every probability; infinite where the variance is below 1.

    For two of variances a and b the product of densities p_a(j) p_b(k - j) is p_(a + b)(k) p_c(j - m), c = a b /
    (a + b). Its sum over j is, by Poisson's summation, p_(a + b)(k) times a number within y of 1, y = 2 (e^(-x) +
    e^(-4 x) + ...), x = 2 pi^2 c. Both laws add up to 1, so their ratio is within (1 + y) / (1 - y) of 1. Adding one
    share of variance v at a time, c = v i / (i + 1) >= v / 2: in all T <= 5 (n - 1) e^(-pi^2 v), the bound of
    [kairouz2021] with another constant.
    """
    if n_shares == 1:
        return 0.0
    return 5.0 * (n_shares - 1) * math.exp(-(math.pi**2) * variance) if variance >= 1 else math.inf
