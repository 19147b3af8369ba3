"""What the server of personalised search makes of the messages of a step, with the rules and attacks of every other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Combined, NamedArrays, Weighted


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

    def average(usable: Sequence[Weighted]) -> Combined:
        draws = stream(key, Purpose.SERVER_NOISE, number)
        return Combined(setting.exchange.combine(usable, n_params=len(params), cohort=float(n_asked), key=draws))

    if setting.attack is None and setting.rule is None:
        return average(messages), {}
    sent, is_malicious = list(messages), ids < setting.n_malicious
    gathered = partial(gather, ids=ids, params=params, round=number, memory=memory)
    if setting.attack is not None:
        trial = rule_on_trial(setting.rule, gathered(sent))
        target = Target(params, round, stream(key, Purpose.ATTACK, number), trial)
        sent = forge_messages(setting.attack, sent, is_malicious, target)
    received = gathered(sent)
    refused = count_refused(received.updates, is_attacked=setting.attack is not None)
    if setting.rule is not None:
        combined = combine_gathered(setting.rule, received)
        return combined, refused if combined is None else {**name_evidence(combined, is_malicious), **refused}
    usable = [message for message, fine in zip(sent, find_finite(received.updates), strict=True) if fine]
    return (average(usable) if usable else None), refused
