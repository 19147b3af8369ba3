"""What the server of personalised search makes of the messages of a step, with the rules and attacks of every other.

A step joins at least `FEWEST` updates that count. Of one alone the next model would show everybody what its client has
learnt; so a step in which all others have nothing to learn from, or are refused, is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from hushrank.federation.seen import EVIDENCE
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Combined, NamedArrays, Weighted

FEWEST = 2
ALONE = f"{EVIDENCE}/alone"  # of a step: 1 where it is lost because fewer updates counted


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
) -> tuple[Combined | None, dict[str, float]]:
    """One update of those who answered (ids [n]) of n_asked, and what is known of it; None: too few can be used.

    The mean takes messages one by one; rules and attacks need all of them at once.
    """

    def average(usable: Sequence[Weighted]) -> Combined | None:
        draws, counted = stream(key, Purpose.SERVER_NOISE, number), CountedMessages(usable)
        mean = setting.exchange.combine(counted, n_params=len(params), cohort=float(n_asked), key=draws)
        return Combined(mean) if counted.n_counting >= FEWEST else None

    if setting.attack is None and setting.rule is None:
        combined = average(messages)
        return combined, {ALONE: 1} if combined is None else {}
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
        return average([message for message, fine in zip(sent, is_used, strict=True) if fine]), refused
    combined = combine_gathered(setting.rule, received)
    if combined is not None and combined.trust is not None and np.count_nonzero(combined.trust) < FEWEST:
        return None, {**refused, ALONE: 1}  # Why: a rule that leaves clients out may have left one
    return combined, refused if combined is None else {**name_evidence(combined, is_malicious), **refused}
