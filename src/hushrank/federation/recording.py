"""Who saw and clicked what in a simulated training: a click log of all clients, recorded while they learn.

The training stays as it is, bit for bit. The log is what `replay.py` reads: a client could learn from it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hushrank.data.clicklog import ClickLog
from hushrank.federation.local import learn, pick_query
from hushrank.federation.round import Federation
from hushrank.learners.logged import log_propensities
from hushrank.learners.named import NamedLearner
from hushrank.types import Array, Client, DenseUpdate, Ranker


@dataclass(slots=True)
class Recording:
    """A `local.Study` that does what `learn` does and keeps what the clients saw and clicked."""

    n_clients: int
    _seen: list[tuple[int, int, Array, Array, Array]] = field(default_factory=list)  # client, query, and per place

    def __call__(
        self, federation: Federation, params: Array, client: Client, *, key: Array, round: int
    ) -> tuple[DenseUpdate, float]:
        queries = federation.queries_of(client)
        picked = (
            pick_query(queries, client, key=key, round=round, interaction=interaction)
            for interaction in range(client.n_interactions)
        )
        learner = NamedLearner(federation.learner.name, _Listener(federation.learner, client.id, picked, self._seen))
        return learn(replace(federation, learner=learner), params, client, key=key, round=round)

    def as_log(self) -> ClickLog:
        """All impressions so far, in the order in which the plain round made them.

        A client's index is its id; a query's index is that in the client's own queries (`Federation.queries_of`).
        """
        if not self._seen:
            raise ValueError("nothing was recorded: run at least one round of the federation that `record` returned.")
        clients, queries, shown, is_clicked, propensities = zip(*self._seen, strict=True)
        return ClickLog(
            np.array(clients, np.int64),
            np.array(queries, np.int64),
            np.concatenate([[0], np.cumsum([len(places) for places in shown])]).astype(np.int64),
            np.concatenate(shown).astype(np.int64),
            np.concatenate(is_clicked),
            np.concatenate(propensities),
            tuple(map(str, range(self.n_clients))),
        )


@dataclass(frozen=True, slots=True)
class _Listener:
    """A `Gradient` that gives the learner's own, and notes the interaction."""

    learner: NamedLearner
    client: int
    picked: Iterator[int]  # the query of each interaction
    seen: list[tuple[int, int, Array, Array, Array]]

    def __call__(
        self, ranker: Ranker, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array
    ) -> Array:
        noted = (ranking.copy(), np.array(is_clicked, bool), log_propensities(scores, ranking))
        self.seen.append((self.client, next(self.picked), *noted))
        return self.learner.gradient(ranker, params, features, scores, ranking, is_clicked)


def record(federation: Federation) -> tuple[Federation, Recording]:
    """The same federation, and where the impressions of its rounds will be."""
    if federation.study is not learn:
        raise ValueError(
            "only simulated searches from which clients learn by gradients are recorded: take a federation without a "
            "click log and without evolution strategies."
        )
    recording = Recording(federation.population.n_clients)
    return replace(federation, study=recording), recording
