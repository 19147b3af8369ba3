"""Learning from what people did, instead of simulating them: a client's own logged impressions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.data.clicklog import ClickLog
from hushrank.federation.round import Federation
from hushrank.learners.logged import logged_pdgd_gradient
from hushrank.metrics.ndcg import ndcg
from hushrank.types import Array, Client, DenseUpdate


@dataclass(frozen=True, slots=True)
class Replay:
    """A `round.Study` that goes through a log."""

    log: ClickLog
    own: tuple[Array, ...]  # [n_clients] indices of each client's impressions, in order
    max_weight: float | None = None  # clip of the correction for lists that today's ranker would hardly show

    def __call__(
        self, federation: Federation, params: Array, client: Client, *, key: Array, round: int
    ) -> tuple[DenseUpdate, float]:
        """A client's next impressions, from the first again after the last; twin of `round.learn`.

        Who has none learns nothing, and the quality of what they saw is not known: NaN.
        """
        del key
        own = self.own[client.id]
        n = client.n_interactions if len(own) else 0
        local, gradient, quality = params, np.zeros_like(params), 0.0 if n else float("nan")
        for step in range(n):
            impression = int(own[((round - 1) * n + step) % len(own)])
            rows, places = federation.queries.rows(int(self.log.queries[impression])), self.log.places(impression)
            features, grades = federation.queries.features[rows], federation.queries.grades[rows]
            seen = (self.log.shown[places], self.log.is_clicked[places], self.log.propensities[places])
            gradient = gradient + logged_pdgd_gradient(
                federation.ranker, local, features, *seen, max_weight=self.max_weight
            )
            if (step + 1) % federation.batch == 0:
                local, gradient = local + federation.learning_rate * gradient, np.zeros_like(params)
            quality += ndcg(grades[seen[0]], grades, k=federation.k) / n
        return DenseUpdate((local - params).astype(params.dtype), n), quality
