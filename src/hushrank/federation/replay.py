"""Learning from what people did, instead of simulating them: a client's own logged impressions."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.data.clicklog import ClickLog
from hushrank.federation.local import Lesson, follow_lessons
from hushrank.federation.round import Federation
from hushrank.learners.logged import logged_pdgd_gradient
from hushrank.metrics.ndcg import ndcg
from hushrank.types import Array, Client, DenseUpdate


@dataclass(frozen=True, slots=True)
class Replay:
    """A `local.Study` that goes through a log."""

    log: ClickLog
    own: tuple[Array, ...]  # [n_clients] indices of each client's impressions, in order
    max_weight: float | None = None  # clip of the correction for lists that today's ranker would hardly show

    def __call__(
        self, federation: Federation, params: Array, client: Client, *, key: Array, round: int
    ) -> tuple[DenseUpdate, float]:
        """A client's next impressions, from the first again after the last.

        Who has none learns nothing, and the quality of what they saw is not known: NaN. Under protection they answer
        all the same, within the norm that weights keep to: whether a client answers must not depend on its data, and
        noise in shares adds up only if everybody sends one.
        """
        del key
        own = self.own[client.id]
        n = client.n_interactions if len(own) else 0
        numbers = [int(own[((round - 1) * n + step) % len(own)]) for step in range(n)]
        lessons = [self._remember(federation, client, number) for number in numbers]
        local, quality = follow_lessons(params, lessons, federation.steps)
        local = local if lessons else federation.steps.keep(params)
        weight = n or int(federation.answers_always)
        return DenseUpdate((local - params).astype(params.dtype), weight), quality if n else float("nan")

    def _remember(self, federation: Federation, client: Client, impression: int) -> Lesson:
        """One logged list, its clicks, and what they say about the weights of today."""

        def lesson(local: Array) -> tuple[Array, float]:
            queries, places = federation.queries_of(client), self.log.places(impression)
            rows = queries.rows(int(self.log.queries[impression]))
            features, grades = queries.features[rows], queries.grades[rows]
            seen = (self.log.shown[places], self.log.is_clicked[places], self.log.propensities[places])
            gradient = logged_pdgd_gradient(federation.ranker, local, features, *seen, max_weight=self.max_weight)
            return gradient, ndcg(grades[seen[0]], grades, k=federation.k)

        return lesson
