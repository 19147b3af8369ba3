"""A pretend person: searches with the client's own ranker, clicks as a click model does, and forgets nothing.

Each list goes through the store, and the client learns from the store after every one, so that a person killed in the
middle of a round goes on where it stopped. The draws are those of `round.learn` and `learners/es.py`, by purpose,
round, client and interaction: a federation of pretend people ends with the simulator's ranker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.learners.es import directions
from hushrank.live.device.impressions import SAMPLED, Impression
from hushrank.live.device.learning import MAX_AGE, Learning, take_step
from hushrank.live.device.search import sample_list, sort_list
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.metrics.ndcg import ndcg
from hushrank.streams import Purpose, draw_below, draw_uniform, fold_in
from hushrank.types import Array, QuerySet, User

_OWN = (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP)  # what a person draws for each search


@dataclass(frozen=True, slots=True)
class Person:
    """Who pretends."""

    id: int  # in the simulator's streams
    queries: QuerySet  # what is searched for
    user: User  # how it is clicked
    key: Array  # [2] of all draws


@dataclass(frozen=True, slots=True)
class Page:
    """One search: the candidates of a query, and the draws of showing and clicking them."""

    features: Array  # [n, n_features]
    grades: Array  # [n]
    keys: Array  # [4, 2] of QUERY, SHOW, CLICK and STOP

    def draws(self, purpose: Purpose, n: int) -> Array:
        """[n] uniform"""
        return draw_uniform(self.keys[_OWN.index(purpose)], n)


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
    keys = draw_keys(person, ranker.round, wanted)
    while len(lists) < wanted:
        page = open_page(person, keys[store.count_shown(round=ranker.round)])
        draws = page.draws(Purpose.SHOW, len(page.features))
        shown = sample_list(learning, ranker.round, local, page.features, draws)
        seen.append(_click_and_keep(person, store, shown, page, k=learning.agreement.k))
        lists = find()
        local = take_step(learning, local, lists[-1])
    return seen


def _try_directions(person: Person, learning: Learning, store: Interactions, ranker: KeptRanker) -> list[float]:
    """As `es_learn`: the first half of the lists by params + noise, the second by params - noise."""
    assert learning.evolution is not None
    signs = directions(learning.agreement.interactions, antithetic=learning.evolution.antithetic)
    keys, seen = draw_keys(person, ranker.round, len(signs)), list[float]()
    for interaction in range(store.count_shown(round=ranker.round), len(signs)):
        page = open_page(person, keys[interaction])
        shown = sort_list(learning, ranker, page.features, direction=int(signs[interaction]))
        seen.append(_click_and_keep(person, store, shown, page, k=learning.agreement.k))
    return seen


def draw_keys(person: Person, round: int, n: int) -> Array:
    """[n, 4, 2] stream(key, purpose, round, id, interaction) of each interaction and purpose, in four steps for all."""
    of_round = fold_in(fold_in(fold_in(person.key, np.array(_OWN)), np.asarray(round)), np.asarray(person.id))
    return fold_in(of_round, np.arange(n)[:, None])


def open_page(person: Person, keys: Array) -> Page:
    rows = person.queries.rows(int(draw_below(keys[_OWN.index(Purpose.QUERY)], person.queries.n_queries, 1)[0]))
    return Page(person.queries.features[rows], person.queries.grades[rows], keys)


def _click_and_keep(person: Person, store: Interactions, shown: Impression, page: Page, *, k: int) -> float:
    """nDCG@k of the list, which is in the store with the person's clicks."""
    clicks, stops = (page.draws(purpose, len(shown.ranking)) for purpose in (Purpose.CLICK, Purpose.STOP))
    is_clicked = np.asarray(person.user(page.grades[shown.ranking], clicks, stops))
    store.add(replace(shown, is_clicked=is_clicked))
    return ndcg(page.grades[shown.ranking], page.grades, k=k)
