"""Generated users who search and click: made one by one, each from a seed of their own, as many as are asked for.

Words are ambiguous: the same word belongs to documents of several topics, and what a user means by it depends on that
user's interests. So a list that is the same for everybody cannot be good for everybody. The sizes stand in `shapes.py`;
the documents are made in `documents.py`, a user's searches in `users.py`.
"""

from __future__ import annotations

import dataclasses
import difflib
from functools import cached_property

from hushrank.data.shapes import change_shape, split_seed
from hushrank.personal.documents import GeneratedDocuments, make_documents
from hushrank.personal.log import Collection, ListSizes, Periods, SearchLog
from hushrank.personal.shapes import POPULATIONS, PopulationShape
from hushrank.personal.users import MOST_WORDS, make_user_log
from hushrank.streams import Purpose, seed_key, stream
from hushrank.types import Array

_ABOUT = {
    "personal-like": "generated users with ambiguous queries, BM25 lists and re-finding",
    "aol-like": "generated users as in the AOL log: clicks only, short BM25 lists, long ones in the test period",
    "commercial-like": "generated users as in an engine's log: shown lists, satisfied clicks and times on documents",
}


class GeneratedPopulation:
    """A population of one shape and seed; documents are made at first use, users whenever they are asked for."""

    is_generated = True

    def __init__(self, kind: str, shape: PopulationShape, *, seed: int = 0) -> None:
        self.kind, self.shape, self.seed = kind, shape, seed
        self._key = seed_key(seed)

    @property
    def name(self) -> str:
        """`kind:key=value,...,seed=...` with what differs from the kind: `population_named` makes the same again."""
        usual = POPULATIONS[self.kind]
        values = dataclasses.asdict(self.shape)
        changes = [f"{key}={value!r}" for key, value in values.items() if value != getattr(usual, key)]
        return f"{self.kind}:{','.join([*changes, f'seed={self.seed}'])}"

    @property
    def identity(self) -> str:
        return self.name

    @property
    def description(self) -> str:
        return f"{self.shape.n_users:,} {_ABOUT[self.kind]}"

    @property
    def n_users(self) -> int:
        return self.shape.n_users

    @property
    def periods(self) -> Periods:
        return self.shape.periods

    @property
    def list_sizes(self) -> ListSizes:
        return ListSizes(test=self.shape.n_candidates, other=self.shape.n_short)

    @property
    def n_query_words(self) -> int:
        return MOST_WORDS

    @cached_property
    def documents(self) -> GeneratedDocuments:
        """The collection with what only its maker knows: topics and quality."""
        return make_documents(self.shape, stream(self._key, Purpose.COLLECTION))

    @property
    def collection(self) -> Collection:
        return self.documents.collection

    def log_of(self, user: int) -> SearchLog:
        return self._made(user)[0]

    def topics_of(self, user: int) -> tuple[SearchLog, Array]:
        """The log, and for each search the topic that was meant: what an oracle knows and no ranker may use."""
        return self._made(user)

    def _made(self, user: int) -> tuple[SearchLog, Array]:
        if not 0 <= user < self.n_users:
            raise ValueError(f"user {user} is not in the population, users are 0 to {self.n_users - 1}.")
        return make_user_log(self.shape, self.documents, stream(self._key, Purpose.PERSON, user))


def population_named(text: str, *, seed: int = 0) -> GeneratedPopulation:
    """By name, with other sizes where asked: `personal-like` or `aol-like:n_users=1000,seed=7`. A named seed wins."""
    whole, named_seed = split_seed(text)
    name, _, changes = whole.partition(":")
    if name not in POPULATIONS:
        near = difflib.get_close_matches(name, POPULATIONS, n=3, cutoff=0.4)
        raise ValueError(f"no population is called {name!r}. Did you mean {' or '.join(near or POPULATIONS)}?")
    shape = change_shape(POPULATIONS[name], [change for change in changes.split(",") if change])
    return GeneratedPopulation(name, shape, seed=seed if named_seed is None else named_seed)


def is_population(text: str) -> bool:
    """Whether a name is that of a generated population, with or without changes."""
    return text.partition(":")[0] in POPULATIONS
