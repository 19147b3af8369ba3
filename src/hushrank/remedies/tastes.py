"""Tastes: clients that are pulled the same way get a ranker of their own, and the others lose nothing.

A client keeps its *pull*: the sum of how its rounds moved it beyond everybody's mean, old rounds fading. The server
offers some tastes, each the mean pull of the clients nearest to it: k-means over all clients, of which the server sees
sums alone and a client the centres [ghosh2020 clusters clients by their losses]. A client begins its round at

    shared ranker + strength * its taste

The strength of a taste is 0 until what its clients learn in later rounds agrees with it beyond chance, and follows
the gradient from then on [deng2020 learns such a weight for one client]. So where clients do not differ, the ranker
is federated averaging's, bit for bit. With n_tastes=0, or one for every client, a client's taste is its own pull,
which never leaves the device, and a message is the update alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hushrank.keys import above_zero, at_least, key
from hushrank.remedies.remedy import Begun, Remedy, Who
from hushrank.types import Array, NamedArrays

_PULL, _EVIDENCE, _STRENGTH = "pull", "evidence", "strength"  # what clients keep, in part
_MEAN, _SUMS, _CENTRES, _ROUNDS = "mean", "sums", "centres", "rounds"  # what the server remembers, with the last two
_SETTLE = 10  # rounds in which clients are dealt out among the tastes, before they choose
_SURE = 4.0  # standard errors at which a taste is believed. Why 4: clients and rounds are many chances to be wrong
_STEP = 0.1  # of a strength, per agreement
_SMOOTH = 0.1  # share of the newest round in the sums behind the centres
_SCALE = 2.0**-6  # of what is sent beside the update. Why small: a clip norm is for both together
_TINY = 1e-20


class Belief(NamedTuple):
    """How strongly tastes [m] are followed."""

    evidence: Any  # [m, 2] while not believed: the sum of agreements, and of their squares
    strength: Any  # [m] 0: not believed


@dataclass(frozen=True)
class Tastes(Remedy):
    """Clustered federation with a shared part, and with evidence before anybody is treated differently."""

    has_memory: ClassVar[bool] = True

    n_tastes: int = key(
        32, "tastes: how many are offered; 0: each client its own, of which nothing is sent", check=at_least(0)
    )
    memory: float = key(2000.0, "tastes: rounds after which a client's pull has faded to a third", check=above_zero)

    def among(self, n_clients: int) -> Remedy:
        return replace(self, n_tastes=0) if self.n_tastes >= n_clients else self

    def n_extra(self, n_params: int) -> int:
        return self.n_tastes * (n_params + 2)

    def first_shared(self, n_params: int) -> dict[str, Array]:
        shared = {_MEAN: np.zeros(n_params, np.float32), _ROUNDS: np.zeros(1, np.float32)}
        if self.n_tastes:
            shared |= {
                _SUMS: np.zeros((self.n_tastes, n_params + 1), np.float32),
                _CENTRES: np.zeros((self.n_tastes, n_params), np.float32),
                _EVIDENCE: np.zeros((self.n_tastes, 2), np.float32),
                _STRENGTH: np.zeros(self.n_tastes, np.float32),
            }
        return shared

    def first_own(self, params: Array, n_clients: int) -> dict[str, Array]:
        own = {_PULL: np.zeros((n_clients, len(params)), np.float32)}
        if not self.n_tastes:
            own |= {_EVIDENCE: np.zeros((n_clients, 2), np.float32), _STRENGTH: np.zeros(n_clients, np.float32)}
        return own

    def begin(self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who) -> Begun:
        taste, strength = self._find_taste(xp, shared, own, who)
        return Begun(params + strength[:, None] * taste)

    def finish(
        self, xp: Any, params: Any, shared: NamedArrays, own: NamedArrays, who: Who, begun: Begun, moved: Any
    ) -> tuple[Any, dict[str, Any]]:
        taste, _ = self._find_taste(xp, shared, own, who)
        beyond = (moved - shared[_MEAN]) * (shared[_ROUNDS] > 0)  # everybody's mean is not known in the first round
        pull = ((1 - 1 / self.memory) * (own[_PULL] + beyond)).astype(np.float32)
        agreement = agree(xp, beyond, taste)
        if not self.n_tastes:
            belief = believe(xp, Belief(own[_EVIDENCE], own[_STRENGTH]), agreement, agreement != 0)
            return moved, {_PULL: pull, **belief._asdict()}
        is_mine = (self._choose(xp, shared, own, who)[:, None] == xp.arange(self.n_tastes)).astype(np.float32)
        told = xp.concatenate([pull, agreement[:, None], xp.ones_like(agreement)[:, None]], axis=1)
        extra = _SCALE * (is_mine[:, :, None] * told[:, None, :]).reshape(len(who.ids), -1)
        return xp.concatenate([moved, extra], axis=1).astype(np.float32), {_PULL: pull}

    def absorb(self, xp: Any, shared: NamedArrays, combined: Any, n_clients: int, n_cohort: int) -> dict[str, Any]:
        n_params = len(shared[_MEAN])
        known = {_MEAN: combined[:n_params].astype(np.float32), _ROUNDS: shared[_ROUNDS] + 1}
        if not self.n_tastes:
            return known
        told = combined[n_params:].reshape(self.n_tastes, n_params + 2) / _SCALE
        fresh = xp.where(shared[_ROUNDS] > 0, _SMOOTH, 1.0)
        now = xp.concatenate([told[:, :n_params], told[:, n_params + 1 :]], axis=1)
        sums = (1 - fresh) * shared[_SUMS] + fresh * now
        least = 0.5 / n_clients  # of a share: below, a taste has nobody
        shares = xp.where(sums[:, -1] > least, sums[:, -1], 0.0)
        means = sums[:, :-1] / xp.maximum(shares, least)[:, None] * (shares > 0)[:, None]
        everybody = (shares[:, None] * means).sum(axis=0) / xp.maximum(shares.sum(), least)
        centres = xp.where((shares > 0)[:, None], means - everybody, 0.0)
        counts = xp.maximum(told[:, -1], least)
        agreement = xp.clip(told[:, n_params] / counts, -1, 1) * xp.sqrt(counts * n_cohort)
        belief = believe(xp, Belief(shared[_EVIDENCE], shared[_STRENGTH]), agreement, told[:, -1] > least)
        arrays = {_SUMS: sums, _CENTRES: centres, **belief._asdict()}
        return known | {name: array.astype(np.float32) for name, array in arrays.items()}

    def _choose(self, xp: Any, shared: NamedArrays, own: NamedArrays, who: Who) -> Any:
        """[n] the taste nearest to each client's pull; in the first rounds as they are dealt out."""
        centres = shared[_CENTRES]
        nearest = xp.argmax(own[_PULL] @ centres.T - 0.5 * (centres * centres).sum(axis=1), axis=1)
        return xp.where(shared[_ROUNDS] < _SETTLE, who.ids % self.n_tastes, nearest)

    def _find_taste(self, xp: Any, shared: NamedArrays, own: NamedArrays, who: Who) -> tuple[Any, Any]:
        """[n, p] each client's taste, and [n] how strongly it is followed."""
        if not self.n_tastes:
            return own[_PULL], own[_STRENGTH]
        chosen = self._choose(xp, shared, own, who)
        return shared[_CENTRES][chosen], shared[_STRENGTH][chosen]


def agree(xp: Any, beyond: Any, taste: Any) -> Any:
    """[n] cosine of what a round taught a client beyond everybody, and its taste until then."""
    lengths = xp.sqrt((beyond * beyond).sum(axis=1) * (taste * taste).sum(axis=1))
    return (beyond * taste).sum(axis=1) / xp.maximum(lengths, _TINY)


def believe(xp: Any, belief: Belief, agreement: Any, is_heard: Any) -> Belief:
    """The strengths after one more round's agreement [m], of mean 0 and like spread where there is no taste."""
    is_open = belief.strength > 0
    squares = xp.stack([agreement, agreement * agreement], axis=1)
    evidence = belief.evidence + squares * (is_heard & ~is_open)[:, None]
    opens = ~is_open & (evidence[:, 0] > _SURE * xp.sqrt(xp.maximum(evidence[:, 1], _TINY)))
    followed = xp.clip(belief.strength + _STEP * agreement * is_heard, 0, 1)
    strength = xp.where(opens, 1.0, xp.where(is_open, followed, 0.0))
    return Belief((evidence * (strength == 0)[:, None]).astype(np.float32), strength.astype(np.float32))
