"""The protocol of a remedy: where a client begins a round, what it keeps for itself, and what the server remembers.

What a remedy does not define is as in federated averaging. Functions take arrays of NumPy or of JAX (`xp` is the
module), so that the plain round and the engines run the same lines. Shapes: n clients, p parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, NamedTuple

from hushrank.types import Array, NamedArrays, QuerySet


class Turn(NamedTuple):
    """Some clients in one round, and what they know before it."""

    xp: ModuleType  # numpy or jax.numpy
    params: Array  # [p] the shared ranker
    shared: NamedArrays  # what the server remembers and tells everybody
    own: NamedArrays  # [n, ...] what each of them keeps
    ids: Array  # [n]
    n_steps: Array  # [n] local steps
    rate: float  # of a local step


class Begun(NamedTuple):
    """Where clients begin."""

    starts: Array  # [n, p] each client's own ranker in this round
    shifts: Array | None = None  # [n, p] a term of every local gradient; None: none


class MeanMessage(NamedTuple):
    """What a round's messages came down to."""

    xp: ModuleType
    numbers: Array  # [p + n_extra]
    n_clients: int  # of the federation
    n_cohort: int  # of a round


class Shared(NamedTuple):
    """What a remedy makes of the training data of one fold and repeat."""

    common: QuerySet  # the queries that the server has, for a warm-up
    parts: tuple[QuerySet, ...]  # what each group of clients searches for from now on
    n_searches: int  # of the warm-up: central training on `common`, whose ranker is the first one; 0: none


@dataclass(frozen=True)  # Why no slots: remedies add class variables and fields
class Remedy:
    """Federated averaging: what others differ from."""

    has_memory: ClassVar[bool] = False  # whether clients begin elsewhere, keep something or send more than an update
    has_shifts: ClassVar[bool] = False  # whether `begin` gives shifts

    @property
    def pull(self) -> float:
        """How strongly every local step is pulled back to the round's parameters."""
        return 0.0

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the ranker's parameters that each client keeps for itself."""
        return ()

    @property
    def tells(self) -> str | None:
        """What a message says of its client beyond the update, in words; None: nothing."""
        return None

    @property
    def warning(self) -> str | None:
        """What clients give away beside their messages, in sentences; None: nothing."""
        return None

    def share(self, train: QuerySet, parts: Sequence[QuerySet], *, key: Array) -> Shared | None:
        """Before the first round; train: all queries, parts: each group's. None: nothing is shared."""
        del train, parts, key
        return None

    def among(self, n_clients: int, *, is_noisy: bool) -> Remedy:
        """The remedy as it is for so many clients; is_noisy: whether noise is added to what they send."""
        del n_clients, is_noisy
        return self

    def n_extra(self, n_params: int) -> int:
        """Numbers of a message beyond the update."""
        del n_params
        return 0

    def first_shared(self, n_params: int) -> dict[str, Array]:
        """What the server remembers before the first round, and tells everybody."""
        del n_params
        return {}

    def first_own(self, params: Array, n_clients: int) -> dict[str, Array]:
        """[n_clients, ...] what each client keeps before the first round; params [p]."""
        del params, n_clients
        return {}

    def begin(self, turn: Turn) -> Begun:
        """Where the clients begin."""
        starts = turn.xp.broadcast_to(turn.params, (len(turn.ids), len(turn.params)))
        return Begun(starts)

    def finish(self, turn: Turn, moved: Array) -> tuple[Array, dict[str, Array]]:
        """[n, p + n_extra] what they send, and what they keep, from how far they moved [n, p]."""
        return moved, dict(turn.own)

    def absorb(self, shared: NamedArrays, mean: MeanMessage) -> dict[str, Array]:
        """What the server remembers after a round."""
        del mean
        return dict(shared)

    def evidence(self, shared: NamedArrays, own: NamedArrays) -> dict[str, float]:
        """What it has found out about the clients so far, by name; own [n_clients, ...]."""
        del shared, own
        return {}

    def conclude(self, evidence: Mapping[str, Array]) -> str | None:
        """What it came to, in a sentence, from the evidence at the end of each training; None: nothing to say."""
        del evidence
        return None
