"""The nouns that cross rooms: what travels between documents and a new ranker.

Shapes: the last axis is the list; `n_documents` counts those of a whole query set, a query's own are a slice of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
NamedArrays: TypeAlias = Mapping[str, Array]  # what an optimiser, a rule or a client remembers, or what a round showed


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries with their candidate documents, stored end to end."""

    features: Array  # [n_documents, n_features] float32
    grades: Array  # [n_documents] uint8, relevance from 0 (not relevant) upwards
    starts: Array  # [n_queries + 1] int64; query q owns the rows starts[q]:starts[q + 1]
    query_ids: tuple[str, ...]  # [n_queries] as written in the file
    document_ids: tuple[str, ...] | None = None  # [n_documents], only where asked for
    intents: Array | None = (
        None  # [n_intents, n_documents] uint8, grades by what people look for; `grades`: the highest
    )

    @property
    def n_queries(self) -> int:
        return len(self.starts) - 1

    @property
    def n_documents(self) -> int:
        return len(self.grades)

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_intents(self) -> int:
        """0 where the grades are the same for everybody."""
        return 0 if self.intents is None else len(self.intents)

    @property
    def lengths(self) -> Array:
        """[n_queries] documents per query."""
        return np.diff(self.starts)

    def rows(self, query: int) -> slice:
        """Where the documents of one query stand."""
        return slice(int(self.starts[query]), int(self.starts[query + 1]))


@dataclass(frozen=True, slots=True)
class Fold:
    """One division of a data set: learn on train, choose on vali, report on test."""

    number: int  # 1, 2, ...; 1 for a data set with a single division
    train: QuerySet
    vali: QuerySet
    test: QuerySet


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set as a run uses it: loaded, normalised, divided."""

    name: str  # catalogue name, shape name, or the directory's name
    folds: tuple[Fold, ...]
    normalise: str  # the normalisation that was applied: none, query-minmax or standard
    fingerprint: str  # hex digest of the content and of the options; equal digests, equal arrays

    @property
    def n_features(self) -> int:
        return self.folds[0].train.n_features

    @property
    def n_grades(self) -> int:
        """One more than the highest grade anywhere in the set."""
        return 1 + max(int(s.grades.max()) for f in self.folds for s in (f.train, f.vali, f.test))


class Notice(NamedTuple):
    """Something about data or a run that its owner should know. It holds counts and settings, no query or click."""

    name: str  # short, for scripts
    sentence: str  # what was found
    advice: str  # what to do
    kind: str = "warning"  # or note: worth knowing, nothing to do

    @property
    def line(self) -> str:
        return f"{self.kind}: {self.sentence} {self.advice}"


@dataclass(frozen=True, slots=True)
class Client:
    """One person's device in one round."""

    id: int  # stable for the client's life; never its place in a cohort
    n_interactions: int  # searches made in this round
    group: int = 0  # whose queries, labels and way of clicking it has


@dataclass(frozen=True, slots=True)
class DenseUpdate:
    """What one client learnt in one round: a change to the shared parameters. Never leaves the device as it is."""

    delta: Array  # [n_params] new minus old
    n_interactions: int  # weight in the mean; 0 means "nothing learnt, ignore me"


@dataclass(frozen=True, slots=True)
class PrivateUpdate:
    """What may leave a device. Only `hushrank.privacy` makes one (a test reads the source and says so)."""

    delta: Array  # [n_params]
    weight: float  # in the weighted mean
    guarantee: str  # in words: what an observer of this message can and cannot learn


@dataclass(frozen=True, slots=True)
class ForgedUpdate:
    """What a malicious client sends in place of its update: no mechanism made it, and it promises nothing."""

    delta: Array  # [n_params]
    weight: float  # in the weighted mean


@dataclass(frozen=True, slots=True)
class ForgedReward:
    """What a malicious client of an evolution strategy sends in place of its seed and rewards."""

    seed: int  # 32-bit word
    rewards: tuple[float, ...]  # as many as an honest message has
    weight: ClassVar[float] = 1.0


@dataclass(frozen=True, slots=True)
class SeedReward:
    """What one client of an evolution strategy saw in one round. Never leaves the device as it is."""

    seed: int  # 32-bit word from which the perturbation is rebuilt
    rewards: Array  # [n_directions, n] float64: first by params + noise, second (if any) by params - noise


@dataclass(frozen=True, slots=True)
class PrivateReward:
    """What may leave the device of an evolution strategy's client. Only `hushrank.privacy` makes one (tested)."""

    seed: int  # 32-bit word
    rewards: tuple[float, ...]  # one or two float32 numbers: the mean privatised reward of each direction
    guarantee: str  # in words: what an observer of this message can and cannot learn

    @property
    def weight(self) -> float:
        """Every message counts alike."""
        return 1.0


@dataclass(frozen=True, slots=True)
class PrivateQueries:
    """What may leave a device when its person searches. Only `hushrank.privacy` makes one (tested)."""

    texts: tuple[str, ...]  # in the order in which they are sent; which of them is the person's is not said
    pauses_s: tuple[float, ...]  # before each of them, after the one before was sent
    guarantee: str  # in words: what the search engine can and cannot learn


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named part of a ranker's flat vector."""

    name: str
    shape: tuple[int, ...]
    is_personal: bool = False  # each client keeps its own, which is never part of an update

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Gradient(Protocol):
    """How a learner reads one interaction: the direction in which the parameters should move."""

    def __call__(
        self, ranker: Ranker, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array
    ) -> Array:
        """[n_params] from every candidate's features and scores, the list shown (indices) and the clicks on it."""


class Reward(Protocol):
    """How well one list served one person: what an evolution strategy makes larger."""

    def __call__(self, ranked_grades: Array, is_clicked: Array, all_grades: Array) -> float:
        """From the grades [k] of the shown list, the clicks [k] on it, and the grades of all the query's documents."""


class Weighted(Protocol):
    """What a server needs of a dense message: a `PrivateUpdate`, or what was read from the wire."""

    @property
    def delta(self) -> Array:
        """[n_params]"""

    @property
    def weight(self) -> float:
        """In the weighted mean."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """All updates of a round, as a server has them before it makes one of them."""

    updates: Array  # [n_clients, n_params]
    weights: Array  # [n_clients] in the weighted mean
    ids: Array  # [n_clients] who sent them: numbers that stay the same from round to round
    params: Array  # [n_params] the ranker from which everybody began
    round: int
    memory: NamedArrays = field(default_factory=dict)  # what the rule remembers; nothing in the first round


class Combined(NamedTuple):
    """What a rule makes of a round."""

    update: Array  # [n_params]
    evidence: Mapping[str, float] = MappingProxyType({})  # named numbers, for the report
    memory: NamedArrays = MappingProxyType({})  # what the rule remembers from now on
    trust: Array | None = None  # [n_clients] how much of each update counted, from 0 to 1; None: the rule cannot say


class Rule(Protocol):
    """How a server makes one update of many, all of them at once. It may remember arrays from round to round."""

    def __call__(self, gathered: Gathered) -> Combined:
        """One update, and what to remember."""


class Knowledge(StrEnum):
    """What malicious clients know when they decide what to send."""

    nothing = "nothing"  # the shared ranker, which everybody has
    own = "own"  # and what they themselves learnt
    everybody = "everybody"  # and what all others send

    @classmethod
    def _missing_(cls, value: object) -> Knowledge | None:
        """As recipes say it [thesis, Section 5.2.1]."""
        return {"partial": cls.own, "full": cls.everybody}.get(str(value))


@dataclass(frozen=True, slots=True)
class AttackView:
    """What the malicious clients of a round see, as far as the attack's knowledge goes."""

    params: Array  # [n_params] the shared ranker
    round: int
    n_clients: int  # whose updates arrive, malicious ones included
    n_malicious: int
    own: Array | None  # [n_malicious, n_params] what they would have sent; None: not known
    others: Array | None  # [n_clients - n_malicious, n_params] what everybody else sends; None: not known
    # [n, n_params] -> [n_params] what the server would make of these; theirs come first, then the others'. None: the
    # attack is asked outside of a federation.
    try_rule: Callable[[Array], Array] | None = None


class Attack(Protocol):
    """What malicious clients send instead of what they learnt."""

    @property
    def knowledge(self) -> str:
        """What the attack may see: a `Knowledge`, or partial or full."""

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        """[n_malicious, n_params] what they send."""


class Ranker(Protocol):
    """A scoring function of one flat vector. Plain rankers take NumPy arrays, fast ones JAX arrays."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parts of the flat vector, in order."""

    def initial(self, normals: Array) -> Array:
        """[n_params] first parameters from [n_params] standard normal draws."""

    def score(self, params: Array, features: Array) -> Array:
        """[n] scores of [n, n_features] documents."""

    def score_gradient(self, params: Array, features: Array, weights: Array) -> Array:
        """[n_params] gradient of sum(weights * score(params, features))."""


class User(Protocol):
    """A simulated person: clicks on a shown list."""

    def __call__(self, grades: Array, click_draws: Array, stop_draws: Array) -> Array:
        """[k] True where clicked, from the grades of the shown documents and uniform draws of the same shape."""
