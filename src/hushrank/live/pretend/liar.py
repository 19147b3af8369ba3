"""A pretend client that lies: it searches and learns as everybody does, and then makes an update of its own choice.

What it sends takes the same way as an honest update, through the clip to the agreed norm, so that it is as long as the
server allows at most. Alone on its device it knows the ranker and what it learnt itself, and nothing of other clients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.aggregation.compatibility import Combination, Learner, check_compatible
from hushrank.attacks.named import ATTACKS, find_attack
from hushrank.keys import Settings, hint_names, read_settings
from hushrank.live.device.learning import Draft, GradientLearning, Learning
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Attack, AttackView, DenseUpdate, Knowledge


@dataclass(frozen=True, slots=True)
class Lie:
    """What the clients of a crowd do instead of sending what they learnt."""

    name: str
    attack: Attack


@dataclass(frozen=True, slots=True)
class LyingLearning(GradientLearning):
    """By gradients, but for what is sent in the end."""

    attack: Attack
    key: Array  # of all draws
    id: int  # in the simulator's streams

    def draft(self, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
        honest = GradientLearning.draft(self, store, ranker, is_last_call=is_last_call)  # Why no super: slots
        if honest is None or not isinstance(honest.raw, DenseUpdate):
            return honest
        view = AttackView(
            params=ranker.params,
            round=ranker.round,
            n_clients=self.agreement.n_clients or 1,
            n_malicious=1,
            own=honest.raw.delta[None] if self.attack.knowledge != Knowledge.nothing else None,
            others=None,
        )
        (forged,) = np.asarray(self.attack(view, key=stream(self.key, Purpose.ATTACK, ranker.round, self.id)))
        return replace(honest, raw=DenseUpdate(forged.astype(ranker.params.dtype), honest.raw.n_interactions))


def find_lie(name: str, settings: Settings) -> Lie:
    """An attack that one client can make alone."""
    if name not in ATTACKS:
        raise ValueError(f"no attack is called {name!r}; {hint_names(name, ATTACKS)}")
    attack = find_attack(name, **read_settings(ATTACKS, name, settings))
    assert attack is not None
    if attack.knowledge == Knowledge.everybody:
        raise ValueError(
            f"attack={name} is made from what all others send, and a client alone on its device knows only its own: "
            "simulate it with hushrank run."
        )
    return Lie(name, attack)


def lie_with(learning: Learning, lie: Lie, *, key: Array, id: int) -> LyingLearning:
    """What an honest client would do, up to what it sends."""
    learner = Learner.rewards if learning.agreement.is_evolution else Learner.updates
    check_compatible(Combination(learner, attack=lie.name))
    assert isinstance(learning, GradientLearning)
    made = (learning.agreement, learning.ranker, learning.exchange, learning.body, learning.price)
    return LyingLearning(*made, lie.attack, key, id)
