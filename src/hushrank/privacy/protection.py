"""What protects a client: one mechanism answers everything that a round, a server or a report asks about it.

A mechanism is one class of this room. What it does not define is as for updates that leave as they are, so that a new
one says only how it differs. No other room asks which mechanism it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from hushrank.privacy.clipping import clip_update, clip_weights, round_towards_zero
from hushrank.privacy.disclosure import Disclosure, as_sentence
from hushrank.privacy.placement import Adjacency, Scheme
from hushrank.privacy.quorum import Quorum
from hushrank.privacy.renyi import Spend
from hushrank.privacy.sum_format import SumFormat
from hushrank.types import Array, DenseUpdate, NamedArrays, PrivateUpdate, Weighted

_FAILURE = 1e-12  # Why: the chance that noise leaves a secure sum's range in a round, which ends a run


class Clipping(NamedTuple):
    """What is kept within a norm, and on which grid; 0: nothing."""

    weight_norm: float = 0.0  # L2 norm of the weights after every local step
    update_norm: float = 0.0  # of an update before it leaves
    norm_order: int = 2  # 1 or 2: which norm update_norm is
    step: float = 0.0  # of the grid that a clipped update is rounded to


def clip_messages(messages: Array, clipping: Clipping) -> Array:
    """[n, n_sent] float32 updates as they are made ready to send, before noise."""
    if clipping.update_norm == 0:
        return messages
    clipped = clip_update(messages, clipping.update_norm, ord=clipping.norm_order)
    return (clipped if clipping.step == 0 else round_towards_zero(clipped, clipping.step)).astype(np.float32)


class NormBound(NamedTuple):
    """What an honest client's update keeps to on the wire."""

    order: int = 2  # 1 or 2
    most: float = math.inf  # noise included; infinite: the mechanism bounds nothing


class Contrast(NamedTuple):
    """One client in two federations that look alike least: what an audit lets it send."""

    start: Array  # [n_params] the round's weights
    here: Array  # [n_params] how it moves them in one, as far as it can
    there: Array  # [n_params] how it, or what stands in its place, does in the other


@dataclass(frozen=True, slots=True)
class Exposure:
    """How often a client is seen, among how many and by whom: what a promise depends on beside the mechanism."""

    n_params: int
    cohort: int  # clients in a round, on average
    interactions: int = 1  # the most searches behind one message
    rounds: int | None = None  # None: endless
    delta: float | None = None  # probability without a promise; None: pure epsilon
    sampling: float = 1.0  # probability that a client is in a round
    scheme: str = Scheme.fixed  # how clients are drawn; fixed is also said where nobody can vouch for it
    adjacency: str = Adjacency.zero_out  # which two federations must look alike, where a mechanism leaves the choice
    separation: int = 1  # rounds from one answer of a client to its next, at least
    is_secure: bool = False  # whether a secure sum hides single updates from the server


class Protection(ABC):
    """What is done to what a client learnt, before it leaves and after, and what that promises to whom."""

    __slots__ = ()
    mode: ClassVar[str]  # the name that recipes and agreements have for it
    tells_lengths: ClassVar[bool] = False  # whether lengths of single updates may stand in logs, metrics and status

    @property
    def clipping(self) -> Clipping:
        """What the fast engines clip; the plain round does it in `limit_weights` and `privatise`."""
        return Clipping()

    @property
    def counts_alike(self) -> bool:
        """Whether every message weighs 1, however often its client searched."""
        return False

    @property
    def answers_always(self) -> bool:
        """Whether a client that learnt nothing answers too."""
        return False

    @property
    def n_makers(self) -> int:
        """Clients whose answers make the noise whole; 0: no client adds any."""
        return 0

    @property
    def has_noise(self) -> bool:
        """Whether the engines must add `sum_noise`, which may be of amount 0."""
        return False

    def limit_weights(self, params: Array) -> Array:
        """The weights [..., n_params] after a local step, within the norm that they may have."""
        norm = self.clipping.weight_norm
        return clip_weights(params, norm) if norm else params

    def sum_noise(
        self, n_params: int, *, key: Array, round: int, ids: Callable[[], Array], format: SumFormat | None = None
    ) -> Array:
        """[n_params] float64, all noise in the sum of a round's updates, if possible as the plain round draws it.

        key: of the run. ids: gives [n] those whose updates arrive. format: of the secure sum that it must fit into.
        """
        del key, round, ids, format
        return np.zeros(n_params)

    def noise_at(self, n_params: int, *, key: Array, round: int) -> Array | None:
        """[n_params] what the server of a simulated round adds where that depends on rounds before, from the key of the
        run; None: it draws alone (`combine`)."""
        del n_params, key, round
        return None

    def draw_in_turn(
        self, n_params: int, *, key: Array, round: int, past: NamedArrays
    ) -> tuple[Array | None, NamedArrays]:
        """`noise_at` of a live round, and what the server remembers of it; past: what it remembered, at first nothing.
        Rounds without a result are left out: their noise comes with the next one's."""
        del n_params, key, round
        return None, past

    @property
    def echo(self) -> tuple[float, ...]:
        """How strongly a round's updates stand in what is published of it and of the rounds that follow, seen through
        noise that rounds do not share."""
        return (1.0,)

    def why_not_fast(self, interactions: Sequence[int]) -> str | None:
        """Why `clipping` and `sum_noise` do not say all, so that only the plain engine can run this; None: they do."""
        del interactions
        return f"privacy={self.mode}"

    def without_amount(self) -> Self:
        """The mechanism for which one compiled program serves all amounts of noise."""
        return self

    def among(self, n_clients: int) -> Self:
        """The mechanism as it is with so many clients, where all of them make its noise."""
        del n_clients
        return self

    def divisor(self, cohort: float) -> float | None:
        """What a sum is divided by, a constant; None: the federation's own rule combines the messages."""
        del cohort
        return None

    def quorum(self, *, is_secure: bool = False) -> Quorum:
        """Answers that a round needs. Clients' noise: those who make it whole. A secure sum: its threshold, too."""
        return Quorum(max(2, self.n_makers), is_most=True) if is_secure else Quorum(self.n_makers or 1)

    def fewest_awake(self, cohort: int | None) -> int:
        """Clients with which a live round opens, unless its operator says otherwise; cohort: those expected in it."""
        del cohort
        return 1

    def bound_number(self, *, n_values: int, failure: float) -> float | None:
        """What no number of n_values in updates exceeds, noise included, but with probability `failure` for all
        together; None: nothing bounds it."""
        del n_values, failure
        return None

    def bound_norm(self, n_params: int) -> NormBound:
        """What a server takes."""
        del n_params
        return NormBound()

    def format_sum(self, *, n_clients: int, n_params: int, most_weight: int, largest: float) -> SumFormat:
        """How updates are written for a secure sum. `largest`: of a number of an update that nothing bounds."""
        bound = self.bound_number(n_values=n_clients * n_params, failure=_FAILURE)
        weight = 1 if self.counts_alike else most_weight
        return SumFormat(largest if bound is None else bound, n_clients, weight)

    def on_grid(self, step: float) -> Self:
        """The mechanism whose numbers are multiples of this power of two, where its own grid is finer."""
        del step
        return self

    def price(self, exposure: Exposure) -> Spend | None:
        """What one message costs a client; None: nothing is promised, so no account is kept."""
        del exposure
        return None

    def relation(self, exposure: Exposure) -> Adjacency:
        """Which two federations `price` is about."""
        del exposure
        return Adjacency.replace_one

    @abstractmethod
    def describe_message(self, exposure: Exposure) -> str:
        """What one message guarantees, in words."""

    def promise(self, exposure: Exposure) -> str:
        """What a live federation guarantees over all its rounds, in words, as its clients' ledgers count it."""
        return self.describe_message(exposure)

    def explain(self, exposure: Exposure) -> dict[str, Any] | None:
        """What a simulated training guarantees, as JSON with a sentence; None: nothing at all."""
        return {"mode": self.mode, "epsilon": None, "guarantee": self.promise(exposure)}

    def disclose(self, exposure: Exposure) -> Disclosure:
        """Who learns what from a training."""
        said = as_sentence(self.promise(exposure))
        return Disclosure(said, (("guarantee", said),))


class UpdateProtection(Protection):
    """A mechanism for dense updates."""

    __slots__ = ()

    has_normal_noise: ClassVar[bool] = False  # whether what is published is told apart as two normal numbers are

    @abstractmethod
    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        """What may leave the device; key: stream(key, PRIVATISE, round, client)."""

    def contrast(self, n_params: int, relation: str) -> Contrast:
        """The pair that is told apart best; relation: which two federations must look alike."""
        del n_params, relation
        raise ValueError(f"privacy={self.mode} says nothing of two federations that must look alike: nothing to audit.")

    def log_ratio(self, noise: Array, moved: Array) -> Array:
        """[...] ln p(noise - moved) - ln p(noise), p: of the noise [..., n_params] that a round's sum should carry."""
        del noise, moved
        raise ValueError(f"privacy={self.mode} adds no noise to a sum: nothing to audit.")

    def combine(
        self, messages: Sequence[Weighted], *, n_params: int, cohort: float, key: Array, noise: Array | None = None
    ) -> Array:
        """[n_params] the mean where there is a divisor; key: stream(key, SERVER_NOISE, round); noise: of `noise_at`."""
        del key, noise
        total = sum((message.weight * message.delta for message in messages), np.zeros(n_params))
        return np.asarray(total / (self.divisor(cohort) or 1.0))
