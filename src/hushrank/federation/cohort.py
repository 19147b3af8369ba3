"""Who takes part in a round: sampled clients, how often each searches, and who never answers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hushrank.privacy.placement import Scheme
from hushrank.privacy.quorum import Quorum
from hushrank.streams import Purpose, draw_below, draw_bits, draw_uniform, fold_in, stream
from hushrank.types import Array, Client

SAMPLINGS = ("fixed", "poisson", "rotation")
_NOBODY = -1  # no client's id
_NEVER = 1e-12  # Why: a larger cohort than a program has room for is then less likely than a broken processor


@dataclass(frozen=True, slots=True)
class Population:
    """The clients of a federation and how they behave."""

    n_clients: int
    interactions: tuple[int, ...] = (4,)  # client c searches interactions[c % len] times a round
    cohort: int | None = None  # clients sampled for each round; None: all
    dropout: float = 0.0  # probability that a sampled client's update never arrives
    sampling: str = "fixed"  # exactly `cohort`; poisson: each independently, so many on average; rotation: in turn
    groups: tuple[int, ...] = (0,)  # client c belongs to group groups[c % len]
    regroup: bool = False  # whether each client behaves in each round as one of `groups`, drawn anew
    absent: tuple[int, ...] = ()  # ids of clients that left; they are drawn as ever, and their seats stay empty

    def __post_init__(self) -> None:
        if self.n_clients < 1:
            raise ValueError(f"n_clients is {self.n_clients}, must be at least 1.")
        if not self.interactions or min(self.interactions) < 1:
            raise ValueError(f"interactions is {list(self.interactions)}, must be at least 1 for every client.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}, must be from 0 to below 1.")
        if not 1 <= self.n_seats <= self.n_clients:
            raise ValueError(f"cohort is {self.cohort}, must be from 1 to n_clients, which is {self.n_clients}.")
        self._check_absent()
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling is {self.sampling!r}, must be one of {', '.join(SAMPLINGS)}.")
        if not self.groups or min(self.groups) < 0:
            raise ValueError("groups must name a group from 0 on for every client.")
        if self.sampling != "fixed" and self.cohort is None:
            raise ValueError(f"sampling={self.sampling} needs cohort, the number of clients in a round.")
        if self.is_rotation and self.n_clients * self.n_seats >= 2**31:
            raise ValueError("sampling=rotation needs n_clients times cohort below 2^31: take a smaller cohort.")

    def _check_absent(self) -> None:
        unknown = [client for client in self.absent if not 0 <= client < self.n_clients]
        if unknown:
            raise ValueError(f"client {unknown[0]} is absent, but clients are 0 to {self.n_clients - 1}.")
        if len(set(self.absent)) < len(self.absent):
            raise ValueError(f"absent is {list(self.absent)}: name each client once.")
        if self.n_present < 1:
            raise ValueError(f"all {self.n_clients} clients are absent: nobody is left to train with.")

    @property
    def is_poisson(self) -> bool:
        return self.sampling == "poisson"

    @property
    def is_rotation(self) -> bool:
        return self.sampling == "rotation"

    @property
    def separation(self) -> int:
        """Rounds from one turn of a client to its next, at least; 1 where nobody sees to it."""
        return self.n_clients // self.n_seats if self.is_rotation else 1

    @property
    def n_present(self) -> int:
        return self.n_clients - len(self.absent)

    @property
    def n_seats(self) -> int:
        """Clients drawn for a round, present or not; with poisson, on average."""
        return self.n_clients if self.cohort is None else self.cohort

    @property
    def draws_everybody(self) -> bool:
        return self.n_seats == self.n_clients

    @property
    def cohort_size(self) -> int:
        """Clients in a round, which sound privacy divides by: everybody who is there, or the number drawn."""
        return self.n_present if self.draws_everybody else self.n_seats

    @property
    def sampling_rate(self) -> float:
        """Probability that a client is drawn for a round."""
        return self.n_seats / self.n_clients

    @property
    def scheme(self) -> Scheme:
        """As the accountants call the way in which clients are drawn."""
        if self.is_poisson:
            return Scheme.poisson
        if self.draws_everybody:
            return Scheme.everybody
        return Scheme.rotation if self.is_rotation else Scheme.fixed

    @property
    def is_complete(self) -> bool:
        """Whether everybody who is there takes part in every round and always answers."""
        return self.draws_everybody and self.dropout == 0

    @property
    def n_groups(self) -> int:
        return max(self.groups) + 1

    @property
    def threshold(self) -> int:
        """A poisson client takes part when its 32-bit word is below. Why rounded down: never more often than said."""
        return self.n_seats * 2**32 // self.n_clients

    @property
    def most_sampled(self) -> int:
        """Clients of the largest cohort; with poisson, a number that is exceeded less than once in 10^12 rounds.

        P(X > m) <= e^(-n KL((m + 1) / n, q)) for X clients of n, each with probability q, by Chernoff's bound.
        """
        n, q, least = self.n_present, self.sampling_rate, min(self.cohort_size, self.n_present)
        if not self.is_poisson:
            return least

        def is_enough(m: int) -> bool:
            return m == n or n * _divergence((m + 1) / n, q) > -math.log(_NEVER)

        return bisect_left(range(n + 1), True, lo=least, key=is_enough)


def sample_cohort(population: Population, key: Array, round: int) -> list[Client]:
    """The clients of one round, by id."""
    ids = sample_ids(population, key, round)
    groups = draw_groups(population, key, round, ids)
    each = zip(ids.tolist(), count_interactions(population, ids).tolist(), groups, strict=True)
    return [Client(id, n, int(group)) for id, n, group in each]


def sample_ids(population: Population, key: Array, round: int) -> Array:
    """[n] ids in ascending order: the clients with the smallest draws, or with poisson those whose draw is small.

    Rotation: in the order of draws made once, as many as there are after those of the round before, from the last on to
    the first.
    """
    ids = np.flatnonzero(cohort_mask(population, key, round))
    if population.is_poisson:
        check_drawn(population, len(ids))
    return ids


def cohort_mask(population: Population, key: Array, round: int, *, missing: int = _NOBODY) -> Array:
    """[..., n_clients] who is in a round, for one key or many [..., 2]. missing: who is not there to be drawn, so that
    another one may take the place."""
    drawn = draw_seats(population, key, round, missing=missing)
    return drawn & is_present(population) if population.absent else drawn


def is_present(population: Population) -> Array:
    """[n_clients] who has not left."""
    return ~np.isin(np.arange(population.n_clients), population.absent)


def draw_seats(population: Population, key: Array, round: int, *, missing: int = _NOBODY) -> Array:
    """[..., n_clients] who is drawn for a round, those that left included."""
    ids, shape = np.arange(population.n_clients), (*key.shape[:-1], population.n_clients)
    if population.draws_everybody:
        return np.broadcast_to(ids != missing, shape)
    number = 0 if population.is_rotation else round
    draws = draw_bits(fold_in(stream(key, Purpose.COHORT, number)[..., None, :], ids), 1)[..., 0]
    if population.is_poisson:
        return np.asarray((draws < population.threshold) & (ids != missing))
    order = np.argsort(draws, axis=-1, kind="stable")
    if missing != _NOBODY:
        order = order[order != missing].reshape(*shape[:-1], -1)
    first = (round - 1) * population.n_seats if population.is_rotation else 0
    places = (first + np.arange(population.n_seats)) % order.shape[-1]
    mask = np.zeros(shape, bool)
    np.put_along_axis(mask, order[..., places], True, axis=-1)
    return mask


def count_lost(population: Population, quorum: Quorum, key: Array, rounds: Iterable[int]) -> int:
    """Of these rounds, those in which too few answer."""
    lost = 0
    for round in rounds:
        asked = sample_ids(population, key, round)
        lost += int(np.sum(answer_mask(population, key, round, asked)) < quorum.needed(len(asked)))
    return lost


def check_drawn(population: Population, n_drawn: int) -> None:
    if n_drawn > population.most_sampled:
        raise ValueError(
            f"{n_drawn} clients were drawn for a round, more than there is room for ({population.most_sampled}), which "
            "happens less than once in 10^12 rounds: take another seed."
        )


def count_interactions(population: Population, ids: Array) -> Array:
    """[n] how often each client searches in a round."""
    return np.asarray(population.interactions)[ids % len(population.interactions)]


def find_groups(population: Population, ids: Array) -> Array:
    """[n] the group that each client belongs to."""
    return np.asarray(population.groups)[ids % len(population.groups)]


def draw_groups(population: Population, key: Array, round: int, ids: Array) -> Array:
    """[n] the group as which each client behaves in a round: its own, or one drawn anew."""
    if not population.regroup:
        return find_groups(population, ids)
    places = draw_below(fold_in(stream(key, Purpose.REGROUP, round), ids), len(population.groups), 1)[:, 0]
    return np.asarray(population.groups)[places]


def answers(population: Population, key: Array, round: int, client: Client) -> bool:
    """Whether this client's update reaches the server."""
    return bool(answer_mask(population, key, round, np.array([client.id]))[0])


def answer_mask(population: Population, key: Array, round: int, ids: Array) -> Array:
    """[n] whose update reaches the server."""
    if population.dropout == 0:
        return np.ones(len(ids), dtype=bool)
    draws = draw_uniform(fold_in(stream(key, Purpose.DROPOUT, round), ids), 1)[:, 0]
    return np.asarray(draws >= population.dropout)


def _divergence(p: float, q: float) -> float:
    """Kullback and Leibler's, of two coins: p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))."""
    return p * math.log(p / q) + (0.0 if p == 1 else (1 - p) * math.log((1 - p) / (1 - q)))
