"""Tastes: clients that are pulled the same way get a ranker of their own, and the others lose nothing.

A client keeps its *pull*: the sum of how its rounds moved it beyond everybody's mean, old rounds fading. The server
offers some tastes, each the mean pull of the clients nearest to it: k-means over all clients, of which the server sees
sums alone and a client the centres ([ghosh2020] clusters clients by their losses). A client begins its round at

    shared ranker + strength * its taste

The strength of a taste is 0 until what its clients learn in later rounds agrees with it beyond chance, and follows
the gradient from then on ([deng2020] learns such a weight for one client). So where clients do not differ, the ranker
is federated averaging's, bit for bit. With n_tastes=0, or one for every client, a client's taste is its own pull,
which never leaves the device, and a message is the update alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar, NamedTuple

import numpy as np

from hushrank.keys import above_zero, at_least, key
from hushrank.remedies.remedy import Begun, MeanMessage, Remedy, Turn
from hushrank.types import Array, NamedArrays

_PULL, _LENGTH = "pull", "length"  # what clients keep
_EVIDENCE, _STRENGTH = "evidence", "strength"  # what clients keep, or the server where tastes are offered
_MEAN, _SUMS, _CENTRES, _ROUNDS = "mean", "sums", "centres", "rounds"  # what the server remembers
_OPEN = "open_tastes"  # how many are followed
_OFFERED = 32
_SETTLE = 10  # rounds in which clients are dealt out among the tastes, before they choose
_SURE = 4.0  # standard errors at which a taste is believed. Why 4: clients and rounds are many chances to be wrong
_STEP = 0.1  # of a strength, for one round's agreement
_SMOOTH = 0.1  # share of the newest round in the sums behind the centres, and in a client's usual length
_SCALE = 2.0**-6  # of what is sent beside the update. Why small: a clip norm is for both together
_TINY = 1e-20


class Belief(NamedTuple):
    """How strongly tastes [m] are followed."""

    evidence: Array  # [m, 2] while not believed: the sum of agreements, and of their squares
    strength: Array  # [m] 0: not believed


@dataclass(frozen=True)
class Tastes(Remedy):
    """Clustered federation with a shared part, and with evidence before anybody is treated differently."""

    has_memory: ClassVar[bool] = True

    n_tastes: int | None = key(
        None,
        f"tastes: how many are offered; 0: each client its own, of which nothing is sent; default {_OFFERED}, 0 where "
        "updates are protected by noise",
        check=at_least(0),
    )
    memory: float = key(2000.0, "tastes: rounds after which a client's pull has faded to a third", check=above_zero)

    @property
    def tells(self) -> str | None:
        if not self.n_tastes:
            return None
        return (
            "which taste the client has, where all its rounds so far have pulled it beyond everybody, and how well "
            "this round agrees with that"
        )

    def among(self, n_clients: int, *, is_noisy: bool) -> Remedy:
        n_tastes = (0 if is_noisy else _OFFERED) if self.n_tastes is None else self.n_tastes
        return replace(self, n_tastes=0 if n_tastes >= n_clients else n_tastes)

    def n_extra(self, n_params: int) -> int:
        return self._n * (n_params + 2)

    @property
    def _n(self) -> int:
        """Tastes that are offered."""
        return self.n_tastes or 0

    def first_shared(self, n_params: int) -> dict[str, Array]:
        shared: dict[str, Array] = {_MEAN: np.zeros(n_params, np.float32), _ROUNDS: np.zeros(1, np.float32)}
        if self._n:
            shared |= {
                _SUMS: np.zeros((self._n, n_params + 1), np.float32),
                _CENTRES: np.zeros((self._n, n_params), np.float32),
                _EVIDENCE: np.zeros((self._n, 2), np.float32),
                _STRENGTH: np.zeros(self._n, np.float32),
            }
        return shared

    def first_own(self, params: Array, n_clients: int) -> dict[str, Array]:
        own: dict[str, Array] = {
            _PULL: np.zeros((n_clients, len(params)), np.float32),
            _LENGTH: np.zeros(n_clients, np.float32),
        }
        if not self._n:
            own |= {_EVIDENCE: np.zeros((n_clients, 2), np.float32), _STRENGTH: np.zeros(n_clients, np.float32)}
        return own

    def begin(self, turn: Turn) -> Begun:
        taste, strength = self._find_taste(turn)
        return Begun(turn.params + strength[:, None] * taste)

    def finish(self, turn: Turn, moved: Array) -> tuple[Array, dict[str, Array]]:
        xp, shared, own = turn.xp, turn.shared, turn.own
        beyond = (moved - shared[_MEAN]) * (shared[_ROUNDS] > 0)  # Why: everybody's mean is not known in the first
        pull = np.float32(1 - 1 / self.memory) * (own[_PULL] + beyond)
        agreement = agree(xp, beyond, self._find_taste(turn)[0], own[_LENGTH])
        kept = {_PULL: pull, _LENGTH: follow_length(xp, own[_LENGTH], beyond)}
        if not self._n:
            belief = believe(xp, Belief(own[_EVIDENCE], own[_STRENGTH]), agreement, agreement != 0)
            return moved, {**kept, **belief._asdict()}
        is_mine = (self._choose(turn)[:, None] == xp.arange(self._n)).astype(np.float32)
        told = xp.concatenate([pull, agreement[:, None], xp.ones_like(agreement)[:, None]], axis=1)
        extra = np.float32(_SCALE) * (is_mine[:, :, None] * told[:, None, :]).reshape(len(turn.ids), -1)
        return xp.concatenate([moved, extra], axis=1), kept

    def absorb(self, shared: NamedArrays, mean: MeanMessage) -> dict[str, Array]:
        xp, n_params = mean.xp, len(shared[_MEAN])
        known = {_MEAN: mean.numbers[:n_params], _ROUNDS: shared[_ROUNDS] + 1}
        if not self._n:
            return known
        told = mean.numbers[n_params:].reshape(self._n, n_params + 2) / np.float32(_SCALE)
        pulls, agreements, shares = told[:, :n_params], told[:, -2], told[:, -1]
        fresh = xp.where(shared[_ROUNDS] > 0, np.float32(_SMOOTH), np.float32(1))
        sums = (1 - fresh) * shared[_SUMS] + fresh * xp.concatenate([pulls, shares[:, None]], axis=1)
        least = np.float32(0.5 / mean.n_clients)  # Why: with less than half a client a taste has nobody
        heard = xp.maximum(shares, least)
        agreement = agreements / heard * xp.sqrt(heard * mean.n_cohort)  # as spread as one client's
        belief = believe(xp, Belief(shared[_EVIDENCE], shared[_STRENGTH]), agreement, shares > least)
        return known | {_SUMS: sums, _CENTRES: find_centres(xp, sums, least), **belief._asdict()}

    def evidence(self, shared: NamedArrays, own: NamedArrays) -> dict[str, float]:
        strength = (shared if self._n else own)[_STRENGTH]
        return {_OPEN: float(np.count_nonzero(strength))}

    def conclude(self, evidence: Mapping[str, Array]) -> str:
        counts = evidence[_OPEN]
        n_open, n = np.count_nonzero(counts), len(counts)
        if not n_open:
            return "No taste opened in any training: clients rank with the shared ranker, that of federated averaging."
        mean = f"{float(counts[counts > 0].mean()):.3g}"
        there = f"{mean} of {self._n} on average" if self._n else f"{mean} on average, each a client's own"
        return f"Tastes are open at the end of {n_open} of {n} trainings: {there}."

    def _choose(self, turn: Turn) -> Array:
        """[n] the taste nearest to each client's pull; in the first rounds as they are dealt out."""
        centres = turn.shared[_CENTRES]
        nearness = turn.own[_PULL] @ centres.T - np.float32(0.5) * (centres * centres).sum(axis=1)
        dealt = turn.ids.astype(np.int32) % self._n
        return turn.xp.where(turn.shared[_ROUNDS] < _SETTLE, dealt, turn.xp.argmax(nearness, axis=1))

    def _find_taste(self, turn: Turn) -> tuple[Array, Array]:
        """[n, p] each client's taste, and [n] how strongly it is followed."""
        if not self._n:
            return turn.own[_PULL], turn.own[_STRENGTH]
        chosen = self._choose(turn)
        return turn.shared[_CENTRES][chosen], turn.shared[_STRENGTH][chosen]


def find_centres(xp: ModuleType, sums: Array, least: np.float32) -> Array:
    """[m, p] the mean pull at each taste, beyond that of everybody; 0, the shared ranker, where nobody is. sums
    [m, p + 1] end with the share of the clients."""
    shares = xp.where(sums[:, -1:] > least, sums[:, -1:], np.float32(0))
    means = sums[:, :-1] / xp.maximum(shares, least)
    everybody = (shares * means).sum(axis=0) / xp.maximum(shares.sum(), least)
    return xp.where(shares > 0, means - everybody, np.float32(0))


def agree(xp: ModuleType, beyond: Array, taste: Array, length: Array) -> Array:
    """[n] how far a round moved a client along its taste, beyond everybody, in units of its usual length.

    Why not a cosine: most rounds move a client little and some far, and the directions alone need not have mean 0.
    """
    lengths = xp.sqrt(length * (taste * taste).sum(axis=1))
    return (beyond * taste).sum(axis=1) / xp.maximum(lengths, np.float32(_TINY)) * (lengths > 0)


def follow_length(xp: ModuleType, length: Array, beyond: Array) -> Array:
    """[n] the mean square of how far rounds moved each client beyond everybody, old rounds fading."""
    square = (beyond * beyond).sum(axis=1)
    return xp.where(length > 0, np.float32(1 - _SMOOTH) * length + np.float32(_SMOOTH) * square, square)


def believe(xp: ModuleType, belief: Belief, agreement: Array, is_heard: Array) -> Belief:
    """The strengths after one more round's agreement [m], which has mean 0 where there is no taste."""
    is_open = belief.strength > 0
    fresh = xp.stack([agreement, agreement * agreement], axis=1)
    evidence = belief.evidence + xp.where((is_heard & ~is_open)[:, None], fresh, np.float32(0))
    is_sure = evidence[:, 0] > np.float32(_SURE) * xp.sqrt(evidence[:, 1])
    followed = xp.clip(belief.strength + np.float32(_STEP) * xp.where(is_heard, agreement, np.float32(0)), 0, 1)
    strength = xp.where(is_open, followed, is_sure.astype(np.float32))
    return Belief(xp.where((strength > 0)[:, None], np.float32(0), evidence), strength)
