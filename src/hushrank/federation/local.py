"""What one client does with its own searches: the one loop of local learning, plainly.

Simulated people, a log of clicks and a device's own store differ in where lists and clicks come from, a `Lesson`. The
steps that follow from them are these. Read `round.py` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from hushrank.metrics.ndcg import ndcg
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_below, draw_uniform, stream
from hushrank.types import Array, Client, DenseUpdate, QuerySet

if TYPE_CHECKING:
    from hushrank.federation.round import Federation


class Study(Protocol):
    """What one client does in a round: what it learnt, and the mean nDCG@k of the lists that were seen."""

    def __call__(
        self, federation: Federation, params: Array, client: Client, *, key: Array, round: int
    ) -> tuple[Any, float]: ...


# From the local weights [n_params] to where one list and its clicks pull them, and the nDCG@k of the list.
Lesson: TypeAlias = Callable[[Array], tuple[Array, float]]


def _as_they_are(weights: Array) -> Array:
    return weights


@dataclass(frozen=True, slots=True)
class Steps:
    """How a client moves its weights."""

    rate: float  # learning rate
    batch: int = 1  # gradients summed at the same weights
    keep: Callable[[Array], Array] = _as_they_are  # what is done to the weights after every step, such as clipping
    pull: Callable[[Array, Array], Array] | None = None  # (weights, the round's weights) -> a term of every gradient


def follow_lessons(params: Array, lessons: Sequence[Lesson], steps: Steps) -> tuple[Array, float]:
    """[n_params] the weights after all lessons, and the mean nDCG@k of their lists [fpdgd, Algorithm 1]."""
    local, gradient, quality = params, np.zeros_like(params), 0.0
    for number, lesson in enumerate(lessons, start=1):
        direction, seen = lesson(local)
        gradient = gradient + direction
        if number % steps.batch == 0:
            if steps.pull is not None:
                gradient = gradient + steps.pull(local, params)
            local, gradient = steps.keep(local + steps.rate * gradient), np.zeros_like(params)
        quality += seen / len(lessons)
    return local, quality


def learn(
    federation: Federation, params: Array, client: Client, *, key: Array, round: int
) -> tuple[DenseUpdate, float]:
    """What one client learns from its own searches, and the mean nDCG@k of the lists it showed."""
    lessons = [
        _search(federation, client, key=key, round=round, interaction=interaction)
        for interaction in range(client.n_interactions)
    ]
    local, quality = follow_lessons(params, lessons, federation.steps)
    return DenseUpdate(local - params, client.n_interactions), quality


def pick_query(queries: QuerySet, client: Client, *, key: Array, round: int, interaction: int) -> int:
    """What a simulated person searches for."""
    return int(draw_below(stream(key, Purpose.QUERY, round, client.id, interaction), queries.n_queries, 1)[0])


def _search(federation: Federation, client: Client, *, key: Array, round: int, interaction: int) -> Lesson:
    """One search of a simulated person: query, list, clicks, and what they say."""

    def draw(purpose: Purpose) -> Array:
        return stream(key, purpose, round, client.id, interaction)

    def lesson(local: Array) -> tuple[Array, float]:
        queries, user = federation.queries_of(client), federation.user_of(client)
        rows = queries.rows(pick_query(queries, client, key=key, round=round, interaction=interaction))
        features, grades = queries.features[rows], queries.grades[rows]

        scores = federation.ranker.score(local, features)
        ranking = sample_ranking(scores, draw_uniform(draw(Purpose.SHOW), len(scores)), k=federation.k)

        click_draws = draw_uniform(draw(Purpose.CLICK), len(ranking))
        stop_draws = draw_uniform(draw(Purpose.STOP), len(ranking))
        is_clicked = user(grades[ranking], click_draws, stop_draws)

        seen = (features, scores, ranking, is_clicked)
        gradient = federation.learner.gradient(federation.ranker, local, *seen)
        return gradient, ndcg(grades[ranking], grades, k=federation.k)

    return lesson
