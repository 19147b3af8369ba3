"""A federation that learns by evolution strategies: the stages of `learners/es.py` in the places of a round [foltr-es].

A client's message is a seed and one or two numbers; the server needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from hushrank.federation.round import Federation
from hushrank.learners.es import EsConfig, RewardMessage, directions, es_aggregate, es_learn
from hushrank.metrics.ndcg import ndcg
from hushrank.metrics.rewards import FiniteReward, finite_reward
from hushrank.privacy.randomised_response import check_p, privatise_reward
from hushrank.streams import draw_bits
from hushrank.types import Array, Client, PrivateReward, SeedReward


@dataclass(frozen=True, slots=True)
class Evolution:
    """How clients of an evolution strategy try, judge and answer."""

    reward: str = "MaxRR"
    sigma: float = 0.01  # standard deviation of the perturbations
    antithetic: bool = True
    p: float = 1.0  # probability that a reward is told as it was
    n_points: int = 11  # of the grid of a reward that is not counted in clicks
    top_grade: int = 2  # of the data; DCG needs it to know its largest value
    k: int = 10

    def __post_init__(self) -> None:
        check_p(self.p, len(self.finite.values))
        if not self.sigma > 0:
            raise ValueError(f"sigma is {self.sigma}, must be > 0: without noise there is nothing to compare.")

    @property
    def finite(self) -> FiniteReward:
        return finite_reward(self.reward, k=self.k, n_points=self.n_points, top_grade=self.top_grade)

    def check_interactions(self, interactions: tuple[int, ...]) -> None:
        for n in interactions:
            directions(n, antithetic=self.antithetic)

    def study(
        self, federation: Federation, params: Array, client: Client, *, key: Array, round: int
    ) -> tuple[SeedReward, float]:
        """A `local.Study`."""
        config = EsConfig(
            federation.ranker,
            federation.user_of(client),
            federation.queries_of(client),
            self.finite,
            partial(ndcg, k=self.k),
            sigma=self.sigma,
            antithetic=self.antithetic,
            k=self.k,
        )
        return es_learn(config, params, client, key=key, round=round)

    def privatise(self, raw: SeedReward, *, key: Array) -> PrivateReward:
        draws = draw_bits(key, 2 * raw.rewards.size).reshape(*raw.rewards.shape, 2)
        return privatise_reward(raw, self.finite.values, p=self.p, draws=draws)

    def combine(
        self, messages: Sequence[RewardMessage], *, n_params: int, key: Array | None = None, round: int | None = None
    ) -> Array:
        """[n_params] the gradient that the messages estimate. Nothing is drawn, whatever the key and the round."""
        del key, round
        return es_aggregate(messages, n_params=n_params, sigma=self.sigma)


def evolve(federation: Federation, evolution: Evolution) -> Federation:
    """The federation with the stages of an evolution strategy."""
    return replace(
        federation,
        study=evolution.study,
        privatise=evolution.privatise,
        combine=evolution.combine,
    )
