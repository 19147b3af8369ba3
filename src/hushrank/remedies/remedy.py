"""The protocol of a remedy: where a client begins a round, what it keeps for itself, and what the server remembers.

What a remedy does not define is as in federated averaging. Every function takes arrays of NumPy or of JAX (`xp` is the
module), so that the plain round and the engines run the same lines. Shapes: n clients, p parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from hushrank.types import Array, NamedArrays, QuerySet


class Who(NamedTuple):
    """The clients of a block in one round."""

    ids: Any  # [n]
    n_steps: Any  # [n] local steps
    round: Any
    rate: float  # of a local step


class Begun(NamedTuple):
    """Where clients begin."""

    starts: Any  # [n, p] each client's own ranker in this round
    shifts: Any = None  # [n, p] a term of every local gradient; None: none


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
    def warning(self) -> str | None:
        """What clients give away beside their messages, in sentences; None: nothing."""
        return None

    def share(self, train: QuerySet, parts: Sequence[QuerySet], *, key: Array) -> Shared | None:
        """Before the first round; train: all queries, parts: each group's. None: nothing is shared."""
        del train, parts, key
        return None

    def among(self, n_clients: int) -> Remedy:
        """The remedy as it is for so many clients."""
        del n_clients
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

    def begin(self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who) -> Begun:
        """Where the clients begin; own [n, ...] is what they keep."""
        raise NotImplementedError

    def finish(
        self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who, begun: Begun, moved: Any
    ) -> tuple[Any, dict[str, Any]]:
        """[n, p + n_extra] what they send, and what they keep, from how far they moved [n, p]."""
        raise NotImplementedError

    def absorb(self, xp: Any, shared: NamedArrays, combined: Any, n_clients: int, n_cohort: int) -> dict[str, Any]:
        """What the server remembers after a round whose messages have the mean `combined` [p + n_extra]."""
        del xp, combined, n_clients, n_cohort
        return dict(shared)
