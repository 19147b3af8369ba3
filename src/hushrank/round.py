"""One federated round, plainly: read this first.

Everything hushrank does is this page at another speed or over a network. A round takes the ranker everyone has, lets
each client of a cohort search, click and learn on its own, and makes one better ranker of what they send:

    documents -> features -> ranking -> clicks -> local update -> privatise -> aggregate -> new ranker

The simulator (`engine/`) must give the same parameters as `run_round`; tests/engine/test_twins.py says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hushrank.aggregation.mean import mean_aggregate
from hushrank.aggregation.server_step import ServerState, ServerStep
from hushrank.cohort import Population, answers, sample_cohort
from hushrank.learners.pdgd import pdgd_gradient
from hushrank.metrics.ndcg import ndcg
from hushrank.privacy.none import send_openly
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_below, draw_uniform, stream
from hushrank.types import Array, Client, DenseUpdate, PrivateUpdate, QuerySet, Ranker, User


@dataclass(frozen=True, slots=True)
class Federation:
    """What stays the same from round to round."""

    ranker: Ranker
    user: User  # how people click
    queries: QuerySet  # what people search for
    population: Population
    learning_rate: float = 0.1
    server_step: ServerStep = ServerStep()  # noqa: RUF009 - frozen: FedAvg
    privatise: Callable[[DenseUpdate], PrivateUpdate] = send_openly
    k: int = 10  # results on a page


def run_round(
    federation: Federation, state: ServerState, params: Array, *, key: Array, round: int
) -> tuple[ServerState, Array, float]:
    """One round: the new server state, the new parameters, and the mean nDCG@k of the lists that people saw."""
    cohort = sample_cohort(federation.population, key, round)
    learnt = [learn(federation, params, client, key=key, round=round) for client in cohort]
    sent = [
        federation.privatise(update)
        for client, (update, _) in zip(cohort, learnt, strict=True)
        if answers(federation.population, key, round, client)
    ]
    online = sum(quality for _, quality in learnt) / len(learnt)
    if not any(update.weight for update in sent):
        return state, params, online
    mean = mean_aggregate(sent, n_params=len(params)).astype(params.dtype)
    return (*federation.server_step(state, params, mean), online)  # Federated averaging [fpdgd, Algorithm 2]


def learn(
    federation: Federation, params: Array, client: Client, *, key: Array, round: int
) -> tuple[DenseUpdate, float]:
    """What one client learns from its own searches, and the mean nDCG@k of the lists it showed [fpdgd, Algorithm 1]."""
    local, quality = params, 0.0
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

        gradient = pdgd_gradient(federation.ranker, local, features, scores, ranking, is_clicked)
        local = local + federation.learning_rate * gradient
        quality += ndcg(grades[ranking], grades, k=federation.k) / client.n_interactions
    return DenseUpdate(local - params, client.n_interactions), quality
