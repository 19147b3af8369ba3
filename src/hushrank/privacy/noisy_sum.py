"""A sum of clipped updates behind noise: what the sound mechanisms share.

Every sampled client sends one message of weight 1, a zero update if it learnt nothing, because how often somebody
searched, and silence, are data too. The noise is added by the server, once, or by the clients, each a share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum

import numpy as np

from hushrank.types import Array, PrivateUpdate


class Placement(StrEnum):
    """Who adds the noise."""

    server = "server"
    clients = "clients"


class Adjacency(StrEnum):
    """Which two federations must look alike."""

    add_remove = "add-remove"
    replace_one = "replace-one"

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        raise ValueError(f"adjacency is {value!r}, must be one of {', '.join(cls)}.")

    @property
    def factor(self) -> int:
        """How many clip norms one client can move a sum."""
        return 1 if self is Adjacency.add_remove else 2

    @property
    def words(self) -> str:
        return "adding or removing one client" if self is Adjacency.add_remove else "replacing one client by another"


def average_sum(messages: Iterable[PrivateUpdate], *, n_params: int, noise: Array | float, cohort: float) -> Array:
    """[n_params] (sum of updates + noise) / cohort.

    Why the *expected* cohort size, a constant, and not the number that answered: that number is data, and dividing by
    it would let one client change everybody's share, which the noise was not measured for.
    """
    if not 0 < cohort < math.inf:
        raise ValueError(f"the expected cohort is {cohort}, must be above 0.")
    total = np.zeros(n_params)
    for message in messages:
        total = total + message.delta
    return (total + noise) / cohort


def check_answers(n_answered: int, n_shares: int) -> None:
    """Refuse a sum with less noise than was promised."""
    if n_answered < n_shares:
        raise ValueError(
            f"{n_answered} clients answered, but the noise was divided among {n_shares}: the sum would carry less "
            "noise than promised. Wait for more clients, or set n_honest lower, which makes each add more."
        )


def check_mechanism(noise_multiplier: float, placement: str, n_honest: int | None) -> None:
    """Refuse at the door what no sound mechanism can be."""
    if not 0 <= noise_multiplier < math.inf:
        raise ValueError(f"noise_multiplier is {noise_multiplier}, must be at least 0 (0: clipped, but no noise).")
    if placement not in tuple(Placement):
        raise ValueError(f"placement is {placement!r}, must be one of {', '.join(Placement)}.")
    if placement == Placement.clients and (n_honest is None or n_honest < 1):
        raise ValueError(f"n_honest is {n_honest}, must be at least 1: the noise is divided among honest clients.")
    if placement == Placement.server and n_honest is not None:
        raise ValueError(f"n_honest is {n_honest}, but the server adds the noise: leave it out.")


def describe_message(*, noise: str, norm: str, noise_multiplier: float, placement: str, n_honest: int | None) -> str:
    """What one message of a sound mechanism guarantees, and what it does not."""
    if noise_multiplier == 0:
        return f"no guarantee: the update has {norm}, but carries no noise, and none is added to the sum"
    if placement == Placement.server:
        return (
            f"no guarantee against whoever sees this message, which is the update with {norm} and carries no noise; "
            f"the server adds {noise} to the sum of a round, so everybody else learns only the noisy sum: each round "
            "spends budget, and the accountant says how much"
        )
    return (
        f"little guarantee against whoever sees this message alone: it is the update with {norm} and a share of noise; "
        f"{n_honest} honest clients' shares make {noise} in the sum of a round, so whoever sees only sums (a secure "
        "sum hides the rest) is bound by it: each round spends budget, and the accountant says how much"
    )
