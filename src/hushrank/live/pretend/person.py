"""A pretend person: searches with the client's own ranker, clicks as a click model does, and forgets nothing.

Each list goes through the store, and the client learns from the store after every one, so that a person killed in the
middle of a round resumes. The draws are those of `local.learn` and `learners/es.py`, by purpose,
round, client and interaction: a federation of pretend people ends with the simulator's ranker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.live.device.impressions import Impression
from hushrank.live.device.learning import Learning
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
    seen, wanted = list[float](), learning.agreement.interactions
    progress, keys = learning.begin(store, ranker), draw_keys(person, ranker.round, wanted)
    while progress.n_lists < wanted:
        interaction = store.count_shown(round=ranker.round)
        page = open_page(person, keys[interaction])
        draws = page.draws(Purpose.SHOW, len(page.features))
        shown = learning.show_next(ranker, progress.params, page.features, interaction=interaction, uniforms=draws)
        seen.append(_click_and_keep(person, store, shown, page, k=learning.agreement.k))
        progress = learning.advance(store, ranker, progress)
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
