"""What the server of personalised search makes of the messages of a step, with the rules and attacks of every other.

A step joins at least `FEWEST` updates that count. Of one alone the next model would show everybody what its client has
learnt; so a step in which all others have nothing to learn from, or are refused, is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import overload

import numpy as np

from hushrank.attacks.named import Target, forge_messages
from hushrank.engine.personal_setting import PersonalSetting
from hushrank.federation.gathering import (
    combine_gathered,
    count_refused,
    find_finite,
    gather,
    name_evidence,
    rule_on_trial,
)
from hushrank.federation.hierarchy import FEWEST
from hushrank.federation.proxy_sum import PartialSum, WholeMessage
from hushrank.federation.seen import EVIDENCE
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Combined, NamedArrays, Weighted

ALONE = f"{EVIDENCE}/alone"  # of a step: 1 where it is lost because fewer updates counted
HELD_BACK = f"{EVIDENCE}/held_back"  # of a step: sums that proxies did not forward because fewer updates counted
# (messages, their ids, step) -> the sum of what proxies forward, and how many forwarded nothing
SumBelow = Callable[[Iterable[Weighted], Array, int], tuple[PartialSum | None, int]]


class StreamedMessages(Sequence[Weighted]):
    """Messages that are made while they are added up, each once: only their number is known before."""

    def __init__(self, n: int, make: Callable[[], Iterator[Weighted]]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Weighted]:
        return self._make()

    @overload
    def __getitem__(self, index: int) -> Weighted: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Weighted]: ...
    def __getitem__(self, index: int | slice) -> Weighted | Sequence[Weighted]:
        raise TypeError("messages come one after another and are not kept.")


class CountedMessages(StreamedMessages):
    """Messages as they come, which know afterwards how many of them counted."""

    def __init__(self, messages: Sequence[Weighted]) -> None:
        super().__init__(len(messages), lambda: self._pass(messages))
        self.n_counting = 0

    def _pass(self, messages: Sequence[Weighted]) -> Iterator[Weighted]:
        for message in messages:
            self.n_counting += message.weight > 0
            yield message


def combine_step(
    setting: PersonalSetting,
    messages: Sequence[Weighted],
    ids: Array,
    params: Array,
    memory: NamedArrays,
    *,
    key: Array,
    n_asked: int,
    number: int,
    round: int,
    sum_below: SumBelow | None = None,
) -> tuple[Combined | None, dict[str, float]]:
    """One update of those who answered (ids [n]) of n_asked, and what is known of it; None: too few can be used.

    The mean takes messages one by one; rules and attacks need all of them at once. sum_below: of proxies, if any.
    """

    def average(usable: Sequence[Weighted], ids: Array) -> tuple[Combined | None, dict[str, float]]:
        mean = partial(setting.exchange.combine, n_params=len(params), cohort=float(n_asked))
        draws = stream(key, Purpose.SERVER_NOISE, number)
        if sum_below is not None:
            joined, n_held = sum_below(usable, ids, number)
            combined = average_sum(setting, joined, partial(mean, key=draws), cohort=float(n_asked))
            held: dict[str, float] = {HELD_BACK: n_held} if n_held else {}
            return combined, held if combined is not None else {**held, ALONE: 1}
        counted = CountedMessages(usable)
        combined = Combined(mean(counted, key=draws))
        return (combined, {}) if counted.n_counting >= FEWEST else (None, {ALONE: 1})

    if setting.attack is None and setting.rule is None:
        return average(messages, ids)
    sent, is_malicious = list(messages), ids < setting.n_malicious
    gathered = partial(gather, ids=ids, params=params, round=number, memory=memory)
    if setting.attack is not None:
        trial = rule_on_trial(setting.rule, gathered(sent))
        target = Target(params, round, stream(key, Purpose.ATTACK, number), trial)
        sent = forge_messages(setting.attack, sent, is_malicious, target)
    received = gathered(sent)
    refused = count_refused(received.updates, is_attacked=setting.attack is not None)
    is_used = find_finite(received.updates) & (received.weights > 0)
    if np.count_nonzero(is_used) < FEWEST:
        return None, {**refused, ALONE: 1}
    if setting.rule is None:
        found, lost = average([message for message, fine in zip(sent, is_used, strict=True) if fine], ids[is_used])
        return found, {**refused, **lost}
    combined = combine_gathered(setting.rule, received)
    if combined is not None and combined.trust is not None and np.count_nonzero(combined.trust) < FEWEST:
        return None, {**refused, ALONE: 1}  # Why: a rule that leaves clients out may have left one
    return combined, refused if combined is None else {**name_evidence(combined, is_malicious), **refused}


def average_sum(
    setting: PersonalSetting, joined: PartialSum | None, mean: Callable[..., Array], *, cohort: float
) -> Combined | None:
    """One update of what proxies forward; mean: of messages, with its noise."""
    if joined is None:
        return None
    if setting.exchange.protection.divisor(cohort) is None:
        return Combined(joined.total / joined.weight) if joined.weight > 0 else None
    return Combined(mean([WholeMessage(joined.total)]))
