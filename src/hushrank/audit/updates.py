"""Federations that send updates, with a canary: the worst pair that a relation allows, through `privatise` and
`combine`.

The canary pushes as far as clipping lets it, up in one round and down in the next: noise that two rounds share cancels
and gives it away, and independent noise hides both alike. Only `n_params` numbers are looked at, the canary's own: in
every other direction both federations publish the same independent noise, which tells nothing. What others send is
known to the observer: nothing, or, in a cohort of fixed size in which somebody else takes an absent canary's place, the
opposite. Many runs are one call with batched keys. Shapes: keys [n, 2], sums [n, n_params], cohorts [n, n_clients].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.audit.trial import check_canaries
from hushrank.federation.cohort import Population, cohort_mask
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.protection import Contrast, UpdateProtection
from hushrank.streams import Purpose, fold_in, stream
from hushrank.types import Array, DenseUpdate, NamedArrays, PrivateUpdate

LOUD = 8.0  # canary's update / what clipping leaves of it; Why: so that clipping is audited, too


_SHARE_WORK = 8  # draws that a share of noise takes: Gamma numbers are tried several times


class HeardUpdate(NamedTuple):
    """Messages of one client in many runs, or of several clients together; zeros where nobody sent one."""

    delta: Array  # [n, n_params]
    weight: float


@dataclass(frozen=True, slots=True)
class UpdateTrial:
    """A federation whose last client is the canary, and its neighbour."""

    protection: UpdateProtection
    population: Population
    relation: str
    rounds: int
    n_params: int = 2  # that the canary moves
    sees_cohort: bool = True  # whether the observer knows in which rounds the canary was

    def __post_init__(self) -> None:
        n_left = self.population.cohort_size - (self.is_everybody and self.relation == Adjacency.add_remove)
        if n_left < self.protection.n_makers:
            raise ValueError(
                f"{n_left} clients are left without the canary, but {self.protection.n_makers} must share the noise: "
                "the round would be lost, which everybody sees. Audit zero-out or replace-one, or set n_honest lower."
            )

    @property
    def is_everybody(self) -> bool:
        return self.population.draws_everybody

    @property
    def is_replaced(self) -> bool:
        """Whether another client takes the place of an absent canary."""
        return self.relation == Adjacency.add_remove and not self.is_everybody and not self.population.is_poisson

    @property
    def canary(self) -> int:
        """Its id."""
        return self.population.n_clients - 1

    @property
    def work(self) -> int:
        drawn = 0 if self.is_everybody else self.population.n_clients
        return self.rounds * (drawn + self.n_params * (1 + _SHARE_WORK * len(list(self._makers()))))

    @property
    def is_normal(self) -> bool:
        return self.protection.has_normal_noise and (self.is_everybody or self.sees_cohort)

    @property
    def n_canaries(self) -> int:
        return self.population.n_clients

    def score_runs(self, keys: Array, looks: Sequence[int], *, is_here: bool) -> Array:
        if len(self.protection.echo) > 1:
            return self._score_echoes(keys, looks, is_here=is_here)
        total, kept = np.zeros(len(keys)), []
        for round in range(1, self.rounds + 1):
            total = total + self._score_round(self._pair_of(round), keys, round, is_here=is_here)
            if round in looks:
                kept.append(total)
        return np.stack(kept, axis=-1)

    def _pair_of(self, round: int) -> Contrast:
        sign = 1.0 if round % 2 else -1.0
        return Contrast(*(sign * part for part in self.protection.contrast(self.n_params, self.relation)))

    def _score_echoes(self, keys: Array, looks: Sequence[int], *, is_here: bool) -> Array:
        """Noise that later rounds take back: the observer undoes that, and then sees each answer in several rounds,
        behind noise that rounds do not share. Who takes turns is known."""
        echo = np.array(self.protection.echo)
        past: NamedArrays = {}
        published, moves = list[Array](), list[Array]()  # [n, n_params] and [n, 2, n_params], latest first
        total, kept = np.zeros(len(keys)), []
        for round in range(1, self.rounds + 1):
            pair, mask = self._pair_of(round), cohort_mask(self.population, keys, round)
            own = stream(keys, Purpose.PRIVATISE, round, self.canary)
            moved = pair.here if is_here else pair.there
            sent = self._send(pair.start, moved, own, n_interactions=max(self.population.interactions))
            heard = [HeardUpdate(mask[:, -1:] * sent.delta, sent.weight)]
            noise, past = self.protection.draw_in_turn(self.n_params, key=keys, round=round, past=past)
            published.insert(0, self._publish(heard, keys, round, noise=noise))
            moves.insert(0, mask[:, -1, None, None] * np.stack([pair.here, pair.there]))
            del published[len(echo) :], moves[len(echo) :]
            seen = np.einsum("j,j...->...", echo[: len(published)], np.array(published))
            here, there = np.moveaxis(np.einsum("j,j...->...", echo[: len(moves)], np.array(moves)), 1, 0)
            total = total + self.protection.log_ratio(seen, here) - self.protection.log_ratio(seen, there)
            if round in looks:
                kept.append(total)
        return np.stack(kept, axis=-1)

    def _score_round(self, pair: Contrast, keys: Array, round: int, *, is_here: bool) -> Array:
        """[n] ln of how much likelier the round is with the canary."""
        is_gone = not is_here and self.relation == Adjacency.add_remove
        mask = cohort_mask(self.population, keys, round, missing=self.canary if is_gone else -1)
        others = -pair.here if self.is_replaced else np.zeros(self.n_params)
        heard = [*self._hear_others(pair.start, others, mask, keys, round)]
        if not is_gone:
            moved = pair.here if is_here else pair.there
            own_keys = stream(keys, Purpose.PRIVATISE, round, self.canary)
            sent = self._send(pair.start, moved, own_keys, n_interactions=max(self.population.interactions))
            heard.append(HeardUpdate(mask[:, -1:] * sent.delta, sent.weight))
        known = self.population.cohort_size * others if self.is_replaced else 0.0
        noise = self._publish(heard, keys, round) - known
        score = self._weigh(noise, pair.here - others, pair.there, mask[:, -1])
        is_lost = self._count(mask)[:, 0] < self.protection.quorum().least
        return np.where(is_lost, 0.0, score)  # a lost round shows nothing

    def _count(self, mask: Array) -> Array:
        """[n, 1] clients of a cohort. Why one row for all where everybody takes part: theirs are the same."""
        return np.asarray((mask[:1] if self.is_everybody else mask).sum(axis=-1, keepdims=True))

    def _send(self, start: Array, moved: Array, keys: Array, *, n_interactions: int) -> PrivateUpdate:
        """[n, n_params] a client's messages: what it learnt, its weights clipped as the learner does, made private."""
        learnt = self.protection.limit_weights(start + LOUD * moved) - start
        delta = np.broadcast_to(learnt.astype(np.float32), (*keys.shape[:-1], moved.shape[-1]))
        return self.protection.privatise(DenseUpdate(delta, n_interactions), key=keys)

    def _makers(self) -> Iterator[int]:
        """Others whose noise counts. Where everybody takes part only as many as must be honest: others may collude."""
        if not self.protection.n_makers:
            return iter(())
        n_others = self.canary
        n_honest = self.protection.n_makers - (self.relation != Adjacency.add_remove)
        return iter(range(n_others - n_honest if self.is_everybody else 0, n_others))

    def _hear_others(self, start: Array, moved: Array, mask: Array, keys: Array, round: int) -> Iterator[HeardUpdate]:
        n = min(self.population.interactions)  # Why fewest: a canary that counts for more than others stands out most
        for id in self._makers():
            sent = self._send(start, moved, stream(keys, Purpose.PRIVATISE, round, id), n_interactions=n)
            yield HeardUpdate(mask[:, id, None] * sent.delta, sent.weight)
        if not self.protection.n_makers:  # Why at once: without noise of their own all send the same
            sent = self._send(start, moved, stream(keys[0], Purpose.PRIVATISE, round, 0), n_interactions=n)
            yield HeardUpdate(self._count(mask[:, :-1]) * sent.delta, sent.weight)

    def _publish(self, heard: Sequence[HeardUpdate], keys: Array, round: int, *, noise: Array | None = None) -> Array:
        """[n, n_params] the step that everybody sees, in the float32 of rankers, times what the server divided by."""
        cohort, key = float(self.population.cohort_size), stream(keys, Purpose.SERVER_NOISE, round)
        n_params = heard[0].delta.shape[-1]
        made = UpdateExchange(self.protection).combine(heard, n_params=n_params, cohort=cohort, key=key, noise=noise)
        divided = self.protection.divisor(cohort) or sum(each.weight for each in heard) / heard[0].weight
        return made.astype(np.float32).astype(np.float64) * divided

    def _weigh(self, noise: Array, here: Array, there: Array, is_in: Array) -> Array:
        """[n] evidence of a round; who does not know the cohort weighs in that the canary may not have been in it."""
        likelier, instead = self.protection.log_ratio(noise, here), self.protection.log_ratio(noise, there)
        if self.sees_cohort:
            return np.where(is_in, likelier - instead, 0.0)
        rate = self.population.sampling_rate
        out = np.log1p(-rate) if rate < 1 else -np.inf
        return np.logaddexp(out, np.log(rate) + likelier) - np.logaddexp(out, np.log(rate) + instead)

    def score_canaries(self, key: Array, looks: Sequence[int], is_in: Array) -> Array:
        """Every client moves a number of its own, so that no canary hides another."""
        check_canaries(self.n_canaries)
        if len(self.protection.echo) > 1:
            raise ValueError("noise that later rounds take back is audited over whole trainings: --estimator runs.")
        if self.is_replaced:
            raise ValueError(
                "in a cohort of fixed size an absent client's place is taken, so that clients are not in or out one by "
                "one: audit add-remove with --estimator runs."
            )
        total, kept = np.zeros(len(is_in)), []
        for round in range(1, self.rounds + 1):
            total = total + self._score_clients(key, round, is_in)
            if round in looks:
                kept.append(total)
        return np.stack(kept, axis=-1)

    def _score_clients(self, key: Array, round: int, is_in: Array) -> Array:
        """[m] evidence of a round for each client."""
        sign = 1.0 if round % 2 else -1.0
        _, here, there = (sign * part for part in self.protection.contrast(1, self.relation))
        mask = cohort_mask(self.population, key, round)
        present = mask & (is_in | (self.relation != Adjacency.add_remove))
        rows = np.diag(np.where(is_in, here, there))
        keys = fold_in(stream(key, Purpose.PRIVATISE, round), np.arange(len(is_in)))
        sent = self._send(np.zeros(len(is_in)), rows, keys, n_interactions=max(self.population.interactions))
        heard = [HeardUpdate(sent.delta[id], sent.weight) for id in np.flatnonzero(present)]
        reach = np.abs(self.protection.limit_weights(LOUD * here))
        noise = self._publish(heard, key, round)[:, None]
        return self._weigh(noise, np.clip(here, -reach, reach), np.clip(there, -reach, reach), mask)
