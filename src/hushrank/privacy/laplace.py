"""Laplace noise on updates: the published mechanism of FPDGD, labelled with what it gives, and a sound one.

A Laplace number is the sum of n differences of Gamma(1/n) numbers, so n clients can make it together without any of
them knowing it [fpdgd, Eq. 15 and 16]. Shapes: updates and noise [n_params], or [..., n_params] for batched keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from hushrank.privacy.disclosure import MASKED, STAYS, Disclosure, as_sentence, describe_mean
from hushrank.privacy.draws import draw_discrete_laplace, draw_discrete_laplace_share, draw_gamma, draw_laplace
from hushrank.privacy.noisy_sum import FEWEST_STEPS, UNLIKELY, NoisySum
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.protection import Clipping, Contrast, Exposure, UpdateProtection
from hushrank.privacy.renyi import Spend, check_epsilon
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, stream
from hushrank.types import Array, DenseUpdate, PrivateUpdate

VARIANTS = ("paper", "published-code")
_PLUS, _MINUS = 0, 1  # the two streams of a difference
_ROUNDED = 1.0 + 1.25 / FEWEST_STEPS  # Why: a scale is rounded up to whole steps, by 5/4 at most


@dataclass(frozen=True, slots=True)
class PaperNoise(UpdateProtection):
    """FPDGD's differential privacy as published [fpdgd, section 3.3 and Algorithm 3].

    A client clips its *weights* to `weight_norm` after every local step (`clip_weights`, in the learner), and uploads
    them with noise. Here an upload is a change: (clipped new weights - the round's weights) + gamma - gamma'. Everybody
    knows the round's weights, so this tells as much as the weights themselves, and the weighted mean of changes, added
    to them, is the published weighted mean of noisy weights. Weights in the mean are n_interactions, as published.
    Differs: in a live federation every upload weighs 1. A client that searched four times among others that searched
    once would move the sum four times as far, and the noise, divided into equal shares, was not measured for that.
    """

    mode: ClassVar[str] = "paper"

    epsilon: float  # as published: the budget the paper states for a round
    sensitivity: float  # Delta
    n_clients: int  # among whom the noise is divided; all must take part
    variant: str = "paper"
    weighs_alike: bool = False  # whether every upload weighs 1, however often its client searched

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not 0 < self.sensitivity < math.inf:
            raise ValueError(f"sensitivity is {self.sensitivity}, must be above 0 and finite.")
        if self.n_clients < 1:
            raise ValueError(f"n_clients is {self.n_clients}, must be at least 1: the noise is divided among them.")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant is {self.variant!r}, must be one of {', '.join(VARIANTS)}.")

    @property
    def weight_norm(self) -> float:
        """Delta / 2 [fpdgd, Eq. 13]. Differs: the published code clips to Delta."""
        return self.sensitivity if self.variant == "published-code" else self.sensitivity / 2

    @property
    def scale(self) -> float:
        """lambda = Delta / epsilon [fpdgd, Eq. 14], of the sum's noise."""
        return self.sensitivity / self.epsilon

    @property
    def clipping(self) -> Clipping:
        return Clipping(weight_norm=self.weight_norm)

    @property
    def counts_alike(self) -> bool:
        return self.weighs_alike

    @property
    def answers_always(self) -> bool:
        """The published noise adds up only if everybody sends a share."""
        return True

    @property
    def n_makers(self) -> int:
        return self.n_clients

    @property
    def has_noise(self) -> bool:
        return True

    def among(self, n_clients: int) -> Self:
        return replace(self, n_clients=n_clients)

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        """The update of clipped weights with this client's share of the noise."""
        n_params = update.delta.shape[-1]
        noise = draw_noise_share(key, n_params, scale=self.scale, n_shares=self.n_clients)
        delta = (update.delta + noise).astype(update.delta.dtype)
        weight = 1.0 if self.weighs_alike else float(update.n_interactions)
        return PrivateUpdate(delta, weight, self.describe(n_params))

    def sum_noise(
        self, n_params: int, *, key: Array, round: int, ids: Callable[[], Array], format: SumFormat | None = None
    ) -> Array:
        """Of the same distribution as in the plain round, other numbers: there every client draws a share, here their
        sum is one Laplace draw."""
        del ids, format
        return sum_noise_as_laplace(n_params, scale=self.scale, key=stream(key, Purpose.SERVER_NOISE, round))

    def why_not_fast(self, interactions: Sequence[int]) -> str | None:
        """Shares times different weights are no single Laplace draw."""
        return "privacy=paper with unequal interactions" if len(set(interactions)) > 1 else None

    def without_amount(self) -> Self:
        return replace(self, epsilon=1.0)

    def fewest_awake(self, cohort: int | None) -> int:
        """All of them: the noise is divided among them."""
        del cohort
        return self.n_clients

    def bound_number(self, *, n_values: int, failure: float) -> float:
        """Weights move by at most 2 weight_norm."""
        return 2 * self.weight_norm + bound_laplace_share(self.scale, n_values=n_values, failure=failure)

    def price(self, exposure: Exposure) -> Spend:
        return self.spend(exposure.n_params)

    def describe_message(self, exposure: Exposure) -> str:
        return self.describe(exposure.n_params)

    def explain(self, exposure: Exposure) -> dict[str, Any]:
        hidden = "; a secure sum shows the server no single upload" if exposure.is_secure else ""
        said = f"{self.describe(exposure.n_params)}{hidden}"
        relation = str(self.relation(exposure))
        return {"mode": self.mode, "epsilon_as_published": self.epsilon, "adjacency": relation, "guarantee": said}

    def disclose(self, exposure: Exposure) -> Disclosure:
        seen = (
            "Every client's weights with its share of the noise, how many searches are behind them, and who sent them. "
            f"{_describe_share(self.n_clients)}"
        )
        against = "" if exposure.is_secure else ", and none against the server"
        return Disclosure(
            f"A weaker promise than the stated epsilon {self.epsilon:g}{against}. {STAYS}; the sum of a round carries "
            "the published noise.",
            (
                ("the server", f"{MASKED} The published noise is in the sum." if exposure.is_secure else seen),
                ("everybody else", f"{describe_mean(self.n_clients)} The noise of all shares is in it."),
                ("guarantee", as_sentence(self.describe(exposure.n_params))),
            ),
        )

    def spend(self, n_params: int) -> Spend:
        """What one round really costs a client whose whole update may be replaced, seen through the sum alone.

        Its weights move by at most 2 weight_norm in L2. Laplace noise on every coordinate costs most, at every order,
        when all coordinates move alike: r(t) is concave in t^2. So it is n_params results of ratio L2 / sqrt(n_params).
        """
        return Spend("laplace", 2 * self.weight_norm / self.scale / math.sqrt(n_params), times=n_params)

    def contrast(self, n_params: int, relation: str) -> Contrast:
        """Weights on the bound against those opposite: a client that moves them all the way and one that does not, or
        two that move them half of it, apart. All numbers alike: see `spend`."""
        if relation == Adjacency.add_remove:
            raise ValueError("privacy=paper needs every client's share of the noise: one cannot be added or removed.")
        bound = np.full(n_params, self.weight_norm / math.sqrt(n_params))
        if relation == Adjacency.replace_one:
            return Contrast(np.zeros(n_params), bound, -bound)
        return Contrast(-bound, 2 * bound, np.zeros(n_params))

    def log_ratio(self, noise: Array, moved: Array) -> Array:
        return laplace_log_ratio(noise, moved, scale=self.scale)

    def describe(self, n_params: int) -> str:
        """The guarantee, with what the paper does not say."""
        pure = self.spend(n_params).ratio * n_params
        weights = "" if self.weighs_alike else " with equal weights"
        return (
            f"as published, epsilon {self.epsilon:g} of one round with Delta {self.sensitivity:g}; in truth: weights "
            f"are clipped in L2, but Laplace noise needs L1, so epsilon of one round is up to {pure:.4g} with "
            f"{n_params} parameters if one client's weights are replaced by any others (replace-one); it holds for the "
            f"sum only, only if all {self.n_clients} clients take part{weights}, and only against those who never see "
            "a single upload, most of whose coordinates carry next to no noise; every further round spends as much "
            "again"
        )


def _describe_share(n: int) -> str:
    """Of the published noise; Why ten: a Gamma(1/10) number is below a hundredth in two cases of three."""
    if n < 10:
        return "A share is less than the noise that was promised."
    return f"Divided among {n:,} most shares are next to 0: a single upload is nearly as open as without noise."


def draw_noise_share(key: Array, n_params: int, *, scale: float, n_shares: int) -> Array:
    """[..., n_params] one client's gamma - gamma' [fpdgd, Eq. 16]; the sum of n_shares is Laplace(scale)."""
    plus = draw_gamma(stream(key, _PLUS), n_params, shape=1.0 / n_shares)
    return scale * (plus - draw_gamma(stream(key, _MINUS), n_params, shape=1.0 / n_shares))


def bound_laplace_share(scale: float, *, n_values: int, failure: float) -> float:
    """What none of n_values numbers of shares exceeds, except with probability `failure` for all together.

    A share is at most the larger of two Gamma(1/n) numbers, which exceed t scale at most as often as Gamma(1) numbers
    do: e^(-t).
    """
    return scale * math.log(2.0 * n_values / failure)


def sum_noise_as_laplace(n_params: int, *, scale: float, key: Array) -> Array:
    """[..., n_params] the noise of the sum of all shares, in one draw: for a simulator in which nobody sees a single
    upload and all weights are equal. Same distribution as the sum of `draw_noise_share`, other numbers.
    """
    return scale * draw_laplace(key, n_params)


def laplace_log_ratio(noise: Array, moved: Array, *, scale: float) -> Array:
    """[...] sum of |z| - |z - m| over the numbers, in scales."""
    return (np.abs(noise) - np.abs(noise - moved)).sum(axis=-1) / scale


@dataclass(frozen=True, slots=True)
class SoundLaplace(NoisySum):
    """Updates clipped in L1, discrete Laplace noise on their sum: pure epsilon = 1 / noise_multiplier of a round.

    Of all updates of L1 norm 1 the one with a single coordinate is told apart best: for log-concave noise a change in
    two coordinates is at most as visible as the sum of both in one [dong2022]. So the scalar accountants hold. They
    know continuous noise; `whole_scale` says why it covers discrete noise. Placed at the clients, the sum of n_honest
    shares is discrete Laplace noise exactly, and what others add is a computation on it.
    """

    mechanism: ClassVar[str] = "laplace"
    norm_order: ClassVar[int] = 1
    spread: ClassVar[str] = "scale"

    @property
    def whole_scale(self) -> int:
        """The scale t in whole steps: z C + 1/4 rounded up, z the noise multiplier and C the clip norm in steps.

        Moved by k steps, discrete Laplace noise has the hockey-stick divergence 1 - e^(-j / t) at e = (k - 2 j) / t,
        as continuous noise does, and lies on chords between these points, drawn over e^e. A chord is nowhere above
        the curve of continuous noise that is moved by k + 2 t ln cosh(1 / (2 t)) <= k + 1 / (4 t) steps: that one can
        be turned into the discrete. A client moves m numbers, by k >= m steps in all, so that k (1 + 1 / (4 t)) steps
        of continuous noise cover it; over t they are at most k / (z C), because t >= z C + 1/4. So every accountant of
        continuous Laplace noise, with sampling, composition and any relation, holds for the discrete; the pure epsilon,
        k / t, does anyway.
        """
        return math.ceil(self.scale_steps + Fraction(1, 4))

    def draw_noise(self, n_params: int, *, key: Array) -> Array:
        return draw_discrete_laplace(key, n_params, scale=self.whole_scale)

    def draw_share(self, n_params: int, *, n_shares: int, key: Array) -> Array:
        return draw_discrete_laplace_share(key, n_params, scale=self.whole_scale, n_shares=n_shares)

    def spread_share(self, n_shares: int) -> float:
        """The same for any number: a share is seldom, but not small."""
        del n_shares
        return self.scale

    def bound_share(self, *, n_values: int, failure: float) -> float:
        return bound_laplace_share(_ROUNDED * self.scale, n_values=n_values, failure=failure)

    def bound_share_norm(self, n_params: int, *, n_shares: int) -> float:
        """The L1 norm of n differences of Polya(1/h) numbers is at most a Polya number of shape k = 2 n / h, whose
        exponential moments are at most those of a Gamma(k) number of the same scale, and that is at most k +
        sqrt(2 k t) + t except with probability e^-t."""
        k = 2 * n_params / n_shares
        return _ROUNDED * self.scale * (k + math.sqrt(2 * k * UNLIKELY) + UNLIKELY)

    def widest_update(self, n_params: int) -> Array:
        """In one number: see above."""
        return np.append(self.clip_norm, np.zeros(n_params - 1))

    def log_ratio(self, noise: Array, moved: Array) -> Array:
        return laplace_log_ratio(noise, moved, scale=self.scale)
