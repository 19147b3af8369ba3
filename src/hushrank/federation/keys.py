"""The keys that say who takes part, and how evolution strategies try and answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hushrank.federation.cohort import SAMPLINGS, Population
from hushrank.federation.evolution import Evolution
from hushrank.keys import above_zero, key, keys_of
from hushrank.metrics.rewards import REWARD_NAMES

EVOLUTION = "foltr-es"  # the method that sends seeds and rewards
_TRUTH = {"none": 1.0, "paper": 0.9}  # its privacy modes -> the probability p of telling a reward as it was


@dataclass(frozen=True, kw_only=True)
class PopulationKeys:
    """Of recipes; `Population` refuses numbers that cannot be."""

    n_clients: int = key(1000, "clients of the federation; 1 for pdgd")
    interactions: int | tuple[int, ...] = key(
        4, "per client and round; a list: client c gets the entry c modulo its length"
    )
    cohort: int | None = key(None, "clients sampled for each round; default: all")
    sampling: str = key(
        "fixed",
        "cohort is a fixed number; with poisson an average: each client is sampled independently; rotation: clients "
        "take turns, and rest in between",
        choices=SAMPLINGS,
    )
    dropout: float = key(0.0, "probability that a sampled client's update never arrives")


def population_of(keys: PopulationKeys) -> Population:
    """Who takes part; refuses numbers that cannot be."""
    interactions = keys.interactions if isinstance(keys.interactions, tuple) else (keys.interactions,)
    return Population(keys.n_clients, interactions, cohort=keys.cohort, dropout=keys.dropout, sampling=keys.sampling)


@dataclass(frozen=True, kw_only=True)
class RewardKeys:
    """Of recipes and agreements: evolution strategies."""

    reward: str | None = key(
        None,
        "foltr-es: what is made larger; MaxRR (default), LastRR, click-through, nDCG or DCG",
        choices=REWARD_NAMES,
        only_for=(EVOLUTION,),
        is_needed=True,
    )
    sigma: float | None = key(
        None,
        "foltr-es: standard deviation of the perturbations; default .01",
        check=above_zero,
        only_for=(EVOLUTION,),
        is_needed=True,
    )
    antithetic: bool | None = key(
        None,
        "foltr-es: try each perturbation in both directions; default true",
        only_for=(EVOLUTION,),
        is_needed=True,
    )
    p: float | None = key(
        None,
        f"foltr-es: probability that a reward is told as it was; default {_TRUTH['paper']:g}, 1 without privacy",
        only_for=(EVOLUTION,),
        is_needed=True,
    )


@dataclass(frozen=True, kw_only=True)
class EvolutionKeys(RewardKeys):
    """Of recipes: with grades there are rewards that have to be rounded."""

    reward_points: int | None = key(
        None, "foltr-es: values that nDCG and DCG are rounded to; default 11", only_for=(EVOLUTION,)
    )


def check_no_evolution(keys: EvolutionKeys, *, method: str) -> None:
    """Refuse the keys of evolution strategies in another method."""
    given = [name for name in keys_of(EvolutionKeys) if getattr(keys, name) is not None]
    if given:
        raise ValueError(f"{given[0]} is for recipe {EVOLUTION}; {method} does not have it.")


def default_p(privacy: str) -> float:
    """The probability that a reward is told as it was, where nobody chose it."""
    return _TRUTH.get(privacy, 1.0)


def check_told(p: float | None, privacy: str) -> None:
    """Rewards are private by p; no other mechanism is for them."""
    if privacy not in _TRUTH:
        raise ValueError(
            f"{EVOLUTION} is private per interaction by p (privacy=paper); privacy={privacy} is for fpdgd."
        )
    if _TRUTH[privacy] == 1 and p not in (None, 1):
        raise ValueError(f"p is {p}, but privacy={privacy} tells every reward as it was: leave one of them out.")


def evolution_of(keys: EvolutionKeys, *, privacy: str, variant: str = "paper", top_grade: int = 2) -> Evolution:
    """How the clients of a foltr-es recipe try, judge and answer; refuses what cannot be."""
    check_told(keys.p, privacy)
    chosen: dict[str, Any] = {name: getattr(keys, name) for name in ("reward", "sigma", "antithetic")}
    chosen["n_points"] = keys.reward_points
    chosen["p"] = default_p(privacy) if keys.p is None else keys.p
    given = {name: value for name, value in chosen.items() if value is not None}
    return Evolution(top_grade=top_grade, variant=variant, **given)
