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

from hushrank.live.device.learning import Learning
from hushrank.live.device.named import make_learning
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.wire.agreement import parse_agreement
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class ShownList:
    """A list that was written down."""

    number: int  # of the impression, for clicks
    ranking: Array  # [k] which candidates to show, in this order


def open_home(home: Path) -> tuple[Learning, Interactions]:
    """How the federation of a client's home learns, and the home's store; close the store when done."""
    store = Interactions(home / STORE) if (home / STORE).is_file() else None
    membership = store.membership() if store is not None else None
    if store is None or membership is None:
        if store is not None:
            store.close()
        raise ValueError(f"{home} has not joined a federation: run hushrank client --home {home} --token TOKEN first.")
    return make_learning(parse_agreement(json.loads(membership.agreement))), store


def show_list(learning: Learning, store: Interactions, features: Array) -> ShownList:
    """The first page for candidates with these features [n, n_features], and its impression, not yet clicked."""
    ranker = store.newest_ranker()
    if ranker is None:
        raise ValueError(f"{store.path} holds no ranker yet: run hushrank client with this --home until it has joined.")
    features = np.asarray(features, np.float32)
    impression = learning.show(store, ranker, features)
    return ShownList(store.add(impression, is_finished=False), impression.ranking)
