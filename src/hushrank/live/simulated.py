"""A pretend person: searches with the client's own ranker, clicks as a click model does, and forgets nothing.

Each list goes through the store, and the client learns from the store after every one, so that a person killed in the
middle of a round goes on where it stopped. The draws are those of `round.learn` and `learners/es.py`, by purpose,
round, client and interaction: a federation of pretend people ends with the simulator's ranker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.learners.es import directions
from hushrank.live.interactions import SAMPLED, Impression, Interactions, KeptRanker
from hushrank.live.learning import MAX_AGE, Learning, take_step
from hushrank.live.searching import sample_list, sort_list
from hushrank.metrics.ndcg import ndcg
from hushrank.streams import Purpose, draw_below, draw_uniform, stream
from hushrank.types import Array, QuerySet, User


@dataclass(frozen=True, slots=True)
class Person:
    """Who pretends."""

    id: int  # in the simulator's streams
    queries: QuerySet  # what is searched for
    user: User  # how it is clicked
    key: Array  # [2] of all draws

    def draws(self, purpose: Purpose, round: int, interaction: int, n: int) -> Array:
        """[n] uniform"""
        return draw_uniform(stream(self.key, purpose, round, self.id, interaction), n)


def search_enough(person: Person, learning: Learning, store: Interactions, ranker: KeptRanker) -> list[float]:
    """Search until the store has as many lists as an answer uses; nDCG@k of each list that was shown."""
    if learning.evolution is not None:
        return _try_directions(person, learning, store, ranker)
    return _search_and_learn(person, learning, store, ranker)


def _search_and_learn(person: Person, learning: Learning, store: Interactions, ranker: KeptRanker) -> list[float]:
    """As `round.learn`: each list is shown by the weights that the lists before it have moved."""
    seen, wanted = list[float](), learning.agreement.interactions

    def find() -> list[Impression]:
        found = store.find_free(policy=SAMPLED, oldest_round=ranker.round - MAX_AGE, limit=wanted)
        return [impression for _, impression in found]

    local = ranker.params
    for impression in (lists := find()):
        local = take_step(learning, local, impression)
    while len(lists) < wanted:
        interaction = store.count_shown(round=ranker.round)
        features, grades = _search(person, ranker.round, interaction)
        draws = person.draws(Purpose.SHOW, ranker.round, interaction, len(features))
        shown = sample_list(learning, ranker.round, local, features, draws)
        seen.append(_click_and_keep(person, store, shown, grades, interaction, k=learning.agreement.k))
        lists = find()
        local = take_step(learning, local, lists[-1])
    return seen


def _try_directions(person: Person, learning: Learning, store: Interactions, ranker: KeptRanker) -> list[float]:
    """As `es_learn`: the first half of the lists by params + noise, the second by params - noise."""
    assert learning.evolution is not None
    signs = directions(learning.agreement.interactions, antithetic=learning.evolution.antithetic)
    seen = list[float]()
    for interaction in range(store.count_shown(round=ranker.round), len(signs)):
        features, grades = _search(person, ranker.round, interaction)
        shown = sort_list(learning, ranker, features, direction=int(signs[interaction]))
        seen.append(_click_and_keep(person, store, shown, grades, interaction, k=learning.agreement.k))
    return seen


def _search(person: Person, round: int, interaction: int) -> tuple[Array, Array]:
    """Features and grades of the documents of one query."""
    key = stream(person.key, Purpose.QUERY, round, person.id, interaction)
    rows = person.queries.rows(int(draw_below(key, person.queries.n_queries, 1)[0]))
    return person.queries.features[rows], person.queries.grades[rows]


def _click_and_keep(
    person: Person, store: Interactions, shown: Impression, grades: Array, interaction: int, *, k: int
) -> float:
    """nDCG@k of the list, which is in the store with the person's clicks."""
    n = len(shown.ranking)
    clicks, stops = (person.draws(p, shown.round, interaction, n) for p in (Purpose.CLICK, Purpose.STOP))
    is_clicked = np.asarray(person.user(grades[shown.ranking], clicks, stops))
    store.add(replace(shown, is_clicked=is_clicked))
    return ndcg(grades[shown.ranking], grades, k=k)
