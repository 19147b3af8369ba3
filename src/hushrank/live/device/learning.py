"""From impressions on a device to an answer that may leave it: local update, then privatise.

Gradients (fpdgd): the newest lists that no answer has used, step by step from the round's ranker, as in `round.learn`.
A list was shown by some ranker of the past, so rho comes from the scores logged with it, the pair gradient from today's
weights, and the whole is multiplied by how much likelier today's ranker would show that list, at most `MAX_WEIGHT`.
Lists of rankers more than `MAX_AGE` rounds old are left out. On lists of the very weights that learn, it is PDGD.

Evolution strategies (foltr-es): only lists shown under this device's own perturbation of this round say anything about
it. Lists of other rounds are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hushrank.federation.evolution import Evolution
from hushrank.federation.protection import Protection
from hushrank.learners.logged import rescored_pdgd_gradient
from hushrank.live.device.impressions import SAMPLED, SORTED, Impression
from hushrank.live.device.outbox import Answer
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.bodies import encode_reward, encode_update
from hushrank.live.wire.terms import evolution_of, price_of, protection_of, ranker_of
from hushrank.privacy.clipping import clip_weights
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.none import send_openly
from hushrank.privacy.renyi import Spend
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import Array, DenseUpdate, SeedReward

MAX_AGE = 10  # rounds. Why: nothing is lost up to twice that (docs/live_client.md), and people's data may move faster
MAX_WEIGHT = 2.0  # Why: more lets single lists decide, less throws away what was seen
Numbered: TypeAlias = tuple[int, Impression]


@dataclass(frozen=True, slots=True)
class Learning:
    """How a client of a federation learns: the agreement's stages, made once."""

    agreement: Agreement
    ranker: LinearRanker | MlpRanker
    evolution: Evolution | None  # None: by gradients
    protection: Protection | None
    price: Spend | None  # of one answer from as many lists as agreed

    @property
    def directions(self) -> tuple[int, ...]:
        """In which a perturbation is tried."""
        return (1, -1) if self.agreement.antithetic else (1,)


@dataclass(frozen=True, slots=True)
class Draft:
    """What was learnt, before anything is done to protect it. Stays on the device."""

    round: int
    raw: DenseUpdate | SeedReward
    used: tuple[int, ...]  # numbers of the impressions
    price: Spend | None  # of the answer; None: nothing is promised


def make_learning(agreement: Agreement) -> Learning:
    protection = protection_of(agreement)
    return Learning(agreement, ranker_of(agreement), evolution_of(agreement), protection, price_of(agreement))


def draft_answer(learning: Learning, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
    """What the store tells about this round's ranker; None: nothing yet, or not enough unless it is the last call."""
    if learning.evolution is not None:
        return _draft_rewards(learning, learning.evolution, store, ranker, is_last_call=is_last_call)
    found = store.find_free(policy=SAMPLED, oldest_round=ranker.round - MAX_AGE, limit=learning.agreement.interactions)
    if not found and learning.protection is None:
        return None
    update = learn_update(learning, ranker.params, [impression for _, impression in found])
    return Draft(ranker.round, update, tuple(number for number, _ in found), learning.price)


def learn_update(learning: Learning, params: Array, impressions: list[Impression]) -> DenseUpdate:
    """One step for each list, in the order they were shown [fpdgd, Algorithm 1].

    Under protection who saw nothing answers too, with nothing and weight 1: a sound sum must not tell who is silent,
    and the published noise adds up only if everybody sends a share.
    """
    local = params
    for impression in impressions:
        local = take_step(learning, local, impression)
    return DenseUpdate(local - params, max(len(impressions), 1))


def take_step(learning: Learning, local: Array, impression: Impression) -> Array:
    """[n_params] the weights after one list."""
    gradient = rescored_pdgd_gradient(
        learning.ranker,
        local,
        impression.features,
        impression.scores,
        impression.ranking,
        impression.is_clicked,
        max_weight=MAX_WEIGHT,
    )
    local = local + learning.agreement.learning_rate * gradient
    if isinstance(learning.protection, PaperNoise):
        return clip_weights(local, learning.protection.weight_norm)
    return local


def _draft_rewards(
    learning: Learning, evolution: Evolution, store: Interactions, ranker: KeptRanker, *, is_last_call: bool
) -> Draft | None:
    """Equally many lists of each direction."""
    wanted = learning.agreement.interactions // len(learning.directions)
    found = [
        store.find_free(policy=SORTED, oldest_round=ranker.round, limit=wanted, seed=ranker.seed, direction=direction)
        for direction in learning.directions
    ]
    n = min(map(len, found))
    if ranker.seed is None or n == 0 or (n < wanted and not is_last_call):
        return None
    rewards = np.array([[read_reward(evolution, impression) for _, impression in lists[:n]] for lists in found])
    used = tuple(number for lists in found for number, _ in lists[:n])
    price = None if learning.price is None else replace(learning.price, times=len(used))
    return Draft(ranker.round, SeedReward(ranker.seed, rewards), used, price)


def read_reward(evolution: Evolution, impression: Impression) -> float:
    """From clicks alone: nobody knows the grades of a person's documents."""
    unknown = np.zeros(len(impression.ranking))
    return evolution.finite(unknown, impression.is_clicked, unknown)


def seal_answer(learning: Learning, draft: Draft, *, key: Array) -> Answer:
    """The bytes that may leave the device. key: the operating system's entropy, or a simulator's stream."""
    if isinstance(draft.raw, SeedReward):
        assert learning.evolution is not None
        reward = learning.evolution.privatise(draft.raw, key=key)
        return Answer(draft.round, encode_reward(reward), 1.0, reward.guarantee)
    privatise = send_openly if learning.protection is None else learning.protection.privatise
    update = privatise(draft.raw, key=key)
    return Answer(draft.round, encode_update(update), update.weight, update.guarantee)
