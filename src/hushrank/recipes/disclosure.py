"""Who learns what from a training, in plain words: the box of every report.

The first sentence says what is promised. The lines below it go through those who could learn something, one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hushrank.engine.setting import Method
from hushrank.federation.evolution import Evolution
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.noisy_sum import NoisySum, Placement
from hushrank.privacy.randomised_response import describe_guarantee, epsilon_bound, total_epsilon
from hushrank.recipes.guarantee import explain_protection
from hushrank.recipes.recipe import Recipe

_STAYS = "Queries, documents and clicks stay on each client"
_MASKED = (
    "Who took part, and the sum of a round's updates. Each of them is masked: the server could read one only together "
    "with most of the other clients, or by not following the protocol."
)
_REWARDS = {
    "MaxRR": "how high the first clicked result stood",
    "LastRR": "how high the last clicked result stood",
    "click-through": "how many of the results were clicked",
}


@dataclass(frozen=True, slots=True)
class Disclosure:
    """The words of the box."""

    promise: str  # in a sentence or two
    lines: tuple[tuple[str, str], ...]  # (who, what they learn)


def who_learns(recipe: Recipe, method: Method) -> Disclosure:
    """The words for a recipe, and the mechanism it was resolved to."""
    if recipe.is_offline or recipe.is_central:
        seen = "relevance label" if recipe.is_offline else "click"
        return Disclosure(
            f"No protection: one learner sees every query, document and {seen} (the baseline to compare with).",
            (
                ("the learner", f"Every query, every document and every {seen} of everybody."),
                ("whoever gets the ranker", "Its weights. Nothing bounds what they say about a single person."),
            ),
        )
    said = _of_messages(recipe, method)
    own = ("a client", "Its own searches and clicks, which never leave it, and the ranker of every round.")
    return Disclosure(said.promise, (own, *said.lines, ("this run", _describe_run(recipe))))


def _of_messages(recipe: Recipe, method: Method) -> Disclosure:
    is_secure = method.secure_sum is not None
    if method.evolution is not None:
        return _of_rewards(recipe, method.evolution, n=max(method.population.interactions))
    if isinstance(method.protection, PaperNoise):
        return _of_published_noise(method.protection, n_params=method.n_params, is_secure=is_secure)
    if method.protection is not None:
        promise = explain_protection(recipe, method.protection, n_params=method.n_params)
        return _of_sound_noise(method.protection, promise, is_secure=is_secure)
    return _of_updates(method.population.cohort_size, is_secure=is_secure)


def _of_updates(n_clients: int, *, is_secure: bool) -> Disclosure:
    others = ("everybody else", _describe_mean(n_clients))
    if is_secure:
        return Disclosure(
            f"No guarantee in numbers, but nobody sees a single update. {_STAYS}; the server learns their sum.",
            (("the server", f"{_MASKED} The sum carries no noise: the fewer clients, the more it says."), others),
        )
    seen = (
        "Every client's update as it is, how many searches are behind it, and who sent it. Whoever also knows the "
        "documents can work out queries and clicks from it: of a linear ranker and one search nearly all."
    )
    return Disclosure(
        f"No guarantee. {_STAYS}, but the server sees every client's update as it is.", (("the server", seen), others)
    )


def _of_published_noise(noise: PaperNoise, *, n_params: int, is_secure: bool) -> Disclosure:
    seen = (
        "Every client's weights with its share of the noise, how many searches are behind them, and who sent them. "
        f"{_describe_share(noise.n_clients)}"
    )
    against = "" if is_secure else ", and none against the server"
    return Disclosure(
        f"A weaker promise than the stated epsilon {noise.epsilon:g}{against}. {_STAYS}; the sum of a round carries "
        "the published noise.",
        (
            ("the server", f"{_MASKED} The published noise is in the sum." if is_secure else seen),
            ("everybody else", f"{_describe_mean(noise.n_clients)} The noise of all shares is in it."),
            ("guarantee", _sentence(noise.describe(n_params))),
        ),
    )


def _of_sound_noise(noise: NoisySum, promise: dict[str, Any], *, is_secure: bool) -> Disclosure:
    guarantee = ("guarantee", _sentence(promise["guarantee"]))
    if noise.noise_multiplier == 0:
        seen = _MASKED if is_secure else "Every client's clipped update, without noise, and who sent it."
        others = ("everybody else", "The new ranker of every round, without noise.")
        without = f"No guarantee: updates are clipped, but carry no noise. {_STAYS}."
        return Disclosure(without, (("the server", seen), others, guarantee))
    against, seen = _describe_server(noise, is_secure=is_secure)
    slack = f" (delta {promise['delta']:g})" if promise["delta"] else ""
    return Disclosure(
        f"One client's whole history is protected over all {promise['rounds']} rounds, epsilon "
        f"{promise['epsilon']:.4g}{slack}, against {against}. {_STAYS}.",
        (
            ("the server", f"{seen} Not how often a client searched: all count as one, also who learnt nothing."),
            ("everybody else", "The new ranker of every round, with noise that hides each client's part."),
            guarantee,
        ),
    )


def _describe_server(noise: NoisySum, *, is_secure: bool) -> tuple[str, str]:
    """(against whom the noise protects, what the server sees)"""
    if noise.placement == Placement.server:
        seen = "Every client's clipped update before the noise, and who sent it: it adds the noise and must be trusted."
        return "everybody but the server", seen
    if is_secure:
        honest = f"as long as {noise.n_honest:,} clients add their noise"
        return f"everybody, the server included, {honest}", f"{_MASKED} The clients' noise is in the sum."
    seen = (
        "Every client's clipped update with its share of the noise, and who sent it. One share hides little: only the "
        "sum carries all of it."
    )
    return "everybody who sees only sums, which the server does not", seen


def _of_rewards(recipe: Recipe, evolution: Evolution, *, n: int) -> Disclosure:
    n_values = len(evolution.finite.values)
    epsilon = epsilon_bound(evolution.p, n_values)
    told = f"{_REWARDS.get(evolution.reward, 'how good the lists were')} ({evolution.reward})"
    mean = "two mean rewards" if evolution.antithetic else "a mean reward"
    if math.isinf(epsilon):
        promise, truth = f"No guarantee: with p = 1 every reward is told as it was. {_STAYS}.", "as it was"
    else:
        total = total_epsilon(epsilon, n_interactions=n, rounds=recipe.rounds)
        promise = (
            f"Each search is protected on the device, against everybody, epsilon {epsilon:.4g}. {_STAYS}. "
            f"A client that answers in all {recipe.rounds:,} rounds spends {total:,.4g} in all."
        )
        truth = f"each as it was with probability {evolution.p:g}, else one of the {n_values - 1} other values"
    seen = (
        f"Of every client a seed and {mean}: {told}, {truth}; and who sent them. Which list a query would have shown "
        "follows from the seed; which query it was does not."
    )
    return Disclosure(
        promise,
        (
            ("the server", seen),
            ("everybody else", "The new ranker of every round, computed from these messages."),
            ("guarantee", _sentence(describe_guarantee(epsilon, n_interactions=n))),
        ),
    )


def _describe_share(n: int) -> str:
    """Of the published noise; Why ten: a Gamma(1/10) number is below a hundredth in two cases of three."""
    if n < 10:
        return "A share is less than the noise that was promised."
    return f"Divided among {n:,} most shares are next to 0: a single upload is nearly as open as without noise."


def _describe_mean(n: int) -> str:
    few = " With so few, each can tell much about the others." if n < 10 else ""
    return f"The new ranker of every round: the old one, moved by the mean of {n:,} clients.{few}"


def _describe_run(recipe: Recipe) -> str:
    source = "from a click log" if recipe.log else "of people and their clicks"
    return (
        f"A simulation {source}: whoever ran it had everything. The lines above say who would learn what if every "
        "client were a device of its own."
    )


def _sentence(text: str) -> str:
    """With a capital at its beginning and a full stop at its end."""
    return text[0].upper() + text[1:].removesuffix(".") + "."
