"""From impressions on a device to an answer that may leave it: local update, then privatise.

Gradients (fpdgd): the newest lists that no answer has used, step by step from the round's ranker, as in `local.learn`.
A list was shown by some ranker of the past, so rho comes from the scores logged with it, the pair gradient from today's
weights, and the whole is multiplied by how much likelier today's ranker would show that list, at most `MAX_WEIGHT`.
Lists of rankers more than `MAX_AGE` rounds old are left out. On lists of the very weights that learn, it is PDGD.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from hushrank.federation.exchange import Exchange, UpdateExchange
from hushrank.federation.keeping import calibrate_within
from hushrank.federation.local import Lesson, Steps, follow_lessons
from hushrank.learners.logged import rescored_pdgd_gradient
from hushrank.live.device.impressions import SAMPLED, Impression
from hushrank.live.device.outbox import Answer
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.wire.agreement import ERASER, Agreement
from hushrank.live.wire.body_formats import BodyFormat
from hushrank.live.wire.news import ForgetNews
from hushrank.live.wire.terms import forget_method_of, message_guarantee_of
from hushrank.privacy.protection import clip_messages
from hushrank.privacy.renyi import Spend
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import ENTROPY, draw_uniform
from hushrank.types import Array, DenseUpdate, SeedReward
from hushrank.unlearning.lengths import is_kept, measure_lengths

MAX_AGE = 10  # rounds. Why: nothing is lost up to twice that (docs/live_client.md), and people's data may move faster
MAX_WEIGHT = 2.0  # Why: more lets single lists decide, less throws away what was seen
Numbered: TypeAlias = tuple[int, Impression]


@dataclass(frozen=True, slots=True)
class Draft:
    """What was learnt, before anything is done to protect it. Stays on the device."""

    round: int
    raw: DenseUpdate | SeedReward
    used: tuple[int, ...]  # numbers of the impressions
    price: Spend | None  # of the answer; None: nothing is promised
    length: float | None = None  # of the update as it will be sent, without noise, where it is to be kept


class ReplayDraft(NamedTuple):
    """What a client answers in a round that forgets."""

    draft: Draft
    n_lists: int  # that it was learnt from
    is_filled: bool  # whether its length stands in for one that is missing


class RoundProgress(NamedTuple):
    """How far a round's searches have come."""

    n_lists: int  # that the round's answer would use
    params: Array  # [n_params] the weights that show the next list


@dataclass(frozen=True, slots=True)
class Learning(ABC):
    """How a client of a federation learns: the agreement's stages, made once, as its exchange needs them."""

    agreement: Agreement
    ranker: LinearRanker | MlpRanker
    exchange: Exchange
    body: BodyFormat  # of an answer
    price: Spend | None  # of one answer from as many lists as agreed

    @abstractmethod
    def draft(self, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
        """What the store tells about this round's ranker; None: nothing yet, or not enough unless it is the last
        call."""

    @abstractmethod
    def show(self, store: Interactions, ranker: KeptRanker, features: Array) -> Impression:
        """The list for a person who searches now, not yet clicked; features [n, n_features]."""

    @abstractmethod
    def show_next(
        self, ranker: KeptRanker, params: Array, features: Array, *, interaction: int, uniforms: Array
    ) -> Impression:
        """The list of a round's interaction, not yet clicked, as the simulator would show it; uniforms [n]."""

    @abstractmethod
    def begin(self, store: Interactions, ranker: KeptRanker) -> RoundProgress:
        """What the store has for this round's answer already."""

    @abstractmethod
    def advance(self, store: Interactions, ranker: KeptRanker, progress: RoundProgress) -> RoundProgress:
        """After one more list."""

    def replay(self, store: Interactions, candidate: KeptRanker, asked: ForgetNews) -> ReplayDraft | None:
        """What a round that forgets asks for; None: there is nothing to replay."""
        del store, candidate, asked
        return None

    def draw_seed(self, key: Array) -> int | None:
        """Of this device's perturbation in a round; None: there is none."""
        del key
        return None

    def seal(self, draft: Draft, *, key: Array) -> Answer:
        """The bytes that may leave the device. key: the operating system's entropy, or a simulator's stream."""
        message = self.exchange.privatise(draft.raw, key=key)
        guarantee = message_guarantee_of(self.agreement, message.guarantee)
        return Answer(draft.round, self.body.encode(message), message.weight, guarantee)


@dataclass(frozen=True, slots=True)
class GradientLearning(Learning):
    """By gradients, from lists that were sampled."""

    exchange: UpdateExchange

    @property
    def steps(self) -> Steps:
        """How a client moves its weights."""
        return Steps(self.agreement.learning_rate, keep=self.exchange.protection.limit_weights)

    def find(self, store: Interactions, ranker: KeptRanker) -> list[Numbered]:
        """The lists that an answer would use, in the order they were shown."""
        oldest = ranker.round - MAX_AGE
        return store.find_free(policy=SAMPLED, oldest_round=oldest, limit=self.agreement.interactions)

    def draft(self, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
        del is_last_call
        found = self.find(store, ranker)
        if not found and not self.exchange.protection.answers_always:
            return None
        update, every = learn_update(self, ranker.params, [impression for _, impression in found]), self.keeps_every
        keeps = every is not None and is_kept(ranker.round, every)
        length = measure_sent(self, update) if keeps else None
        return Draft(ranker.round, update, tuple(number for number, _ in found), self.price, length)

    @property
    def keeps_every(self) -> int | None:
        """Rounds from one whose update's length is kept to the next; None: none is."""
        return self.agreement.keep_every if forget_method_of(self.agreement) == ERASER else None

    def replay(self, store: Interactions, candidate: KeptRanker, asked: ForgetNews) -> ReplayDraft | None:
        """The lists of an earlier round once more, from the candidate, brought to the length that the update of that
        round had [foltr-thesis, Eq. 6.2]. Where that length is missing, the nearest earlier one stands in for it, else
        the nearest later one; who has none at all leaves the update as it is."""
        lists = store.find_used(asked.round, limit=min(asked.searches, self.agreement.interactions))
        if not lists and not self.exchange.protection.answers_always:
            return None
        update, is_filled = learn_update(self, candidate.params, lists), False
        if lists and self.keeps_every is not None:
            length, is_filled = find_length(store.lengths(), asked.round)
            clipping, kept = self.exchange.protection.clipping, np.array([length], np.float32)
            new = clip_messages(update.delta[None], clipping)
            (delta,) = calibrate_within(candidate.params, new, kept, clipping)
            update = DenseUpdate(delta, update.n_interactions)
        return ReplayDraft(Draft(candidate.round, update, (), self.price), len(lists), is_filled)

    def show(self, store: Interactions, ranker: KeptRanker, features: Array) -> Impression:
        del store
        uniforms = draw_uniform(ENTROPY, len(features))
        return self.show_next(ranker, ranker.params, features, interaction=0, uniforms=uniforms)

    def show_next(
        self, ranker: KeptRanker, params: Array, features: Array, *, interaction: int, uniforms: Array
    ) -> Impression:
        """A Plackett-Luce list of these weights' scores: what PDGD learns from."""
        del interaction
        scores = self.ranker.score(params, features)
        ranking = sample_ranking(scores, uniforms, k=self.agreement.k)
        return Impression(ranker.round, features, scores, ranking, np.zeros(len(ranking), bool), SAMPLED)

    def begin(self, store: Interactions, ranker: KeptRanker) -> RoundProgress:
        found = self.find(store, ranker)
        lessons = [read_impression(self, impression) for _, impression in found]
        return RoundProgress(len(found), follow_lessons(ranker.params, lessons, self.steps)[0])

    def advance(self, store: Interactions, ranker: KeptRanker, progress: RoundProgress) -> RoundProgress:
        """As `local.learn`: each list is shown by the weights that the lists before it have moved."""
        found = self.find(store, ranker)
        lesson = read_impression(self, found[-1][1])
        return RoundProgress(len(found), follow_lessons(progress.params, [lesson], self.steps)[0])


def measure_sent(learning: GradientLearning, update: DenseUpdate) -> float:
    """The L2 length of an update as it will be sent, clipped and without noise."""
    (length,) = measure_lengths(np, clip_messages(update.delta[None], learning.exchange.protection.clipping))
    return float(length)


def find_length(lengths: Mapping[int, float], round: int) -> tuple[float, bool]:
    """The kept length of a round's update, and whether another stands in for it; NaN: there is none at all."""
    if round in lengths:
        return lengths[round], False
    earlier = [known for known in lengths if known < round]
    nearest = max(earlier) if earlier else min(lengths, default=None)
    return (math.nan, True) if nearest is None else (lengths[nearest], True)


def learn_update(learning: GradientLearning, params: Array, impressions: list[Impression]) -> DenseUpdate:
    """One step for each list, in the order they were shown [fpdgd, Algorithm 1].

    Who saw nothing and answers all the same sends the round's weights, within the norm that all weights must keep to:
    where there is such a norm, an update of zeros would say that nothing was seen, and be further from the others than
    the noise was measured for. Without one it is zeros.
    """
    lessons = [read_impression(learning, impression) for impression in impressions]
    local, _ = follow_lessons(params, lessons, learning.steps)
    local = local if lessons else learning.steps.keep(params)
    return DenseUpdate(local - params, max(len(impressions), 1))


def read_impression(learning: GradientLearning, impression: Impression) -> Lesson:
    """Where one list that was shown pulls the weights; how good it was, nobody knows."""

    def lesson(local: Array) -> tuple[Array, float]:
        seen = (impression.features, impression.scores, impression.ranking, impression.is_clicked)
        return rescored_pdgd_gradient(learning.ranker, local, *seen, max_weight=MAX_WEIGHT), math.nan

    return lesson
