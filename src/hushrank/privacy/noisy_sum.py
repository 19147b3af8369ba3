"""A sum of clipped updates behind noise: what the sound mechanisms share.

Every sampled client sends one message of weight 1, a zero update if it learnt nothing: in the sum its data then look
like none, which is what zero-out compares. That it answered at all is not hidden. The noise is added by the server,
once, or by the clients, each a share.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from hushrank.privacy.account_words import describe_account
from hushrank.privacy.accounting import Account, Training, make_account
from hushrank.privacy.clipping import check_norm, clip_update, grid_step, round_towards_zero
from hushrank.privacy.disclosure import MASKED, STAYS, Disclosure, as_sentence
from hushrank.privacy.discrete_account import NoiseGrid
from hushrank.privacy.placement import Adjacency, Placement, Scheme
from hushrank.privacy.protection import Clipping, Exposure, NormBound, UpdateProtection
from hushrank.privacy.quorum import Quorum
from hushrank.privacy.renyi import Spend, composed_epsilon
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, fold_in, stream
from hushrank.types import Array, DenseUpdate, PrivateUpdate, Weighted

UNLIKELY = 50.0  # Why: an honest client's noise exceeds its bound with probability below e^-50
FEWEST_STEPS = 8  # Why: of a share's noise; below, rounding it up would add more than a sixth, and Gaussian shares
# would add up to something else than a Gaussian number
_ROUNDING = 1.001  # Why: float32 and the grid of the noise may lengthen an honest update by far less
_SUMMED = "The clients' noise is in the sum. Not how often a client searched, nor whether it learnt anything."
_MESSAGE_BITS, _SUM_BITS = 24, 50  # that whole numbers may have: of a float32 message, of a float64 sum
_NEVER = math.exp(-70.0)  # Why: a number that does not fit would be rounded, which the accounts do not see
_BLOCK = 4096  # Why: clients whose shares are held at once


@dataclass(frozen=True, slots=True)
class NoisySum(UpdateProtection):
    """Updates clipped to a norm, noise on their sum; `gaussian.py` and `laplace.py` say which norm and which noise."""

    mode: ClassVar[str] = "sound"

    mechanism: ClassVar[str]  # as the accountants call it
    norm_order: ClassVar[int]  # 1 or 2: the norm that updates are clipped in
    spread: ClassVar[str]  # what `scale` is called in words

    clip_norm: float  # of an update
    noise_multiplier: float  # scale of the sum's noise / clip_norm
    placement: str = "server"  # or clients: who adds the noise
    n_honest: int | None = None  # placement clients: among how many the noise is divided
    least_step: float = 0.0  # a power of two: the step of a secure sum's whole numbers, where that is coarser

    def __post_init__(self) -> None:
        check_norm(self.clip_norm)
        if not 0 <= self.noise_multiplier < math.inf:
            raise ValueError(
                f"noise_multiplier is {self.noise_multiplier}, must be at least 0 (0: clipped, but no noise)."
            )
        if self.placement not in tuple(Placement):
            raise ValueError(f"placement is {self.placement!r}, must be one of {', '.join(Placement)}.")
        if self.placement == Placement.clients and (self.n_honest is None or self.n_honest < 1):
            raise ValueError(
                f"n_honest is {self.n_honest}, must be at least 1: the noise is divided among honest clients."
            )
        if self.placement == Placement.server and self.n_honest is not None:
            raise ValueError(f"n_honest is {self.n_honest}, but the server adds the noise: leave it out.")
        if self.n_honest is not None and self.noise_multiplier > 0:
            check_grid(self.spread_share(self.n_honest) / self.step, spread=self.spread)

    @abstractmethod
    def draw_noise(self, n_params: int, *, key: Array) -> Array:
        """[..., n_params] int64 steps, noise of the whole scale."""

    @abstractmethod
    def draw_share(self, n_params: int, *, n_shares: int, key: Array) -> Array:
        """[..., n_params] int64 steps, noise of which n_shares independent draws sum to `draw_noise`'s distribution."""

    @abstractmethod
    def spread_share(self, n_shares: int) -> float:
        """What a share's size is measured by, its standard deviation or scale."""

    @abstractmethod
    def bound_share(self, *, n_values: int, failure: float) -> float:
        """What none of n_values numbers of shares exceeds, except with probability `failure` for all together."""

    @abstractmethod
    def bound_share_norm(self, n_params: int, *, n_shares: int) -> float:
        """The norm that an honest client's share of the noise practically never exceeds."""

    @property
    def clipping(self) -> Clipping:
        return Clipping(0.0, self.clip_norm, self.norm_order, self.step if self.noise_multiplier > 0 else 0.0)

    @property
    def counts_alike(self) -> bool:
        return True

    @property
    def answers_always(self) -> bool:
        """Whether a client answers must not depend on its data: zero-out hides the data, not the answering."""
        return True

    @property
    def n_makers(self) -> int:
        return self.n_honest or 0

    @property
    def has_noise(self) -> bool:
        return True

    @property
    def scale(self) -> float:
        """Of the sum's noise: standard deviation of Gaussian, scale of Laplace noise."""
        return self.noise_multiplier * self.clip_norm

    @property
    def step(self) -> float:
        """Of the grid that updates and noise stand on: `grid_step` says why. Coarser where so many would not fit."""
        largest = self.clip_norm + self.bound_share(n_values=1, failure=_NEVER)
        fits = 2.0 ** (math.frexp(largest)[1] - self.most_bits)
        return max(grid_step(self.clip_norm), self.least_step, fits)

    @property
    def most_bits(self) -> int:
        """In which numbers of steps travel or are added: those of float32 for noise in messages (a secure sum has its
        own step, and wraps), of float64 for the server's."""
        return _SUM_BITS if self.n_honest is None or self.least_step else _MESSAGE_BITS

    @property
    def scale_steps(self) -> Fraction:
        """The scale of the sum's noise in steps, exactly."""
        return Fraction(self.noise_multiplier) * Fraction(self.clip_norm) / Fraction(self.step)

    @property
    def guarantee(self) -> str:
        """Of one message."""
        return _describe_message(self)

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        """The clipped update, with this client's share of the noise where clients add it; weight 1."""
        clipped = clip_update(update.delta, self.clip_norm, ord=self.norm_order)
        if self.noise_multiplier == 0:
            return PrivateUpdate(clipped, 1.0, self.guarantee)
        delta = round_towards_zero(clipped, self.step)
        return PrivateUpdate(delta + self.client_noise(delta.shape[-1], key=key), 1.0, self.guarantee)

    def client_noise(self, n_params: int, *, key: Array) -> Array:
        """[..., n_params] what a client adds to its update; key [..., 2]: stream(key, PRIVATISE, round, client)."""
        if self.n_honest is None or self.noise_multiplier == 0:
            return np.zeros((*key.shape[:-1], n_params))
        return self.step * self.draw_share(n_params, n_shares=self.n_honest, key=key)

    def server_noise(self, n_params: int, *, key: Array) -> Array:
        """[n_params] what the server adds to the sum of a round; key: stream(key, SERVER_NOISE, round)."""
        if self.placement == Placement.clients or self.noise_multiplier == 0:
            return np.zeros(n_params)
        return self.step * self.draw_noise(n_params, key=key)

    def combine(
        self, messages: Sequence[Weighted], *, n_params: int, cohort: float, key: Array, noise: Array | None = None
    ) -> Array:
        """[n_params] the noisy mean over the expected cohort; key: stream(key, SERVER_NOISE, round).

        Everybody's numbers are put on the grid, where honest ones are: then no rounding of the sum depends on both.
        """
        check_answers(len(messages), self.n_honest or 0)
        added, step = noise, self.step if self.noise_multiplier > 0 else 0.0
        if added is None:
            added = self.server_noise(n_params, key=key)
        return average_sum(messages, n_params=n_params, noise=added, cohort=cohort, step=step)

    def sum_noise(
        self, n_params: int, *, key: Array, round: int, ids: Callable[[], Array], format: SumFormat | None = None
    ) -> Array:
        """Exactly what the server or the clients of the plain round draw."""
        if self.n_honest is None:
            return self.server_noise(n_params, key=stream(key, Purpose.SERVER_NOISE, round))
        del format
        return self._sum_shares(n_params, ids(), key=stream(key, Purpose.PRIVATISE, round))

    def _sum_shares(self, n_params: int, ids: Array, *, key: Array) -> Array:
        """[n_params] of all clients that answer: whole numbers of steps, so that no order of adding changes it."""
        total = np.zeros(n_params)
        for first in range(0, len(ids), _BLOCK):
            shares = self.client_noise(n_params, key=fold_in(key, ids[first : first + _BLOCK]))
            total += shares.sum(axis=0)
        return total

    def why_not_fast(self, interactions: Sequence[int]) -> str | None:
        del interactions
        return None

    def without_amount(self) -> Self:
        """On the grid of the true amount. Why 2^20: enough for any grid and any number of shares."""
        if self.noise_multiplier == 0:
            return self
        return replace(self, noise_multiplier=2.0**20, least_step=self.step)

    def divisor(self, cohort: float) -> float:
        return cohort

    def quorum(self, *, is_secure: bool = False) -> Quorum:
        """The server's noise: none, because it is whole however few answer.

        This hides nobody's silence: who is awake decides whether a round opens, and a server may ask for a quorum.
        """
        if self.n_honest is None and self.noise_multiplier > 0:
            return Quorum(0)
        return UpdateProtection.quorum(self, is_secure=is_secure)

    def fewest_awake(self, cohort: int | None) -> int:
        """Half of those expected: a sum of fewer is mostly noise."""
        return 1 if cohort is None else -(-cohort // 2)

    def bound_number(self, *, n_values: int, failure: float) -> float:
        return self.clip_norm + self.bound_share(n_values=n_values, failure=failure)

    def bound_norm(self, n_params: int) -> NormBound:
        noise = 0.0 if self.n_honest is None else self.bound_share_norm(n_params, n_shares=self.n_honest)
        return NormBound(self.norm_order, _ROUNDING * (self.clip_norm + noise))

    def format_sum(self, *, n_clients: int, n_params: int, most_weight: int, largest: float) -> SumFormat:
        """Numbers beyond the range wrap. Why: the sum modulo 2^32 is a computation on the noisy sum, while a message
        that is refused is not."""
        format = UpdateProtection.format_sum(
            self, n_clients=n_clients, n_params=n_params, most_weight=most_weight, largest=largest
        )
        return replace(format, wraps=self.noise_multiplier > 0)

    def on_grid(self, step: float) -> Self:
        return replace(self, least_step=step)

    def price(self, exposure: Exposure) -> Spend | None:
        return self.spend(exposure.adjacency, exposure.scheme) if self.noise_multiplier > 0 else None

    def relation(self, exposure: Exposure) -> Adjacency:
        return Adjacency(exposure.adjacency)

    def describe_message(self, exposure: Exposure) -> str:
        del exposure
        return self.guarantee

    def promise(self, exposure: Exposure) -> str:
        if self.noise_multiplier == 0 or exposure.rounds is None:
            return self.guarantee
        training = Training(
            self.mechanism,
            self.noise_multiplier,
            exposure.rounds,
            scheme=exposure.scheme,
            adjacency=exposure.adjacency,
            separation=exposure.separation,
        )
        spent = Spend(self.mechanism, training.ratio, times=training.answers)
        epsilon = composed_epsilon([spent], delta=exposure.delta)
        account = Account(training, epsilon, exposure.delta, "rdp", "epsilon")
        return describe_account(account, placement=self.placement, n_honest=self.n_honest)

    def fit(self, epsilon: float, exposure: Exposure) -> Self:
        """The mechanism with just the noise that keeps epsilon over all rounds."""
        made, grid = replace(self, noise_multiplier=1.0), None
        for _ in range(3):  # Why: the grid follows from the noise, and hardly changes what it costs
            training = made.training(exposure)
            if training.grid == grid:
                break
            found = make_account(training, epsilon=epsilon, find="noise", delta=exposure.delta).training
            made, grid = replace(self, noise_multiplier=found.noise_multiplier), training.grid
        return made

    def training(self, exposure: Exposure) -> Training:
        """What is composed. Sampling counts only where each client is drawn independently, and only for the
        server's noise: clients add theirs because of the server, which knows whom it asked."""
        if exposure.rounds is None:
            raise ValueError("rounds is None, must be a number: epsilon is of all rounds together.")
        is_hidden = exposure.scheme == Scheme.poisson and self.placement == Placement.server
        rate = exposure.sampling if is_hidden else 1.0
        drawn = (rate, exposure.scheme, exposure.adjacency)
        grid = NoiseGrid(self.clip_norm / self.step, exposure.n_params, self.n_honest or 1)
        return Training(self.mechanism, self.noise_multiplier, exposure.rounds, *drawn, grid, exposure.separation)

    def explain(self, exposure: Exposure) -> dict[str, Any]:
        settings = {
            "mode": self.mode,
            "clip_norm": self.clip_norm,
            "noise_multiplier": self.noise_multiplier,
            "noise_at": str(self.placement),
            "n_honest": self.n_honest,
        }
        if self.noise_multiplier == 0:
            return {**settings, "epsilon": None, "guarantee": self.guarantee}
        training = self.training(exposure)
        account = make_account(training, delta=exposure.delta)
        words = describe_account(
            account, placement=self.placement, n_honest=self.n_honest, is_secure=exposure.is_secure
        )
        counted = {
            "adjacency": str(training.adjacency),
            "rounds": exposure.rounds,
            "sampling": training.sampling,
            "scheme": str(training.scheme),
            **({"separation": training.separation, "answers": training.answers} if training.separation > 1 else {}),
        }
        return {**settings, "epsilon": account.epsilon, "delta": account.delta, "guarantee": words, **counted}

    def disclose(self, exposure: Exposure) -> Disclosure:
        promised = self.explain(exposure)
        guarantee = ("guarantee", as_sentence(promised["guarantee"]))
        if self.noise_multiplier == 0:
            seen = MASKED if exposure.is_secure else "Every client's clipped update, without noise, and who sent it."
            others = ("everybody else", "The new ranker of every round, without noise.")
            without = f"No guarantee: updates are clipped, but carry no noise. {STAYS}."
            return Disclosure(without, (("the server", seen), others, guarantee))
        against, seen = _describe_server(self, is_secure=exposure.is_secure)
        slack = f", delta {promised['delta']:g}" if promised["delta"] else ""
        return Disclosure(
            f"One client's whole history is protected over all {promised['rounds']} rounds, epsilon "
            f"{promised['epsilon']:.4g} ({promised['adjacency']}{slack}), against {against}. {STAYS}.",
            (
                ("the server", seen),
                ("everybody else", "The new ranker of every round, with noise that hides each client's part."),
                guarantee,
            ),
        )

    def spend(self, adjacency: str = Adjacency.zero_out, scheme: str = Scheme.fixed) -> Spend:
        """What one round costs a client that takes part, seen through the noisy sum."""
        if self.noise_multiplier == 0:
            raise ValueError("noise_multiplier is 0: without noise there is no guarantee to account for.")
        return Spend(self.mechanism, Adjacency(adjacency).factor(scheme) / self.noise_multiplier)


def average_sum(
    messages: Iterable[Weighted], *, n_params: int, noise: Array | float, cohort: float, step: float = 0.0
) -> Array:
    """[n_params] (sum of updates + noise) / cohort; step: of the grid that updates are rounded to, 0: none.

    Why the *expected* cohort size, a constant, and not the number that answered: that number is data, and dividing by
    it would let one client change everybody's share, which the noise was not measured for.
    """
    if not 0 < cohort < math.inf:
        raise ValueError(f"the expected cohort is {cohort}, must be above 0.")
    total = np.zeros(n_params)
    for message in messages:
        total = total + (np.rint(message.delta / step) * step if step else message.delta)
    return (total + noise) / cohort


def check_grid(steps: float, *, spread: str) -> None:
    """Refuse a grid on which a client's share of the noise would be something else than was accounted for."""
    if not steps >= FEWEST_STEPS:
        raise ValueError(
            f"one client's share of the noise has a {spread} of {steps:.3g} steps of the sum's grid, must be at least "
            f"{FEWEST_STEPS}: rounding would change its law. Add fewer clients up, set n_honest lower, or add noise."
        )


def check_answers(n_answered: int, n_shares: int) -> None:
    """Refuse a sum with less noise than was promised."""
    if n_answered < n_shares:
        raise ValueError(
            f"{n_answered} clients answered, but the noise was divided among {n_shares}: the sum would carry less "
            "noise than promised. Wait for more clients, or set n_honest lower, which makes each add more."
        )


def _describe_message(mechanism: NoisySum) -> str:
    """What one message of a sound mechanism guarantees, and what it does not."""
    norm = f"L{mechanism.norm_order} norm at most {mechanism.clip_norm:g}"
    noise = f"{mechanism.mechanism.capitalize()} noise of {mechanism.spread} {mechanism.scale:.4g}"
    if mechanism.noise_multiplier == 0:
        return f"no guarantee: the update has {norm}, but carries no noise, and none is added to the sum"
    if mechanism.placement == Placement.server:
        return (
            f"no guarantee against whoever sees this message, which is the update with {norm} and carries no noise; "
            f"the server adds {noise} to the sum of a round, so everybody else learns only the noisy sum: each round "
            "spends budget, and the accountant says how much"
        )
    return (
        f"little guarantee against whoever sees this message alone: it is the update with {norm} and a share of noise; "
        f"{mechanism.n_honest} honest clients' shares make {noise} in the sum of a round, so whoever sees only sums (a "
        "secure sum hides the rest) is bound by it: each round spends budget, and the accountant says how much"
    )


def _describe_server(mechanism: NoisySum, *, is_secure: bool) -> tuple[str, str]:
    """(against whom the noise protects, what the server sees)"""
    if mechanism.placement == Placement.server:
        seen = (
            "Every client's clipped update before the noise, and who sent it: it adds the noise and must be trusted. "
            "Not how often a client searched, because all count as one; but an update of zeros says that nothing was "
            "learnt."
        )
        return "everybody but the server", seen
    if is_secure:
        honest = f"as long as {mechanism.n_honest:,} clients add their noise"
        return f"everybody, the server included, {honest}", f"{MASKED} {_SUMMED}"
    seen = (
        "Every client's clipped update with its share of the noise, and who sent it. One share hides little: only the "
        "sum carries all of it. Not how often a client searched, because all count as one; but an update next to zero "
        "suggests that nothing was learnt."
    )
    return "everybody who sees only sums, which the server does not", seen
