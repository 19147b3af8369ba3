"""One federated round, plainly: read this first.

Everything hushrank does is this page at another speed or over a network. A round takes the ranker everyone has, lets
each client of a cohort search, click and learn on its own (`local.py`), and makes one better ranker of what they send:

    documents -> features -> ranking -> clicks -> local update -> privatise -> aggregate -> new ranker

The simulator (`engine/`) must give the same parameters as `run_round`; tests/engine/test_twins.py says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushrank.aggregation.named import CheckedRule
from hushrank.aggregation.server_step import ServerStep
from hushrank.attacks.false_rewards import FalseRewards, RewardForm
from hushrank.attacks.tactics import Tactics
from hushrank.federation.cohort import Population, answers, sample_cohort
from hushrank.federation.gathering import combine_messages
from hushrank.federation.groups import Group
from hushrank.federation.keeping import add_shares, keep_lengths
from hushrank.federation.local import Steps, Study, learn
from hushrank.federation.personal import first_kept, local_pull, remember_remedy, study_personally
from hushrank.federation.seen import describe_seen
from hushrank.federation.state import OPTIMISER, RULE, part_of, replace_owner, with_owner
from hushrank.learners.named import PDGD, NamedLearner
from hushrank.privacy.draws import noise_key
from hushrank.privacy.none import send_openly
from hushrank.privacy.protection import Clipping
from hushrank.privacy.quorum import Quorum
from hushrank.remedies.remedy import Remedy
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Attack, Client, NamedArrays, QuerySet, Ranker, User


@dataclass(frozen=True, slots=True)
class Federation:
    """What stays the same from round to round."""

    ranker: Ranker
    user: User  # how people click
    queries: QuerySet  # what people search for
    population: Population
    groups: tuple[Group, ...] = ()  # of clients that differ; none: all are alike
    learner: NamedLearner = PDGD  # how a client reads one interaction
    remedy: Remedy = Remedy()  # noqa: RUF009 - frozen: what is done about clients that differ
    shift: Array | None = None  # [n_params] a term of every local gradient, for one client; None: none
    learning_rate: float = 0.1
    batch: int = 1  # interactions whose gradients are summed at the same weights; more than 1 only in central training
    study: Study = learn  # what a client does in a round
    limit_weights: Callable[[Array], Array] | None = None  # what is done to the weights after every local step
    privatise: Callable[..., Any] = send_openly  # (what was learnt, key=) -> what may leave the device
    answers_always: bool = False  # whether a client that learnt nothing sends that, with weight 1
    attack: Attack | Tactics[Attack] | None = None  # what malicious clients send instead; None: everybody is honest
    misreports: FalseRewards | Tactics[FalseRewards] | None = None  # the same of rewards
    reward_form: RewardForm | None = None  # of messages with rewards
    n_malicious: int = 0  # the clients with the lowest ids
    rule: CheckedRule | None = None  # how all updates at once become one; None: `combine`
    combine: Callable[..., Array] | None = None  # (messages, n_params=, key=, round=) -> update; None: weighted mean
    divisor: float | None = None  # of `combine`, a constant; None: the sum of the weights
    quorum: Quorum = Quorum()  # noqa: RUF009 - frozen: answers without which a round is lost
    server_step: ServerStep = ServerStep()  # noqa: RUF009 - frozen: FedAvg
    k: int = 10  # results on a page
    clipping: Clipping = Clipping()  # noqa: RUF009 - frozen: what `limit_weights` and `privatise` clip
    keep_every: int | None = None  # clients keep the lengths of their updates in rounds 1, 1 + keep_every, ...
    calibrate_every: int | None = None  # the same of lengths kept in an earlier training, which updates are scaled to
    keeps_sums: bool = False  # whether it is known what each client has added to the ranker
    noise_number: int | None = None  # of noise that no other training of the same rounds has (`noise_key`)

    def queries_of(self, client: Client) -> QuerySet:
        return self.groups[client.group].train if self.groups else self.queries

    def user_of(self, client: Client) -> User:
        return (self.groups[client.group].user if self.groups else None) or self.user

    def start(self, params: Array) -> NamedArrays:
        """What is remembered before the first round."""
        kept = first_kept(self.remedy, self.ranker, params, self.population.n_clients)
        return {**with_owner(OPTIMISER, self.server_step.init(params)), **kept}

    @property
    def steps(self) -> Steps:
        """How a client moves its weights."""
        steps = Steps(self.learning_rate, self.batch, pull=local_pull(self.remedy, self.shift))
        return steps if self.limit_weights is None else replace(steps, keep=self.limit_weights)


def run_round(
    federation: Federation, state: NamedArrays, params: Array, *, key: Array, round: int
) -> tuple[NamedArrays, Array, dict[str, float]]:
    """One round: what is remembered from now on, the new parameters, and what the round showed (`seen.py`)."""
    cohort = sample_cohort(federation.population, key, round)
    state, learnt = study_personally(federation, state, params, cohort, key=key, round=round)
    state, learnt = keep_lengths(federation, state, params, cohort, learnt, round=round)
    seen = describe_seen(federation, cohort, [quality for _, quality in learnt])
    arrives = np.array([answers(federation.population, key, round, client) for client in cohort], bool)
    own = noise_key(key, federation.noise_number)
    sent = [
        federation.privatise(update, key=stream(own, Purpose.PRIVATISE, round, client.id))
        for client, (update, _), arrived in zip(cohort, learnt, arrives, strict=True)
        if arrived
    ]
    if federation.quorum.count([message.weight for message in sent]) < federation.quorum.needed(len(cohort)):
        return state, params, seen
    ids = np.array([client.id for client in cohort])[arrives]
    combined, evidence, averaged = combine_messages(federation, state, params, sent, ids, key=key, round=round)
    if combined is None:
        return state, params, {**seen, **evidence}
    state = add_shares(federation, replace_owner(state, RULE, combined.memory), *averaged)
    mean = combined.update[: len(params)].astype(params.dtype)
    step, params = federation.server_step(part_of(state, OPTIMISER), params, mean)  # FedAvg [fpdgd, Algorithm 2]
    state = remember_remedy(federation.remedy, federation.population, state, combined.update)
    return replace_owner(state, OPTIMISER, step), params, {**seen, **evidence}
