"""What malicious clients send, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hushrank.attacks.at_bound import AtBound
from hushrank.attacks.cycle import Cycle
from hushrank.attacks.false_rewards import FalseRewards
from hushrank.attacks.fang_krum import FangKrum, FangMultiKrum
from hushrank.attacks.fang_trimmed_mean import FangTrimmedMean
from hushrank.attacks.framing import Framing
from hushrank.attacks.gaussian import Gaussian
from hushrank.attacks.little_is_enough import LittleIsEnough
from hushrank.attacks.min_max import MinMax, MinSum
from hushrank.attacks.opposite_model import OppositeModel
from hushrank.attacks.poisoned_clicks import PoisonedClicks
from hushrank.attacks.promote import Promote
from hushrank.attacks.scaled import Scaled
from hushrank.attacks.sidestep import Sidestep
from hushrank.attacks.sign_flip import SignFlip
from hushrank.attacks.stage import Stage
from hushrank.attacks.tactics import Tactics, disguise, wake
from hushrank.attacks.tailored import Tailored
from hushrank.keys import make_method
from hushrank.registry import register
from hushrank.types import Array, Attack, AttackView, ForgedUpdate, Knowledge, Weighted

# An attack on updates, or the dataclass of attacks that differ in their settings; `stage` says what it is on
AttackMaker: TypeAlias = Attack | type[object]
# {name: attack}; `register_attack` adds to it
ATTACKS: dict[str, AttackMaker] = {
    "poisoned-clicks": PoisonedClicks,
    "little-is-enough": LittleIsEnough,
    "fang-krum": FangKrum,
    "fang-multi-krum": FangMultiKrum,
    "fang-trimmed-mean": FangTrimmedMean,
    "fang-median": FangTrimmedMean,  # [thesis, Section 5.6.2] one attack for both rules
    "sign-flip": SignFlip,
    "gaussian": Gaussian,
    "scaled": Scaled,
    "opposite-model": OppositeModel,
    "min-max": MinMax,
    "min-sum": MinSum,
    "tailored": Tailored,
    "at-bound": AtBound,
    "promote": Promote,
    "sidestep": Sidestep,
    "framing": Framing,
    "cycle": Cycle,
    "false-rewards": FalseRewards,
}


def register_attack(name: str, attack: AttackMaker) -> None:
    """Offer what malicious clients do as `attack=name`."""
    register(ATTACKS, name, attack, key="attack")


@dataclass(frozen=True, slots=True)
class FunctionAttack:
    """A function of the view as an attack."""

    function: Callable[..., Array]  # (view, *, key) -> [n_malicious, n_params]
    knowledge: Knowledge = Knowledge.own

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        return self.function(view, key=key)


def stage_of(name: str) -> Stage:
    """What an attack replaces."""
    return getattr(ATTACKS[name], "stage", Stage.updates)


def find_poison(name: str | None, **settings: object) -> str | None:
    """The user as which malicious clients click; None: they click as everybody does."""
    if name is None or stage_of(name) is not Stage.clicks:
        return None
    poison: str = make_method(ATTACKS, name, settings).poison
    return poison


def find_misreports(name: str | None, **settings: object) -> FalseRewards | None:
    """The attack of this name on rewards, with these settings; None: everybody reports what it saw."""
    if name is None or stage_of(name) is not Stage.rewards:
        return None
    made: FalseRewards = make_method(ATTACKS, name, settings)
    return made


def find_attack(name: str | None, **settings: object) -> Attack | None:
    """The attack of this name on updates, with these settings; None: everybody sends what it learnt."""
    if name is None or stage_of(name) is not Stage.updates:
        return None
    made = make_method(ATTACKS, name, settings)
    return made if hasattr(made, "knowledge") else FunctionAttack(made)


@dataclass(frozen=True, slots=True)
class Target:
    """What an attack meets: the round that it is to spoil."""

    params: Array  # [n_params] the shared ranker
    round: int
    key: Array  # of the attack's own draws
    try_rule: Callable[[Array, Array], Array] | None = None  # (updates [n, n_params], who [n]) -> the server's update


def attack_updates(attack: Attack | Tactics[Attack], updates: Array, is_malicious: Array, target: Target) -> Array:
    """[n_clients, n_params] as the server receives them; honest rows, and all where nobody lies, bit by bit as sent."""
    awake = wake(attack, target.round)
    if awake is None or not is_malicious.any():
        return updates
    knowledge = Knowledge(awake.knowledge)
    knows_own, knows_all = knowledge is not Knowledge.nothing, knowledge is Knowledge.everybody
    who = np.argsort(~is_malicious, kind="stable")  # malicious clients first

    def try_rule(sent: Array) -> Array:
        assert target.try_rule is not None
        return target.try_rule(sent, who[: len(sent)])

    view = AttackView(
        target.params,
        target.round,
        n_clients=len(updates),
        n_malicious=int(is_malicious.sum()),
        own=updates[is_malicious] if knows_own else None,
        others=updates[~is_malicious] if knows_all else None,
        try_rule=None if target.try_rule is None else try_rule,
    )
    with np.errstate(over="ignore", invalid="ignore"):  # Why: a lie beyond float32 is infinite, and a server refuses it
        forged = np.asarray(awake(view, key=target.key))
    if forged.shape != (view.n_malicious, updates.shape[1]):
        raise ValueError(
            f"the attack sends {forged.shape} numbers, must be {view.n_malicious} updates of {updates.shape[1]}."
        )
    received = updates.copy()
    received[is_malicious] = disguise(attack, forged, updates[is_malicious])
    return received


def forge_messages(
    attack: Attack | Tactics[Attack], messages: Sequence[Weighted], is_malicious: Array, target: Target
) -> list[Weighted]:
    """The messages as the server receives them; honest ones stay the very objects that `privacy/` made."""
    if not is_malicious.any():
        return list(messages)
    updates = np.stack([message.delta for message in messages])
    received = attack_updates(attack, updates, is_malicious, target)
    return [
        ForgedUpdate(delta, message.weight) if lies else message
        for message, delta, lies in zip(messages, received, is_malicious, strict=True)
    ]
