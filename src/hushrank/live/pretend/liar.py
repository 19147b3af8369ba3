"""A pretend client that lies: it searches and learns as everybody does, and then makes an update of its own choice.

What it sends takes the same way as an honest update, through the clip to the agreed norm, so that no server refuses it.
Alone on its device it knows the ranker and what it learnt itself, and nothing of other clients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hushrank.aggregation.compatibility import Combination, Learner, check_compatible
from hushrank.attacks.named import ATTACKS, find_attack, find_poison
from hushrank.keys import Settings, hint_names, read_settings
from hushrank.live.device.learning import Draft, GradientLearning, Learning
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.wire.terms import count_params
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Attack, AttackView, DenseUpdate, Knowledge


@dataclass(frozen=True, slots=True)
class Lie:
    """What the clients of a crowd do instead of sending what they learnt."""

    name: str | None = None  # of the attack
    attack: Attack | None = None  # on updates; None: what was learnt, perhaps from clicks that mislead
    poison: str | None = None  # the user as which their people click; None: as they would
    at_bound: bool = False  # whether an update is made as long as the agreement allows
    is_steady: bool = False  # whether it points where all that a client has made so far did together

    @property
    def forges(self) -> bool:
        """Whether anything but what was learnt is sent. Clicks that mislead need no such client."""
        return self.attack is not None or self.at_bound or self.is_steady


@dataclass(frozen=True, slots=True)
class LyingLearning(GradientLearning):
    """By gradients, but for what is sent in the end."""

    lie: Lie
    key: Array  # of all draws
    id: int  # in the simulator's streams
    made: dict[int, Array]  # {round: [n_params] what was made up in it} of a steady liar

    def draft(self, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
        honest = GradientLearning.draft(self, store, ranker, is_last_call=is_last_call)  # Why no super: slots
        if honest is None:
            return None
        learnt = cast("DenseUpdate", honest.raw)
        forged = self.forge(ranker, learnt.delta)
        if self.lie.is_steady:
            self.made[ranker.round] = forged
            forged = np.sum(list(self.made.values()), axis=0)
        length = float(np.linalg.norm(forged))
        if self.lie.at_bound and length > 0:
            forged = forged * (bound_of(self) / length)
        return replace(honest, raw=DenseUpdate(forged.astype(ranker.params.dtype), learnt.n_interactions))

    def forge(self, ranker: KeptRanker, learnt: Array) -> Array:
        """[n_params] what is sent for what was learnt [n_params]."""
        attack = self.lie.attack
        if attack is None:
            return learnt
        view = AttackView(
            params=ranker.params,
            round=ranker.round,
            n_clients=self.agreement.n_clients or 1,
            n_malicious=1,
            own=None if Knowledge(attack.knowledge) is Knowledge.nothing else learnt[None],
            others=None,
        )
        (forged,) = np.asarray(attack(view, key=stream(self.key, Purpose.ATTACK, ranker.round, self.id)))
        return np.asarray(forged)


def bound_of(learning: GradientLearning) -> float:
    """The L2 norm of the longest update that the agreement allows."""
    bound = learning.exchange.protection.bound_norm(count_params(learning.agreement))
    if bound.order != 2 or not math.isfinite(bound.most):
        raise ValueError("--at-bound needs a federation that has agreed on the L2 norm of updates, as update_norm is.")
    return bound.most


def find_lie(name: str | None, settings: Settings, *, at_bound: bool = False, is_steady: bool = False) -> Lie:
    """An attack that one client can make alone."""
    if name is None:
        return Lie(at_bound=at_bound, is_steady=is_steady)
    if name not in ATTACKS:
        raise ValueError(f"no attack is called {name!r}; {hint_names(name, ATTACKS)}")
    read = read_settings(ATTACKS, name, settings)
    attack = find_attack(name, **read)
    if attack is not None and Knowledge(attack.knowledge) is Knowledge.everybody:
        raise ValueError(
            f"attack={name} is made from what all others send, and a client alone on its device knows only its own: "
            "simulate it with hushrank run."
        )
    if hasattr(attack, "aim") or getattr(attack, "tries_rule", False):
        raise ValueError(
            f"attack={name} is made from all training queries or from the server's rule, and a client alone on its "
            "device has neither: simulate it with hushrank run."
        )
    return Lie(name, attack, find_poison(name, **read), at_bound, is_steady)


def lie_with(learning: Learning, lie: Lie, *, key: Array, id: int) -> LyingLearning:
    """What an honest client would do, up to what it sends."""
    learner = Learner.rewards if learning.agreement.is_evolution else Learner.updates
    check_compatible(Combination(learner, attack=lie.name or "--at-bound or --steady"))
    assert isinstance(learning, GradientLearning)
    made = (learning.agreement, learning.ranker, learning.exchange, learning.body, learning.price)
    lying = LyingLearning(*made, lie, key, id, {})
    if lie.at_bound:
        bound_of(lying)
    return lying
