"""What noise costs, in a currency that adds up: Renyi differential privacy [mironov2017].

One noisy result costs r(a) at each order a > 1; costs of several results are added order by order, whatever later ones
learn from earlier ones; the sum is turned into (epsilon, delta) once, at the end. Everything here is standard library:
a client's ledger runs on the client. The lab's accountants are in `accounting.py`, and tests hold the two together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
MECHANISMS = ("gaussian", "laplace", "pure")
READERS, EVERYBODY = "readers of rankers, not the server", "everybody, the server included"


@dataclass(frozen=True, slots=True)
class Spend:
    """What one noisy result costs the client whose data it is made of."""

    mechanism: str  # gaussian, laplace, or pure: any mechanism of which only epsilon is known
    ratio: float  # how far the client can move the result / standard deviation or scale of the noise; pure: epsilon
    times: int = 1  # how many such results, for instance one per interaction

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"the mechanism is {self.mechanism!r}, must be one of {', '.join(MECHANISMS)}.")
        if not 0 < self.ratio < math.inf:
            raise ValueError(
                f"a result costs {self.ratio}, must be above 0 and finite: what costs nothing tells nothing, and "
                "without noise no budget is kept."
            )
        if self.times < 1:
            raise ValueError(f"times is {self.times}, must be at least 1.")

    @property
    def against(self) -> str:
        """Whom a live client's spending counts against: noise of a sum does not hide an answer from who receives it."""
        return EVERYBODY if self.mechanism == "pure" else READERS


def renyi_cost(spend: Spend, order: float) -> float:
    """r(a) of one client's part in a noisy result."""
    curve = {"gaussian": gaussian_curve, "laplace": laplace_curve, "pure": pure_curve}[spend.mechanism]
    return spend.times * max(curve(spend.ratio, order), 0.0)


def gaussian_curve(ratio: float, order: float) -> float:
    """a ratio^2 / 2 [mironov2017, Proposition 7]."""
    return order * ratio**2 / 2


def laplace_curve(ratio: float, order: float) -> float:
    """ln(a / (2 a - 1) e^((a - 1) t) + (a - 1) / (2 a - 1) e^(-a t)) / (a - 1), t = ratio [mironov2017, Prop. 6]."""
    shrink = (order - 1) * math.expm1((1 - 2 * order) * ratio) / (2 * order - 1)
    return ratio + math.log1p(shrink) / (order - 1)


def pure_curve(epsilon: float, order: float) -> float:
    """The worst that any mechanism with this epsilon can cost: that of a coin told truly with e^eps / (1 + e^eps)."""
    high, low = (order - 1) * epsilon, -order * epsilon
    told = high + math.log1p(math.exp(low - high))
    return (told - math.log1p(math.exp(-epsilon))) / (order - 1)


def composed_epsilon(spends: Iterable[Spend], *, delta: float | None) -> float:
    """What all these results cost together. delta None: pure epsilon, which adds up, infinite with Gaussian noise.

    epsilon = min over a of R(a) + ln(1 - 1/a) - ln(a delta) / (a - 1) [canonne2020, Proposition 12], or the sum of
    pure epsilons where that is less.
    """
    counts: dict[Spend, int] = {}
    for spend in spends:
        counts[spend] = counts.get(spend, 0) + 1
    if not counts:
        return 0.0
    pure = sum(n * _pure_epsilon(spend) for spend, n in counts.items())
    if delta is None:
        return pure
    check_delta(delta)
    costs = {order: sum(n * renyi_cost(spend, order) for spend, n in counts.items()) for order in ORDERS}
    renyi = min(r + math.log1p(-1 / a) - math.log(a * delta) / (a - 1) for a, r in costs.items())
    return max(0.0, min(pure, renyi))


def check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(
            f"delta is {delta}, must be above 0 and below 1: at 0 Gaussian noise promises nothing (leave delta out for "
            "the pure epsilon of Laplace noise or randomised response), at 1 nothing is promised at all."
        )


def check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon < math.inf:
        raise ValueError(
            f"epsilon is {epsilon}, must be above 0 and finite: at 0 the result may not depend on anybody, so that "
            "nothing is learnt. To run without noise, set privacy=none."
        )


def _pure_epsilon(spend: Spend) -> float:
    return math.inf if spend.mechanism == "gaussian" else spend.times * spend.ratio
