"""From what a round's clients sent to the server's step, for every cell of a batch. NumPy only.

What a kernel's updates came down to is a weighted sum, the words of a secure sum, or all updates (`collect.py`).
Shapes: C cells, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushrank.attacks.named import Target, attack_updates
from hushrank.attacks.tactics import Tactics
from hushrank.engine.inputs import PARAMS
from hushrank.engine.noise import mean_noise, noise_steps
from hushrank.engine.plan import Plan
from hushrank.engine.record import stack_named
from hushrank.engine.setting import Method, Setting
from hushrank.federation.cohort import answer_mask, count_interactions, draw_groups, sample_ids
from hushrank.federation.gathering import (
    combine_gathered,
    count_refused,
    find_finite,
    keep_some,
    name_evidence,
    rule_on_trial,
)
from hushrank.federation.keeping import find_shares
from hushrank.federation.seen import ONLINE, SEARCHES, group_means
from hushrank.federation.state import OPTIMISER, REMEDY, RULE, SUMS, part_of, replace_owner, with_owner
from hushrank.federation.summation import MaskedSum, OpenSum
from hushrank.remedies.remedy import MeanMessage
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Attack, Gathered, NamedArrays


@dataclass(frozen=True, slots=True)
class CellCohort:
    """The clients of one cell in one round."""

    ids: Array  # [n]
    n_interactions: Array  # [n]
    groups: Array  # [n]
    weights: Array  # [n] float32, 0 for those whose update never arrives
    n_asked: int
    n_searches: int
    n_answered: int
    total_weight: np.float32  # of those who answered

    def part(self, first: int, end: int) -> CellCohort:
        """Some of them; what is counted stays that of all."""
        if first == 0 and end >= len(self.ids):
            return self
        here = slice(first, end)
        return replace(
            self,
            ids=self.ids[here],
            n_interactions=self.n_interactions[here],
            groups=self.groups[here],
            weights=self.weights[here],
        )


def gather_cohort(method: Method, key: Array, round: int) -> CellCohort:
    population = method.population
    if method.batch is not None:  # central: one learner, all of the round's interactions
        interactions = np.array(population.interactions, np.int64)
        return count_cohort(np.zeros(1, np.int64), interactions, np.zeros(1, np.int64), np.ones(1, np.float32))
    ids = sample_ids(population, key, round)
    n_interactions = count_interactions(population, ids)
    arrives = answer_mask(population, key, round, ids)
    each = np.ones_like(n_interactions) if method.counts_alike else n_interactions
    weights = np.where(arrives, each, 0).astype(np.float32)
    return count_cohort(ids, n_interactions, draw_groups(population, key, round, ids), weights)


def count_cohort(ids: Array, n_interactions: Array, groups: Array, weights: Array) -> CellCohort:
    n_answered = int(np.count_nonzero(weights))
    counts = (len(ids), int(n_interactions.sum()), n_answered)
    return CellCohort(ids, n_interactions, groups, weights, *counts, weights.sum())


def describe_cells(
    setting: Setting, plan: Plan, cohorts: Sequence[CellCohort], qualities: Sequence[Sequence[Array]]
) -> dict[str, Array]:
    """What a round showed [C], from the quality of what each client saw, block by block in the order of the clients."""
    # Why cumsum: it adds one after another, as the plain round does
    totals = [sum(float(block.cumsum()[-1]) for block in blocks if len(block)) for blocks in qualities]
    online = [total / max(len(cohort.ids), 1) for total, cohort in zip(totals, cohorts, strict=True)]
    seen = {
        ONLINE: np.array(online, np.float32),
        SEARCHES: np.array([cohort.n_searches for cohort in cohorts], np.int32),
    }
    if setting.groups is None:
        return seen
    found = [
        group_means(setting.groups_of(cell.fold, cell.repeat), cohort.groups, np.concatenate([np.zeros(0), *blocks]))
        for cell, cohort, blocks in zip(plan.cells, cohorts, qualities, strict=True)
    ]
    return seen | {name: np.array([each[name] for each in found], np.float32) for name in found[0]}


@dataclass(frozen=True, slots=True)
class Received:
    """What reached the server in one round, cell by cell."""

    collected: Sequence[Array]  # [C] a weighted sum, the words of a secure sum, or all updates that arrived
    cohorts: Sequence[CellCohort]  # [C]
    keys: Sequence[Array]  # [C]
    attacks: Sequence[Attack | Tactics[Attack] | None]  # [C]
    round: int


def combine_cells(method: Method, state: NamedArrays, received: Received) -> tuple[NamedArrays, dict[str, Array]]:
    """The state after the server's step in every cell that heard from enough clients, and the rules' evidence [C]."""
    if method.batch is not None:  # a central batch is no mean, and its steps were taken already
        return {**state, PARAMS: state[PARAMS] + np.stack(received.collected)}, {}
    evidence: dict[str, Array] = {}
    if method.rule is not None:
        state, means, heard, evidence = apply_rules(method, state, received)
    else:
        gathered: Sequence[Gathered] = ()
        if method.has_liars:
            received, evidence, gathered = add_forged(method, state, received)
        heard = find_heard(method, received.cohorts)
        if method.keeps_sums and gathered:
            state = add_shares(method, state, gathered, heard)
        means = AVERAGES[method.summation.name](method, received)
    return take_step(method, state, means, heard), evidence


def find_heard(method: Method, cohorts: Sequence[CellCohort]) -> Array:
    """[C] whether enough of a cell's clients answered."""
    quorum = method.quorum
    return np.array([cohort.n_answered >= quorum.needed(len(cohort.ids)) for cohort in cohorts])


def apply_rules(
    method: Method, state: NamedArrays, received: Received
) -> tuple[NamedArrays, Array, Array, dict[str, Array]]:
    """What each cell's rule remembers (named after the cell), its update [C, p] where it has one [C], its evidence."""
    means, found = np.zeros_like(state[PARAMS]), [dict[str, float]() for _ in received.cohorts]
    heard = find_heard(method, received.cohorts)
    for cell in np.flatnonzero(heard).tolist():
        gathered = forge_updates(method, state, received, cell)
        found[cell] = count_refused(gathered.updates, is_attacked=method.has_liars)
        combined = combine_gathered(method.rule, gathered)
        if combined is None:
            heard[cell] = False
            continue
        means[cell] = combined.update
        found[cell] = {**name_evidence(combined, gathered.ids < method.n_malicious), **found[cell]}
        state = replace_owner(state, rule_of(cell), combined.memory)
    return state, means, heard, stack_named(found)


def rule_of(cell: int) -> str:
    """Who remembers what a cell's rule does."""
    return f"{RULE}/{cell}"


def forge_updates(method: Method, state: NamedArrays, received: Received, cell: int) -> Gathered:
    """The updates of a cell as the server receives them."""
    cohort, params, round = received.cohorts[cell], state[PARAMS][cell].copy(), received.round
    answered = cohort.weights > 0
    who = (cohort.weights[answered], cohort.ids[answered])
    gathered = Gathered(received.collected[cell], *who, params, round, part_of(state, rule_of(cell)))
    attack = received.attacks[cell]
    if attack is None or not method.has_liars:
        return gathered
    key, trial = stream(received.keys[cell], Purpose.ATTACK, round), rule_on_trial(method.rule, gathered)
    target = Target(params, round, key, trial)
    forged = attack_updates(attack, gathered.updates, gathered.ids < method.n_malicious, target)
    return replace(gathered, updates=forged)


def add_shares(method: Method, state: NamedArrays, gathered: Sequence[Gathered], heard: Array) -> NamedArrays:
    """The state in which sums have grown by what each client, honest or not, adds to the rankers in this round."""
    sums = state[SUMS].copy()
    for cell in np.flatnonzero(heard).tolist():
        used = gathered[cell]
        rate = method.server_step.rate_at({name: array[cell] for name, array in part_of(state, OPTIMISER).items()})
        factors = find_shares(used.weights, used.weights.sum(), method.divisor, rate)
        sums[cell, used.ids] += (factors[:, None] * used.updates).astype(sums.dtype)
    return {**state, SUMS: sums}


def add_forged(
    method: Method, state: NamedArrays, received: Received
) -> tuple[Received, dict[str, Array], list[Gathered]]:
    """Updates that an attack had to see, added up after it, how many of them were refused [C], and all of them."""
    sums, cohorts, found = list(received.collected), list(received.cohorts), [dict[str, float]() for _ in received.keys]
    used = list[Gathered]()
    heard = find_heard(method, received.cohorts)
    for cell, cohort in enumerate(received.cohorts):
        gathered = forge_updates(method, state, received, cell)
        if heard[cell] and cohort.n_answered:
            found[cell] = count_refused(gathered.updates, is_attacked=True)
        is_finite = find_finite(gathered.updates)
        if not is_finite.all():
            gathered = keep_some(gathered, is_finite)
            left = gathered.weights
            cohorts[cell] = replace(cohort, n_answered=len(left), total_weight=left.sum())
        sums[cell] = np.add.reduce(gathered.weights[:, None] * gathered.updates, axis=0)
        used.append(gathered)
    return replace(received, collected=sums, cohorts=cohorts), stack_named(found), used


def average_sums(method: Method, received: Received) -> Array:
    """[C, p] float32 the mean of each cell, with its noise."""
    totals, weights = np.stack(received.collected), np.array([c.total_weight for c in received.cohorts])
    shares = np.full_like(weights, method.divisor) if method.divisor else np.maximum(weights, 1)
    means: Array = (totals / shares[:, None]).astype(np.float32)
    if method.protection.has_noise:
        means += np.stack([mean_noise(method, key, received.round) for key in received.keys])
    return means


def average_words(method: Method, received: Received) -> Array:
    """[C, p] float32 the mean of each cell; zeros where too few answered for a sum to be opened."""
    format = method.secure_sum
    assert format is not None
    means = np.zeros((len(received.cohorts), method.n_sent), np.float32)
    for cell, (cohort, key) in enumerate(zip(received.cohorts, received.keys, strict=True)):
        if cohort.n_answered >= method.quorum.needed(len(cohort.ids)):
            noise = np.append(noise_steps(method, format, key, received.round), 0).astype(np.uint32)
            total, weight = format.decode(received.collected[cell] + noise, n_summed=cohort.n_answered)
            means[cell] = total / (method.divisor or weight)
    return means


def take_step(method: Method, state: NamedArrays, means: Array, heard: Array) -> NamedArrays:
    """The server's step in every cell that heard from enough clients."""
    step, params = method.server_step(part_of(state, OPTIMISER), state[PARAMS], means[:, : method.n_params])
    moved = {PARAMS: params, **with_owner(OPTIMISER, step)}
    kept = {name: np.where(heard[:, None], new, state[name]).astype(state[name].dtype) for name, new in moved.items()}
    return {**state, **kept, **remember_remedy(method, state, means, heard)}


def remember_remedy(method: Method, state: NamedArrays, means: Array, heard: Array) -> dict[str, Array]:
    """What a remedy's servers have absorbed of the messages' means [C, n_sent]."""
    shared, population = part_of(state, REMEDY), method.population
    if not shared:
        return {}
    cells = [{name: array[cell] for name, array in shared.items()} for cell in range(len(means))]
    for cell in np.flatnonzero(heard).tolist():
        mean = MeanMessage(np, means[cell], population.n_clients, population.cohort_size)
        cells[cell] = method.remedy.absorb(cells[cell], mean)
    return with_owner(REMEDY, stack_named(cells))


# {how updates are added up: how their sums become means}
AVERAGES: dict[str, Callable[[Method, Received], Array]] = {OpenSum.name: average_sums, MaskedSum.name: average_words}
