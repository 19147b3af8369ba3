"""A federation that learns by evolution strategies: the stages of `learners/es.py` in the places of a round [foltr-es].

A client's message is a seed and one or two numbers; the server needs nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar

from hushrank.attacks.false_rewards import RewardForm
from hushrank.clicks.table import ClickTable, TableUser, click_in_order
from hushrank.federation.exchange import FLOAT_BYTES, Exchange
from hushrank.federation.round import Federation
from hushrank.learners.es import (
    EsConfig,
    Perturb,
    RewardMessage,
    directions,
    es_aggregate,
    es_learn,
    perturbation,
)
from hushrank.learners.es_published import published_es_learn, published_order, published_perturbation
from hushrank.metrics.ndcg import ndcg
from hushrank.metrics.rewards import FiniteReward, finite_reward
from hushrank.privacy.disclosure import STAYS, Disclosure, as_sentence
from hushrank.privacy.protection import Exposure
from hushrank.privacy.randomised_response import RandomisedResponse, check_p, total_epsilon
from hushrank.types import Array, Client, PrivateReward, Ranker, SeedReward, User

_REWARDS = {
    "MaxRR": "how high the first clicked result stood",
    "LastRR": "how high the last clicked result stood",
    "click-through": "how many of the results were clicked",
}
VARIANTS = ("paper", "published-code")


@dataclass(frozen=True, slots=True)
class Evolution(Exchange):
    """A seed and one or two rewards: how clients of an evolution strategy try, judge and answer."""

    name: ClassVar[str] = "rewards"
    starts_at_zero: ClassVar[bool] = True  # [foltr-es] starts both rankers at zero

    reward: str = "MaxRR"
    sigma: float = 0.01  # standard deviation of the perturbations
    antithetic: bool = True
    p: float = 1.0  # probability that a reward is told as it was
    n_points: int = 11  # of the grid of a reward that is not counted in clicks
    top_grade: int = 2  # of the data; DCG needs it to know its largest value
    k: int = 10
    variant: str = "paper"  # published-code: queries and clicks are drawn with the number that makes the perturbation

    def __post_init__(self) -> None:
        check_p(self.p, len(self.finite.values))
        if self.variant not in VARIANTS:
            raise ValueError(f"variant is {self.variant!r}, must be one of {', '.join(VARIANTS)}.")
        if not self.sigma > 0:
            raise ValueError(f"sigma is {self.sigma}, must be > 0: without noise there is nothing to compare.")

    @property
    def finite(self) -> FiniteReward:
        return finite_reward(self.reward, k=self.k, n_points=self.n_points, top_grade=self.top_grade)

    @property
    def protection(self) -> RandomisedResponse:
        return _responses_of(self)

    @property
    def is_as_published(self) -> bool:
        """Whether one seed makes perturbation, queries and clicks."""
        return self.variant == "published-code"

    @property
    def why_not_compiled(self) -> str | None:
        """The published draws follow each other, so that a client's lists wait for each other."""
        return "variant=published-code of foltr-es" if self.is_as_published else None

    @property
    def signs(self) -> tuple[int, ...]:
        """Directions in which a perturbation is tried; a reward of each is sent."""
        return (1, -1) if self.antithetic else (1,)

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
        if self.is_as_published:
            click = partial(click_in_order, find_table(federation.user_of(client), self.k))
            return published_es_learn(config, params, client, click=click, key=key, round=round)
        return es_learn(config, params, client, key=key, round=round)

    def find_perturb(self, ranker: Ranker) -> Perturb:
        """How a seed becomes noise for this ranker."""
        if self.is_as_published:
            return partial(published_perturbation, order=published_order(ranker.parameters))
        return perturbation

    def perturb(self, ranker: Ranker, seed: int) -> Array:
        """[n_params] the noise that a seed stands for."""
        n_params = sum(part.size for part in ranker.parameters)
        return self.find_perturb(ranker)(seed, n_params, sigma=self.sigma)

    def privatise(self, raw: SeedReward, *, key: Array) -> PrivateReward:
        return self.protection.privatise(raw, key=key)

    def combine(
        self,
        messages: Sequence[RewardMessage],
        *,
        n_params: int,
        cohort: float = 0.0,
        key: Array | None = None,
        noise: Array | None = None,
    ) -> Array:
        """[n_params] the gradient that the messages estimate. Nothing is drawn, whatever the key and the cohort."""
        del key, cohort, noise
        return es_aggregate(messages, n_params=n_params, sigma=self.sigma)

    def equip(self, federation: Federation) -> Federation:
        return evolve(federation, self)

    def count_bytes(self, n_params: int) -> int:
        del n_params
        return FLOAT_BYTES * (1 + len(self.signs))

    def lists_at_once(self, interactions: Sequence[int]) -> int:
        return max(interactions)

    def disclose(self, exposure: Exposure) -> Disclosure:
        promise, truth = self._describe_truth(exposure)
        told = f"{_REWARDS.get(self.reward, 'how good the lists were')} ({self.reward})"
        mean = "two mean rewards" if self.antithetic else "a mean reward"
        seen = (
            f"Of every client a seed and {mean}: {told}, {truth}; and who sent them. Which list a query would have "
            "shown follows from the seed; which query it was does not."
        )
        return Disclosure(
            promise,
            (
                ("the server", seen),
                ("everybody else", "The new ranker of every round, computed from these messages."),
                ("guarantee", as_sentence(self.protection.describe_message(exposure))),
            ),
        )

    def _describe_truth(self, exposure: Exposure) -> tuple[str, str]:
        """(what is promised, how a reward is told)"""
        epsilon = self.protection.epsilon
        if math.isinf(epsilon):
            return f"No guarantee: with p = 1 every reward is told as it was. {STAYS}.", "as it was"
        rounds = exposure.rounds or 1
        total = total_epsilon(epsilon, n_interactions=exposure.interactions, rounds=rounds)
        promise = (
            f"Each search is protected on the device, against everybody, epsilon {epsilon:.4g} (replace-one). {STAYS}. "
            f"A client that answers in all {rounds:,} rounds spends {total:,.4g} in all, against everybody."
        )
        n_others = len(self.finite.values) - 1
        return promise, f"each as it was with probability {self.p:g}, else one of the {n_others} other values"


@cache
def _responses_of(evolution: Evolution) -> RandomisedResponse:
    """Why kept: a run asks in every round."""
    return RandomisedResponse(evolution.p, evolution.finite.values)


def find_table(user: User, k: int) -> ClickTable:
    """What the published order of draws needs to know of a person."""
    if not isinstance(user, TableUser):
        raise ValueError(
            "variant=published-code of foltr-es needs people with a table of click probabilities, such as perfect or "
            "pbm-1: leave variant out, or choose others."
        )
    return user.as_table(k)


def evolve(federation: Federation, evolution: Evolution) -> Federation:
    """The federation with the stages of an evolution strategy."""
    if evolution.is_as_published:
        for user in (federation.user, *(group.user for group in federation.groups if group.user is not None)):
            find_table(user, evolution.k)

    perturb = evolution.find_perturb(federation.ranker)

    def combine(messages: Sequence[RewardMessage], *, n_params: int, key: Array, round: int) -> Array:
        del key, round
        return es_aggregate(messages, n_params=n_params, sigma=evolution.sigma, perturb=perturb)

    n_params, values = sum(part.size for part in federation.ranker.parameters), evolution.finite.values
    form = RewardForm(values[0], values[-1], partial(perturb, n_params=n_params, sigma=evolution.sigma))
    stages = replace(federation, study=evolution.study, privatise=evolution.privatise, combine=combine)
    return replace(stages, reward_form=form)
