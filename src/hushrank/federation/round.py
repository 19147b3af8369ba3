"""One federated round, plainly: read this first.

Everything hushrank does is this page at another speed or over a network. A round takes the ranker everyone has, lets
each client of a cohort search, click and learn on its own, and makes one better ranker of what they send:

    documents -> features -> ranking -> clicks -> local update -> privatise -> aggregate -> new ranker

The simulator (`engine/`) must give the same parameters as `run_round`; tests/engine/test_twins.py says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from hushrank.aggregation.named import aggregate_by
from hushrank.aggregation.server_step import ServerState, ServerStep
from hushrank.attacks.named import attack_by
from hushrank.federation.cohort import Population, answers, sample_cohort
from hushrank.learners.named import LEARNERS
from hushrank.metrics.ndcg import ndcg
from hushrank.privacy.clipping import clip_weights
from hushrank.privacy.none import send_openly
from hushrank.privacy.quorum import Quorum
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_below, draw_uniform, stream
from hushrank.types import Array, Client, DenseUpdate, QuerySet, Ranker, User


class Study(Protocol):
    """What one client does in a round: what it learnt, and the mean nDCG@k of the lists that were seen."""

    def __call__(
        self, federation: Federation, params: Array, client: Client, *, key: Array, round: int
    ) -> tuple[Any, float]: ...


@dataclass(frozen=True, slots=True)
class Federation:
    """What stays the same from round to round."""

    ranker: Ranker
    user: User  # how people click
    queries: QuerySet  # what people search for
    population: Population
    learner: str = "pdgd"  # how a client reads one interaction
    learning_rate: float = 0.1
    batch: int = 1  # interactions whose gradients are summed at the same weights; more than 1 only in central training
    study: Study | None = None  # what a client does in a round; None: `learn`
    weight_norm: float | None = None  # clip the weights to this L2 norm after every local step
    privatise: Callable[..., Any] = send_openly  # (what was learnt, key=) -> what may leave the device
    attack: str | None = None  # what malicious clients send instead
    n_malicious: int = 0  # the clients with the lowest ids
    aggregation: str = "mean"
    combine: Callable[..., Array] | None = None  # (messages, n_params=, key=, round=) -> update; None: `aggregation`
    quorum: Quorum = Quorum()  # noqa: RUF009 - frozen: answers without which a round is lost
    server_step: ServerStep = ServerStep()  # noqa: RUF009 - frozen: FedAvg
    k: int = 10  # results on a page


def run_round(
    federation: Federation, state: ServerState, params: Array, *, key: Array, round: int
) -> tuple[ServerState, Array, float]:
    """One round: the new server state, the new parameters, and the mean nDCG@k of the lists that people saw."""
    cohort = sample_cohort(federation.population, key, round)
    study = federation.study or learn
    learnt = [study(federation, params, client, key=key, round=round) for client in cohort]
    seen = [quality for _, quality in learnt if not np.isnan(quality)]
    online = sum(seen) / max(len(seen), 1)
    arrives = [answers(federation.population, key, round, client) for client in cohort]
    sent = [
        federation.privatise(update, key=stream(key, Purpose.PRIVATISE, round, client.id))
        for client, (update, _), arrived in zip(cohort, learnt, arrives, strict=True)
        if arrived
    ]
    if sum(message.weight > 0 for message in sent) < federation.quorum.needed(len(cohort)):
        return state, params, online
    if federation.attack is not None:
        is_malicious = np.array([c.id < federation.n_malicious for c, a in zip(cohort, arrives, strict=True) if a])
        sent = attack_by(federation.attack, sent, is_malicious, params, key=stream(key, Purpose.ATTACK, round))
    combine = federation.combine or partial(aggregate_by, federation.aggregation)
    combined = combine(sent, n_params=len(params), key=key, round=round).astype(params.dtype)
    return (*federation.server_step(state, params, combined), online)  # Federated averaging [fpdgd, Algorithm 2]


def learn(
    federation: Federation, params: Array, client: Client, *, key: Array, round: int
) -> tuple[DenseUpdate, float]:
    """What one client learns from its own searches, and the mean nDCG@k of the lists it showed [fpdgd, Algorithm 1]."""
    local, gradient, quality = params, np.zeros_like(params), 0.0
    for interaction in range(client.n_interactions):

        def draw(purpose: Purpose, interaction: int = interaction) -> Array:
            return stream(key, purpose, round, client.id, interaction)

        query = int(draw_below(draw(Purpose.QUERY), federation.queries.n_queries, 1)[0])
        rows = federation.queries.rows(query)
        features, grades = federation.queries.features[rows], federation.queries.grades[rows]

        scores = federation.ranker.score(local, features)
        ranking = sample_ranking(scores, draw_uniform(draw(Purpose.SHOW), len(scores)), k=federation.k)

        click_draws = draw_uniform(draw(Purpose.CLICK), len(ranking))
        stop_draws = draw_uniform(draw(Purpose.STOP), len(ranking))
        is_clicked = federation.user(grades[ranking], click_draws, stop_draws)

        step = LEARNERS[federation.learner]
        gradient = gradient + step(federation.ranker, local, features, scores, ranking, is_clicked)
        if (interaction + 1) % federation.batch == 0:
            local, gradient = local + federation.learning_rate * gradient, np.zeros_like(params)
            local = local if federation.weight_norm is None else clip_weights(local, federation.weight_norm)
        quality += ndcg(grades[ranking], grades, k=federation.k) / client.n_interactions
    return DenseUpdate(local - params, client.n_interactions), quality
