"""What leaves a proxy: the sums of n_j delta_j and of n_j over its clients, never one client's [fedps, section 3.4].

Joined, the sums give M += sum n_j delta_j / sum n_j: what the server would make of the single updates, to rounding.
Under a secure sum the proxy itself learns only the sum of those that trained on their own; whoever handed its task over
has no secret from the proxy, which adds that update itself. Rounding comes after the weight, unlike in `SumFormat`:
numbers of pairs differ by orders of magnitude, and one rounded before would lose the digits of all.
"""

from __future__ import annotations

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
        if self._unit * self.encoding.scale < 1:
            raise ValueError(
                f"a secure sum of {self.n_clients} clients with weights up to {self.most_weight} has no room for their "
                "weights: set users_per_proxy or cohort lower."
            )

    @property
    def encoding(self) -> FixedPoint:
        return FixedPoint(self.largest * self.most_weight, self.n_clients)

    @property
    def step(self) -> float:
        """Between two sums of n_j delta_j; each client adds at most half of it as an error."""
        return 1.0 / self.encoding.scale

    @property
    def _unit(self) -> float:
        """What a weight of 1 is written as. Why a power of two: it is read back exactly."""
        return float(2.0 ** np.floor(np.log2(self.largest)))

    def write(self, message: Weighted) -> Array:
        """[n_params + 1] uint32; a weight beyond the most counts as the most."""
        weight = min(message.weight, self.most_weight)
        values = np.append(weight * np.asarray(message.delta, np.float64), weight * self._unit)
        return encode_values(values, self.encoding)

    def read(self, words: Array, *, n_summed: int) -> PartialSum:
        """Of the words [n_params + 1] that n_summed clients add up to."""
        total = decode_sum(words, self.encoding, n_summed=n_summed)
        return PartialSum(total[:-1], float(total[-1] / self._unit), n_summed)


def sum_openly(messages: Iterable[Weighted]) -> PartialSum | None:
    """Of those that learnt something; None without any."""
    total, weight, n = np.zeros(0), 0.0, 0
    for message in messages:
        if message.weight > 0:
            added = message.weight * np.asarray(message.delta, np.float64)
            total, weight, n = (added if n == 0 else total + added), weight + message.weight, n + 1
    return PartialSum(total, weight, n) if n else None


def sum_secretly(messages: Iterable[Weighted], format: ProxyFormat) -> PartialSum | None:
    """The words that the protocol of `privacy/secure_sum.py` gives, without keys and masks: for the simulator."""
    words, n = np.zeros(0, np.uint32), 0
    for message in messages:
        if message.weight > 0:
            added = format.write(message)
            words, n = (added if n == 0 else words + added), n + 1
    return format.read(words, n_summed=n) if n >= FEWEST else None


def join_sums(parts: Iterable[PartialSum | None]) -> PartialSum | None:
    """One sum of several, as a proxy, a group server and the server make it; None: of nobody."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    total = np.sum([part.total for part in there], axis=0)
    return PartialSum(total, sum(part.weight for part in there), sum(part.n_clients for part in there))


def forward_sum(part: PartialSum | None) -> PartialSum | None:
    """What a proxy lets pass: a sum of fewer than two clients it keeps, and they wait."""
    return part if part is not None and part.n_clients >= FEWEST else None


def sum_below_proxies(
    messages: Iterable[Weighted], proxies: Sequence[int], is_offloaded: Sequence[bool], format: ProxyFormat | None
) -> list[PartialSum | None]:
    """What each proxy forwards of the messages of a step, which come in the order of their proxies; None: nothing.

    proxies, is_offloaded: of each message. format: of a secure sum under each proxy; None: the proxy sees updates.
    """
    owned = zip(messages, proxies, is_offloaded, strict=True)
    found = []
    for _, below in groupby(owned, key=lambda one: one[1]):
        if format is None:
            found.append(forward_sum(sum_openly(message for message, _, _ in below)))
            continue
        known = list(below)
        own = sum_secretly((message for message, _, is_done in known if not is_done), format)
        handed = sum_openly(message for message, _, is_done in known if is_done)
        found.append(forward_sum(join_sums([own, handed])))
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
