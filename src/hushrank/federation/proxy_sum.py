"""What leaves a proxy: the sums of n_j delta_j and of n_j over its clients, never one client's [fedps, section 3.4].

Joined, the sums give M += sum n_j delta_j / sum n_j: what the server would make of the single updates, to rounding.
Under a secure sum the proxy itself learns only the sum of those that trained on their own; whoever handed its task over
has no secret from the proxy, which adds that update itself; whoever handed over the upper layers alone sends it the
change of the lower ones openly. Differs from `SumFormat`: numbers of pairs differ by orders of magnitude, so that a
number takes two words of 32 bits, and rounding comes after the weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from hushrank.federation.hierarchy import FEWEST
from hushrank.privacy.fixed_point import FixedPoint, decode_sum, encode_values
from hushrank.privacy.quorum import Quorum
from hushrank.types import Array, Weighted

SECURE = Quorum(FEWEST, is_most=True)  # answers that a secure sum under a proxy needs


@dataclass(frozen=True, slots=True)
class PartialSum:
    """What a proxy sends up. It says of how many clients, and not of which."""

    total: Array  # [n_params] float64, sum of n_j delta_j
    weight: float  # sum of n_j
    n_clients: int  # whose updates count

    @property
    def is_finite(self) -> bool:
        """Whether all of it are numbers that can be added to others."""
        return math.isfinite(self.weight) and bool(np.isfinite(self.total).all())


@dataclass(frozen=True, slots=True)
class WholeMessage:
    """A `Weighted` that is added as it is: for means whose divisor is known before."""

    delta: Array  # [n_params]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ProxyFormat:
    """In which whole numbers the clients below a proxy write n_j delta_j and n_j for a secure sum."""

    largest: float  # absolute value of a number of an update
    most_weight: int  # n_j at most
    n_clients: int  # that are added at most

    def __post_init__(self) -> None:
        if self._unit / self.step < 1:
            raise ValueError(
                f"a secure sum of {self.n_clients} clients with weights up to {self.most_weight} has no room for their "
                "weights: set users_per_proxy or cohort lower."
            )

    @property
    def bits(self) -> int:
        """Of a word that a client fills. Why not more than 24: two of them, added up, are exact in float64."""
        return min(24, int(math.log2((2**31 - 1) // self.n_clients)))

    @property
    def encoding(self) -> FixedPoint:
        """Of the words."""
        return FixedPoint(2.0**self.bits, self.n_clients)

    @property
    def step(self) -> float:
        """Between two sums of n_j delta_j, a power of two; each client adds at most half of it as an error."""
        return float(2.0 ** math.ceil(math.log2(self.largest * self.most_weight) + 1 - 2 * self.bits))

    @property
    def _unit(self) -> float:
        """What a weight of 1 is written as. Why a power of two: it is read back exactly."""
        return float(2.0 ** math.floor(math.log2(self.largest)))

    def write(self, message: Weighted) -> Array:
        """[2 n_params + 2] uint32: the upper words of all numbers, then the lower ones. A weight beyond the most counts
        as the most."""
        if not 0 <= message.weight < math.inf:
            raise ValueError(f"a weight is {message.weight}, must be a number from 0 on: how many pairs a client has.")
        delta, weight = np.asarray(message.delta, np.float64), min(message.weight, self.most_weight)
        n_outside = delta.size - int(np.count_nonzero(np.abs(delta) <= self.largest))
        if n_outside:
            raise ValueError(
                f"{n_outside} numbers of updates are beyond {self.largest:g}, the range of this secure sum, or no "
                "numbers: leave sum_bound out, or set it higher."
            )
        steps = np.rint(np.append(weight * delta, weight * self._unit) / self.step).astype(np.int64)
        words = np.concatenate([steps >> self.bits, steps & (2**self.bits - 1)])
        return encode_values(words.astype(np.float64), self.encoding)

    def decode(self, words: Array, *, n_summed: int) -> PartialSum:
        """`read` of the words [2 n_params + 2] that n_summed clients add up to modulo 2^32."""
        return self.read(decode_sum(words, self.encoding, n_summed=n_summed), n_summed=n_summed)

    def read(self, total: Array, *, n_summed: int) -> PartialSum:
        """total: the sum of all words, as whole numbers."""
        upper, lower = np.split(total, 2)
        values = (upper * 2.0**self.bits + lower) * self.step
        return PartialSum(values[:-1], float(values[-1] / self._unit), n_summed)


def sum_openly(messages: Iterable[Weighted], *, n_params: int | None = None) -> PartialSum | None:
    """Of those that learnt something and can be added up; None without any.

    n_params: of the model; messages of another length are left out. None: all have one length.
    """
    total, weight, n = np.zeros(0), 0.0, 0
    with np.errstate(over="ignore", invalid="ignore"):  # Why: what overflows is left out, or held back as a sum
        for message in messages:
            if not 0 < message.weight < math.inf or n_params not in (None, np.size(message.delta)):
                continue
            added = message.weight * np.asarray(message.delta, np.float64)
            if np.isfinite(added).all():
                total, weight, n = (added if n == 0 else total + added), weight + message.weight, n + 1
    return PartialSum(total, weight, n) if n else None


def sum_secretly(messages: Iterable[Weighted], format: ProxyFormat) -> PartialSum | None:
    """The words that the protocol of `privacy/secure_sum.py` gives, without keys and masks: for the simulator.

    All answers count, those without weight, too: under masks nobody sees weights. So who has no pairs must not apply.
    Otherwise a sum of one client with pairs and others without, divided by its weight, would be that client's update.
    """
    words, n = np.zeros(0, np.uint32), 0
    for message in messages:
        added = format.write(message)
        words, n = (added if n == 0 else words + added), n + 1
    return format.decode(words, n_summed=n) if n >= FEWEST else None


def join_sums(parts: Iterable[PartialSum | None]) -> PartialSum | None:
    """One sum of several, as a proxy, a group server and the server make it; None: of nobody."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    total = np.sum([part.total for part in there], axis=0)
    return PartialSum(total, sum(part.weight for part in there), sum(part.n_clients for part in there))


def forward_sum(part: PartialSum | None) -> PartialSum | None:
    """What a proxy lets pass: a sum of fewer than two clients, or of no numbers, it keeps, and they wait."""
    return part if part is not None and part.n_clients >= FEWEST and part.is_finite else None


@dataclass(frozen=True, slots=True)
class SentSum:
    """What a proxy keeps of the latest sum that it sent, through all rounds."""

    model: int  # number of the model that its clients trained; it grows whenever the model moves
    part: PartialSum
    clients: frozenset[int]  # whose updates it holds, for `await_answer` and `settle_step`; the proxy tells nobody


def send_sum(
    kept: SentSum | None, part: PartialSum | None, clients: Iterable[int], *, model: int
) -> tuple[SentSum | None, PartialSum | None]:
    """What a proxy keeps, before it sends anything, and what it sends once it has heard that its step has a quorum.

    One sum of each model leaves, ever. Asked again, in another attempt or another step, the proxy sends the same one,
    whoever has answered since. Why: a client that trains the same model twice finds the same update, so that the
    difference of two sums, with it and without it, would be that update.
    """
    if kept is not None and model <= kept.model:
        return kept, kept.part if model == kept.model else None
    passed = forward_sum(part)
    return (kept, None) if passed is None else (SentSum(model, passed, frozenset(clients)), passed)


def count_sendable(kept: SentSum | None, n_clients: int, *, model: int) -> int:
    """How many are in the sum of a model that a proxy could send, of whose clients n_clients can be added up now."""
    if kept is not None and model <= kept.model:
        return kept.part.n_clients if model == kept.model else 0
    return n_clients if n_clients >= FEWEST else 0


def sum_below_proxies(
    messages: Iterable[Weighted], proxies: Sequence[int], is_offloaded: Sequence[bool], format: ProxyFormat | None
) -> dict[int, PartialSum | None]:
    """{proxy: what it forwards} of the messages of a step, which come in the order of their proxies; None: nothing.

    proxies, is_offloaded: of each message. format: of a secure sum under each proxy; None: the proxy sees updates.
    """
    owned = zip(messages, proxies, is_offloaded, strict=True)
    found: dict[int, PartialSum | None] = {}
    for proxy, below in groupby(owned, key=lambda one: one[1]):
        if format is None:
            found[proxy] = forward_sum(sum_openly(message for message, _, _ in below))
            continue
        known = list(below)
        own = sum_secretly((message for message, _, is_done in known if not is_done), format)
        handed = sum_openly(message for message, _, is_done in known if is_done)
        found[proxy] = forward_sum(join_sums([own, handed]))
    return found


def choose_forwarded(proxies: Array, answers: Array, is_offloaded: Array, *, is_secure: bool) -> Array:
    """[n] whose updates are in a sum that their proxies forward, of those asked in a step.

    proxies, answers, is_offloaded: [n] of each. A secure sum needs more than two thirds of those who were asked and
    train on their own; without it, only what was handed over can be added.
    """
    counts = answers.copy()
    for proxy in np.unique(proxies):
        here = proxies == proxy
        if is_secure:
            own = here & ~is_offloaded
            if np.count_nonzero(own & answers) < SECURE.needed(int(np.count_nonzero(own))):
                counts &= ~own
        if np.count_nonzero(here & counts) < FEWEST:
            counts &= ~here
    return counts
