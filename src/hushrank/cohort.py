"""Who takes part in a round: sampled clients, how often each searches, and who never answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.streams import Purpose, draw_bits, draw_uniform, fold_in, stream
from hushrank.types import Array, Client


@dataclass(frozen=True, slots=True)
class Population:
    """The clients of a federation and how they behave."""

    n_clients: int
    interactions: tuple[int, ...] = (4,)  # client c searches interactions[c % len] times a round
    cohort: int | None = None  # clients sampled for each round; None: all
    dropout: float = 0.0  # probability that a sampled client's update never arrives

    def __post_init__(self) -> None:
        if self.n_clients < 1:
            raise ValueError(f"n_clients is {self.n_clients}, must be at least 1.")
        if not self.interactions or min(self.interactions) < 1:
            raise ValueError(f"interactions is {list(self.interactions)}, must be at least 1 for every client.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}, must be from 0 to below 1.")
        if not 1 <= self.cohort_size <= self.n_clients:
            raise ValueError(f"cohort is {self.cohort}, must be from 1 to n_clients, which is {self.n_clients}.")

    @property
    def cohort_size(self) -> int:
        return self.n_clients if self.cohort is None else self.cohort


def sample_cohort(population: Population, key: Array, round: int) -> list[Client]:
    """The clients of one round, by id."""
    ids = sample_ids(population, key, round)
    return [Client(int(i), int(n)) for i, n in zip(ids, count_interactions(population, ids), strict=True)]


def sample_ids(population: Population, key: Array, round: int) -> Array:
    """[cohort_size] ids in ascending order: the clients with the smallest draws, without replacement."""
    ids = np.arange(population.n_clients)
    if population.cohort_size == population.n_clients:
        return ids
    draws = draw_bits(fold_in(stream(key, Purpose.COHORT, round), ids), 1)[:, 0]
    return np.sort(np.argsort(draws, kind="stable")[: population.cohort_size])


def count_interactions(population: Population, ids: Array) -> Array:
    """[n] how often each client searches in a round."""
    return np.asarray(population.interactions)[ids % len(population.interactions)]


def answers(population: Population, key: Array, round: int, client: Client) -> bool:
    """Whether this client's update reaches the server."""
    return bool(answer_mask(population, key, round, np.array([client.id]))[0])


def answer_mask(population: Population, key: Array, round: int, ids: Array) -> Array:
    """[n] whose update reaches the server."""
    if population.dropout == 0:
        return np.ones(len(ids), dtype=bool)
    draws = draw_uniform(fold_in(stream(key, Purpose.DROPOUT, round), ids), 1)[:, 0]
    return np.asarray(draws >= population.dropout)
