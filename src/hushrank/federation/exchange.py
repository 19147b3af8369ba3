"""What a client sends in a round, from what it learnt to what a server makes of it: dense updates, or another message.

An exchange is one class. Other rooms keep what they have for it (a kernel, the form of its bytes, a device's way of
learning) under its name, and ask it for everything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

from hushrank.aggregation.mean import mean_aggregate
from hushrank.federation.cohort import Population
from hushrank.federation.round import Federation
from hushrank.privacy.disclosure import Disclosure
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.protection import Exposure, Protection, UpdateProtection
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, stream
from hushrank.types import Array, DenseUpdate, PrivateReward, PrivateUpdate, Weighted

FLOAT_BYTES = 4  # Why: parameters and rewards travel as float32


class Exchange(ABC):
    """What crosses between a client and the server, and what protects it."""

    __slots__ = ()
    name: ClassVar[str]  # under which other rooms keep what belongs to it
    starts_at_zero: ClassVar[bool] = False  # whether the first ranker is all zeros, and not the ranker's own
    has_personal: ClassVar[bool] = False  # whether clients may keep parameters of their own

    @property
    @abstractmethod
    def protection(self) -> Protection:
        """What protects the messages."""

    @abstractmethod
    def privatise(self, raw: Any, *, key: Array) -> PrivateUpdate | PrivateReward:
        """What may leave the device, of what was learnt; key: stream(key, PRIVATISE, round, client)."""

    @abstractmethod
    def equip(self, federation: Federation) -> Federation:
        """The federation whose clients learn and send this, and whose server combines it."""

    @abstractmethod
    def combine(
        self, messages: Sequence[Any], *, n_params: int, cohort: float, key: Array, noise: Array | None = None
    ) -> Array:
        """[n_params] one update of a round's messages; key: stream(key, SERVER_NOISE, round); noise: if the protection
        does not draw it alone."""

    @abstractmethod
    def count_bytes(self, n_params: int) -> int:
        """Of one message."""

    @property
    def why_not_compiled(self) -> str | None:
        """What of it the fused loop can do and the compiled program cannot; None: nothing."""
        return None

    def lists_at_once(self, interactions: Sequence[int]) -> int:
        """Lists of a client that do not wait for each other, at most."""
        del interactions
        return 1

    def without_amount(self) -> Self:
        """The exchange for which one compiled program serves all amounts of noise."""
        return self

    def among(self, n_clients: int) -> Self:
        """The exchange as it is with so many clients, where its protection depends on them."""
        del n_clients
        return self

    def disclose(self, exposure: Exposure) -> Disclosure:
        """Who learns what from a training."""
        return self.protection.disclose(exposure)


@dataclass(frozen=True, slots=True)
class UpdateExchange(Exchange):
    """A dense update: how a client's own steps moved the parameters."""

    name: ClassVar[str] = "updates"
    has_personal: ClassVar[bool] = True

    protection: UpdateProtection = OpenUpdates()  # noqa: RUF009 - frozen: updates leave as they are

    def privatise(self, raw: DenseUpdate, *, key: Array) -> PrivateUpdate:
        return self.protection.privatise(raw, key=key)

    def equip(self, federation: Federation) -> Federation:
        return protect(federation, self.protection)

    def combine(
        self, messages: Sequence[Weighted], *, n_params: int, cohort: float, key: Array, noise: Array | None = None
    ) -> Array:
        if self.protection.divisor(cohort) is None:
            return mean_aggregate(messages, n_params=n_params)
        return self.protection.combine(messages, n_params=n_params, cohort=cohort, key=key, noise=noise)

    def count_bytes(self, n_params: int) -> int:
        return FLOAT_BYTES * n_params

    def without_amount(self) -> Self:
        return replace(self, protection=self.protection.without_amount())

    def among(self, n_clients: int) -> Self:
        return replace(self, protection=self.protection.among(n_clients))


def protect(federation: Federation, protection: UpdateProtection) -> Federation:
    """The federation with this mechanism."""
    equipped = replace(
        federation,
        privatise=protection.privatise,
        answers_always=protection.answers_always,
        quorum=protection.quorum(),
        limit_weights=protection.limit_weights,
        clipping=protection.clipping,
        divisor=protection.divisor(float(federation.population.cohort_size)),
    )
    cohort = float(federation.population.cohort_size)
    if protection.divisor(cohort) is None:
        return equipped
    return replace(equipped, combine=partial(average_noisily, protection, cohort))


def format_sum(protection: Protection, population: Population, *, n_params: int, largest: float = 1.0) -> SumFormat:
    """How updates are written for a secure sum. `largest`: of a number of an update that nothing bounds."""
    return protection.format_sum(
        n_clients=population.most_sampled,
        n_params=n_params,
        most_weight=max(population.interactions),
        largest=largest,
    )


def average_noisily(
    protection: UpdateProtection,
    cohort: float,
    messages: Sequence[PrivateUpdate],
    *,
    n_params: int,
    key: Array,
    round: int,
) -> Array:
    """[n_params] the mechanism's own mean; key: of the run."""
    noise_key = stream(key, Purpose.SERVER_NOISE, round)
    noise = protection.noise_at(n_params, key=key, round=round)
    return protection.combine(messages, n_params=n_params, cohort=cohort, key=noise_key, noise=noise)
