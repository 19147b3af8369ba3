"""Evolution strategies on a device (foltr-es): which lists are tried, and what their clicks say.

Only lists shown under this device's own perturbation of this round say anything about it. Lists of other rounds are
left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushrank.federation.evolution import Evolution
from hushrank.learners.es import directions
from hushrank.live.device.impressions import SORTED, Impression
from hushrank.live.device.learning import Draft, Learning, RoundProgress
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.rankers.policy import sort_ranking
from hushrank.streams import draw_bits
from hushrank.types import Array, SeedReward


@dataclass(frozen=True, slots=True)
class TrialLearning(Learning):
    """By evolution strategies, from lists that a perturbed ranker sorted."""

    exchange: Evolution

    def draft(self, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
        """Equally many lists of each direction."""
        wanted = self.agreement.interactions // len(self.exchange.signs)
        found = [
            store.find_free(policy=SORTED, oldest_round=ranker.round, limit=wanted, seed=ranker.seed, direction=sign)
            for sign in self.exchange.signs
        ]
        n = min(map(len, found))
        if ranker.seed is None or n == 0 or (n < wanted and not is_last_call):
            return None
        rewards = np.array([[self.read_reward(impression) for _, impression in lists[:n]] for lists in found])
        used = tuple(number for lists in found for number, _ in lists[:n])
        price = None if self.price is None else replace(self.price, times=len(used))
        return Draft(ranker.round, SeedReward(ranker.seed, rewards), used, price)

    def read_reward(self, impression: Impression) -> float:
        """From clicks alone: nobody knows the grades of a person's documents."""
        unknown = np.zeros(len(impression.ranking))
        return self.exchange.finite(unknown, impression.is_clicked, unknown)

    def show(self, store: Interactions, ranker: KeptRanker, features: Array) -> Impression:
        if ranker.seed is None or store.outbox.find(ranker.round) is not None:
            return self.sort_list(ranker, features, direction=None)  # the round needs no more trials
        return self.sort_list(ranker, features, direction=self.choose_direction(store, ranker))

    def show_next(
        self, ranker: KeptRanker, params: Array, features: Array, *, interaction: int, uniforms: Array
    ) -> Impression:
        """As `es_learn`: the first half of the lists by params + noise, the second by params - noise."""
        del params, uniforms
        signs = directions(self.agreement.interactions, antithetic=self.exchange.antithetic)
        return self.sort_list(ranker, features, direction=int(signs[interaction]))

    def begin(self, store: Interactions, ranker: KeptRanker) -> RoundProgress:
        return RoundProgress(store.count_shown(round=ranker.round), ranker.params)

    def advance(self, store: Interactions, ranker: KeptRanker, progress: RoundProgress) -> RoundProgress:
        del store, ranker
        return RoundProgress(progress.n_lists + 1, progress.params)

    def draw_seed(self, key: Array) -> int:
        return int(draw_bits(key, 1)[0])

    def sort_list(self, ranker: KeptRanker, features: Array, *, direction: int | None) -> Impression:
        """Sorted by the ranker, or by the ranker moved by this round's noise in a direction [foltr-es, section 3.2]."""
        trial: tuple[int | None, int | None] = (None, None)
        params = ranker.params
        if direction is not None and ranker.seed is not None:
            trial = (ranker.seed, direction)
            params = params + direction * self.exchange.perturb(self.ranker, ranker.seed)
        scores = self.ranker.score(params, features)
        ranking = sort_ranking(scores, k=self.agreement.k)
        return Impression(ranker.round, features, scores, ranking, np.zeros(len(ranking), bool), SORTED, *trial)

    def choose_direction(self, store: Interactions, ranker: KeptRanker) -> int:
        """The one with fewer lists so far, so that at any time both have nearly equally many."""
        counts = {
            sign: store.count_shown(round=ranker.round, seed=ranker.seed, direction=sign)
            for sign in self.exchange.signs
        }
        return min(counts, key=lambda sign: counts[sign])
