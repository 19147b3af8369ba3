"""Under which ids a search engine has users' searches, and what else stands in the log of an id [fedps, section 4.1].

    own ids       each user's searches under an id of the user's own
    group-user    100 random users share an id: their searches stand in one log, in the order of time
    cover-query   an id of the user's own, with cover queries beside the user's

A personalised model that is trained on such logs knows an id, not a user: history, features and personal vectors are
made from the whole log of the id. What a cover leaves in a log is said in `polluted.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from hushrank.personal.bm25 import Bm25Index
from hushrank.personal.log import SearchLog, SearchPopulation
from hushrank.personal.queries.polluted import join_logs, mix_covers
from hushrank.types import Array

NOBODY = -1  # whose search a cover is


class IdLog(NamedTuple):
    """What an engine has under one id, and what only we know of it."""

    log: SearchLog
    owners: Array  # [n] int64, whose search each is


class SearchIds(Protocol):
    """Of all users of a population."""

    @property
    def ids(self) -> Array:
        """[n_users] int64: the id of each user, 0, 1, 2, ..., none without a user."""

    @property
    def room(self) -> int:
        """How many times as many queries as one user's the log of an id may hold."""

    def log_of(self, id: int) -> IdLog:
        """Everything under one id, in all periods."""


@dataclass(frozen=True)
class OwnIds:
    """Nothing is hidden."""

    population: SearchPopulation
    room: int = 1

    @property
    def ids(self) -> Array:
        return np.arange(self.population.n_users)

    def log_of(self, id: int) -> IdLog:
        log = self.population.log_of(id)
        return IdLog(log, np.full(log.n_searches, id))


@dataclass(frozen=True)
class SharedIds:
    """Users of one group share an id; ids: of `divide_users`."""

    population: SearchPopulation
    ids: Array

    @property
    def room(self) -> int:
        """As many as the largest group has users."""
        return int(np.bincount(self.ids).max())

    def log_of(self, id: int) -> IdLog:
        members = np.flatnonzero(self.ids == id)
        log, owners = join_logs([self.population.log_of(int(user)) for user in members])
        return IdLog(log, members[owners])


@dataclass(frozen=True)
class CoveredIds:
    """Covers stand beside the user's own queries."""

    population: SearchPopulation
    index: Bm25Index
    cover: Callable[[int, Array], Array]  # (user, queries [n, L]) -> covers [n, k, L]
    n_covers: int  # k

    @property
    def room(self) -> int:
        return 1 + self.n_covers

    @property
    def ids(self) -> Array:
        return np.arange(self.population.n_users)

    def log_of(self, id: int) -> IdLog:
        log = self.population.log_of(id)
        mixed, is_own = mix_covers(log, self.cover(id, log.queries), self.index)
        return IdLog(mixed, np.where(is_own, id, NOBODY))
