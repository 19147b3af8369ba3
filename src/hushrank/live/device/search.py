"""What a search application calls: order candidates by the federation's newest ranker, and write down what was shown.

    learning, store = open_home(Path("hushrank-client"))
    shown = show_list(learning, store, features)    # before the page appears
    store.click(shown.number, position)             # at each click
    store.finish(shown.number)                      # when the person has gone on

Nothing here waits for a network: the client beside it keeps the newest ranker in the store.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushrank.learners.es import perturbation
from hushrank.live.device.impressions import SAMPLED, SORTED, Impression
from hushrank.live.device.learning import Learning, make_learning
from hushrank.live.device.store import STORE, Interactions, KeptRanker
from hushrank.live.wire.agreement import parse_agreement
from hushrank.rankers.policy import sample_ranking, sort_ranking
from hushrank.streams import ENTROPY, draw_uniform
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class ShownList:
    """A list that was written down."""

    number: int  # of the impression, for clicks
    ranking: Array  # [k] which candidates to show, in this order


def open_home(home: Path) -> tuple[Learning, Interactions]:
    """How the federation of a client's home learns, and the home's store; close the store when done."""
    store = Interactions(home / STORE)
    membership = store.membership()
    if membership is None:
        store.close()
        raise ValueError(f"{home} has not joined a federation: run hushrank client --home {home} --token TOKEN first.")
    return make_learning(parse_agreement(json.loads(membership.agreement))), store


def show_list(learning: Learning, store: Interactions, features: Array) -> ShownList:
    """The first page for candidates with these features [n, n_features], and its impression, not yet clicked."""
    ranker = store.newest_ranker()
    if ranker is None:
        raise ValueError(f"{store.path} holds no ranker yet: run hushrank client with this --home until it has joined.")
    features = np.asarray(features, np.float32)
    if learning.evolution is None:
        impression = sample_list(learning, ranker.round, ranker.params, features, draw_uniform(ENTROPY, len(features)))
    elif ranker.seed is None or store.outbox.find(ranker.round) is not None:
        impression = sort_list(learning, ranker, features, direction=None)  # the round needs no more trials
    else:
        impression = sort_list(learning, ranker, features, direction=choose_direction(learning, store, ranker))
    return ShownList(store.add(impression, is_finished=False), impression.ranking)


def sample_list(learning: Learning, round: int, params: Array, features: Array, uniforms: Array) -> Impression:
    """A Plackett-Luce list of these weights' scores: what PDGD learns from."""
    scores = learning.ranker.score(params, features)
    return _unclicked(round, features, scores, sample_ranking(scores, uniforms, k=learning.agreement.k), SAMPLED)


def sort_list(learning: Learning, ranker: KeptRanker, features: Array, *, direction: int | None) -> Impression:
    """Sorted by the ranker, or by the ranker moved by this round's noise in a direction [foltr-es, section 3.2]."""
    if direction is None or ranker.seed is None or learning.evolution is None:
        scores = learning.ranker.score(ranker.params, features)
        return _unclicked(ranker.round, features, scores, sort_ranking(scores, k=learning.agreement.k), SORTED)
    noise = perturbation(ranker.seed, len(ranker.params), sigma=learning.evolution.sigma)
    scores = learning.ranker.score(ranker.params + direction * noise, features)
    ranking = sort_ranking(scores, k=learning.agreement.k)
    return _unclicked(ranker.round, features, scores, ranking, SORTED, ranker.seed, direction)


def choose_direction(learning: Learning, store: Interactions, ranker: KeptRanker) -> int:
    """The one with fewer lists so far, so that at any time both have nearly equally many."""
    counts = {
        direction: store.count_shown(round=ranker.round, seed=ranker.seed, direction=direction)
        for direction in learning.directions
    }
    return min(counts, key=lambda direction: counts[direction])


def _unclicked(
    round: int,
    features: Array,
    scores: Array,
    ranking: Array,
    policy: str,
    seed: int | None = None,
    direction: int | None = None,
) -> Impression:
    return Impression(round, features, scores, ranking, np.zeros(len(ranking), bool), policy, seed, direction)
