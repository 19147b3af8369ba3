"""The keys of a recipe that say how long, how often and with which draws it trains."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import at_least, check_seed, key


@dataclass(frozen=True, kw_only=True)
class TrainingKeys:
    """Of recipes."""

    rounds: int = key(100, "rounds of training", check=at_least(1))
    eval_every: int | None = key(
        None, "rounds between two looks at test and validation; default: a twentieth of the rounds", check=at_least(1)
    )
    repeats: int = key(1, "trainings for each user and fold, each with draws of its own", check=at_least(1))
    seed: int = key(0, "of every draw but those of a generated data set; from 0 to 2^64 - 1", check=check_seed)
