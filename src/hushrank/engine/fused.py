"""Rounds of one batch of cells on a processor: a kernel for the clients, NumPy for the rest.

Twin of `program.run_rounds`. Clients learn in blocks of a fixed size, and the blocks are put together in order, so that
the number of threads does not affect results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from hushrank.attacks.tactics import Tactics
from hushrank.engine.collect import COLLECTORS, Collector, Gathering
from hushrank.engine.combine import CellCohort, Received, combine_cells, describe_cells, gather_cohort
from hushrank.engine.inputs import PARAMS, Advance, cell_key, click_tables, join_queries
from hushrank.engine.kernel import kernel_for
from hushrank.engine.network_kernel import network_parts
from hushrank.engine.plan import Plan
from hushrank.engine.record import stack_named
from hushrank.engine.setting import Method, Setting, attacks_of
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.keeping import calibrate_within, find_shares
from hushrank.federation.personal import personal_places
from hushrank.federation.state import (
    KEPT_LENGTHS,
    LENGTHS,
    OPTIMISER,
    OWN_PARAMETERS,
    PERSONAL,
    REMEDY,
    SUMS,
    part_of,
    with_owner,
)
from hushrank.privacy.protection import Clipping, clip_messages
from hushrank.rankers.mlp import MlpRanker
from hushrank.remedies.remedy import Turn
from hushrank.types import Array, Attack, NamedArrays
from hushrank.unlearning.lengths import note_lengths, place_of

_PARAMETERS, _LENGTHS, _SUMS = (name.removeprefix(f"{PERSONAL}/") for name in (OWN_PARAMETERS, LENGTHS, SUMS))
_BLOCK = 256  # clients; Why: a millisecond of work, long against handing it to a thread
_HELD_BYTES = 512 << 10  # of updates that a kernel hands out at once; Why: they are read again while in the cache
_WORTH_HANDING_OVER = 256  # searches; Why: a millisecond, below which waking a thread costs more than it brings


class Worked(NamedTuple):
    """What a kernel makes of some clients."""

    updates: Array  # [n, p] float32
    qualities: Array  # [n] mean nDCG of what each saw
    personal: Array  # [n, n_personal] their new personal parameters
    scales: Array | None = None  # [n] float64, what the updates are multiplied with; None: they are whole


class Learnt(NamedTuple):
    """What some clients bring out of a round."""

    updates: Array  # [n, n_sent] float32
    qualities: Array  # [n] mean nDCG of what each saw
    kept: NamedArrays  # [n, ...] what each keeps for itself
    scales: Array | None = None  # as above


# (params [p], what stays the same of a cell, key, round, ids [n], n_interactions [n], groups [n], personal) -> Worked
Kernel: TypeAlias = Callable[..., Worked]


@dataclass(frozen=True, slots=True)
class FusedBatch:
    """What stays the same from round to round."""

    setting: Setting
    plan: Plan
    kernel: Kernel
    collector: Collector
    fixed: tuple[tuple[Array, ...], ...]  # [C] queries and people of each cell, as kernels take them
    keys: tuple[Array, ...]  # [C]
    attacks: tuple[Attack | Tactics[Attack] | None, ...]  # [C]
    everybody: CellCohort | None  # the clients of every cell and round; None: they are drawn
    rows: int  # clients of a block whose updates are held at once
    run: Callable[..., Iterable[Any]]  # map, or that of a pool of threads


def fuse_rounds(setting: Setting, plan: Plan, *, threads: int = 1) -> Advance:
    """`advance(state, first, n)`: the state after n rounds, and what they showed."""
    method = setting.method
    kernel = KERNELS[method.exchange.name](method)
    fixed = _fixed_arguments(setting, plan)
    keys = tuple(cell_key(setting, cell) for cell in plan.cells)
    attacks = attacks_of(setting, [cell.fold for cell in plan.cells])
    is_fixed = method.population.is_complete and not method.population.regroup
    everybody = gather_cohort(method, keys[0], 1) if is_fixed else None
    rows = max(1, min(_BLOCK, _HELD_BYTES // (4 * method.n_sent)))
    searches_per_block = min(_BLOCK, method.population.cohort_size) * max(method.population.interactions)
    threads = threads if searches_per_block >= _WORTH_HANDING_OVER else 1

    def advance(state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        with ThreadPoolExecutor(threads) as pool:
            run = pool.map if threads > 1 else map
            who = (keys, attacks, everybody)
            batch = FusedBatch(setting, plan, kernel, choose_collector(method), fixed, *who, rows, run)
            shown = []
            for round in map(method.round_of, range(first, first + n)):
                state, seen = run_fused_round(batch, state, round)
                shown.append(seen)
        return state, stack_named(shown)

    return advance


def choose_collector(method: Method) -> Collector:
    if method.is_gathered:
        return Gathering(method.n_params)
    return COLLECTORS[method.summation.name](method.summation.format, method.n_sent)


def run_fused_round(batch: FusedBatch, state: NamedArrays, round: int) -> tuple[NamedArrays, dict[str, Array]]:
    """One round of every cell, and what it showed [C]."""
    method = batch.setting.method
    cohorts = [batch.everybody or gather_cohort(method, key, round) for key in batch.keys]
    state, collected, qualities = learn_cells(batch, state, cohorts, round)
    state, evidence = combine_cells(method, state, Received(collected, cohorts, batch.keys, batch.attacks, round))
    return state, {**describe_cells(batch.setting, batch.plan, cohorts, qualities), **evidence}


def learn_cells(
    batch: FusedBatch, state: NamedArrays, cohorts: Sequence[CellCohort], round: int
) -> tuple[NamedArrays, list[Array], list[list[Array]]]:
    """What each cell's clients sent, collected; the quality of what they saw, block by block; what they keep."""
    method, own_part = batch.setting.method, part_of(state, PERSONAL)
    # Why not always: the lengths that clients keep are many, and change in few rounds
    stores = {name: array.copy() for name, array in own_part.items() if name != _LENGTHS or method.notes(round)}
    tasks = [(c, first) for c, cohort in enumerate(cohorts) for first in range(0, len(cohort.ids), _BLOCK)]
    study = study_with_memory if method.remedy.has_memory else study_personally

    def learn_block(task: tuple[int, int]) -> tuple[list[Array], list[Learnt]]:
        cell, first = task
        block, learnt = list[Array](), list[Learnt]()
        for at in range(first, min(first + _BLOCK, len(cohorts[cell].ids)), batch.rows):
            clients = cohorts[cell].part(at, min(at + batch.rows, first + _BLOCK))
            own = {name: array[cell, clients.ids] for name, array in stores.items()}
            learnt.append(study(batch, state, cell, clients, own, round))
            if method.keeps_updates:
                learnt[-1] = keep_own(method, state, cell, clients, own, learnt[-1], round)
            batch.collector.take(block, learnt[-1].updates, clients.weights, learnt[-1].scales)
        return block, [each._replace(updates=np.empty(0)) for each in learnt]  # Why: they are collected already

    collected, qualities = [batch.collector.start() for _ in cohorts], [list[Array]() for _ in cohorts]
    for (cell, first), (block, learnt) in zip(tasks, batch.run(learn_block, tasks), strict=True):
        batch.collector.add(collected[cell], block)
        qualities[cell].append(join_arrays([each.qualities for each in learnt]))
        for name, store in stores.items():
            store[cell, cohorts[cell].ids[first : first + _BLOCK]] = join_arrays([each.kept[name] for each in learnt])
    return {**state, **with_owner(PERSONAL, stores)}, [batch.collector.finish(each) for each in collected], qualities


def study_personally(
    batch: FusedBatch, state: NamedArrays, cell: int, clients: CellCohort, own: NamedArrays, round: int
) -> Learnt:
    """What some clients of a cell learn, each from the shared parameters and its own."""
    personal = own.get(_PARAMETERS, np.empty((len(clients.ids), 0), np.float32))
    who = (batch.keys[cell], round, clients.ids, clients.n_interactions, clients.groups)
    worked = batch.kernel(state[PARAMS][cell], *batch.fixed[cell], *who, personal)
    return Learnt(worked.updates, worked.qualities, {_PARAMETERS: worked.personal}, worked.scales)


def study_with_memory(
    batch: FusedBatch, state: NamedArrays, cell: int, clients: CellCohort, own: NamedArrays, round: int
) -> Learnt:
    """The same, where a remedy says where a client begins, what it sends and what it keeps."""
    method, params = batch.setting.method, state[PARAMS][cell]
    known = {name: array[cell] for name, array in part_of(state, REMEDY).items()}
    turn = Turn(np, params, known, own, clients.ids, clients.n_interactions, method.learning_rate)
    begun = method.remedy.begin(turn)
    starts = np.ascontiguousarray(begun.starts, np.float32)
    shifts = None if begun.shifts is None else np.ascontiguousarray(begun.shifts, np.float32)
    who = (batch.keys[cell], round, clients.ids, clients.n_interactions, clients.groups)
    worked = batch.kernel(params, *batch.fixed[cell], *who, starts.copy(), shifts=shifts)
    sent, kept = method.remedy.finish(turn, worked.personal - starts)
    return Learnt(clip_messages(sent, method.protection.clipping), worked.qualities, kept)


def keep_own(
    method: Method, state: NamedArrays, cell: int, clients: CellCohort, own: NamedArrays, learnt: Learnt, round: int
) -> Learnt:
    """Updates scaled to the lengths that their clients kept, and what these keep of them; see `keeping.py`."""
    updates, kept = learnt.updates, dict(learnt.kept)
    if method.calibrates:
        stored = state[KEPT_LENGTHS][cell, clients.ids, place_of(round, method.stride)]
        updates = calibrate_within(state[PARAMS][cell], updates, stored, method.protection.clipping)
    if _LENGTHS in own and method.keep_every is not None:
        kept[_LENGTHS] = note_lengths(np, own[_LENGTHS], updates, round, method.keep_every)
    if _SUMS in own:
        kept[_SUMS] = own[_SUMS] if method.has_liars else own[_SUMS] + share_rows(method, state, cell, clients, updates)
    return learnt._replace(updates=updates, kept=kept)


def share_rows(method: Method, state: NamedArrays, cell: int, clients: CellCohort, updates: Array) -> Array:
    """[n, p] float32 what some clients of a cell add to its ranker."""
    if clients.n_answered < method.quorum.needed(clients.n_asked):
        return np.zeros_like(updates)
    rate = method.server_step.rate_at({name: array[cell] for name, array in part_of(state, OPTIMISER).items()})
    factors = find_shares(clients.weights, clients.total_weight, method.divisor, rate)
    return (factors[:, None] * updates).astype(np.float32)


def join_arrays(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _fixed_arguments(setting: Setting, plan: Plan) -> tuple[tuple[Array, ...], ...]:
    """[C] what a kernel needs to know of a cell in every round: its queries, its groups and their people."""
    queries = {place: _fixed_queries(setting, *place) for place in plan.places}
    return tuple((*queries[setting.place_of(c.fold, c.repeat)], *click_tables(setting, c)) for c in plan.cells)


def _fixed_queries(setting: Setting, fold: int, repeat: int) -> tuple[Array, ...]:
    """The queries of a place's groups, end to end, and where each group's begin."""
    sets = [group.train for group in setting.groups_of(fold, repeat)]
    joined = join_queries(sets, setting.method.k)
    sizes = np.array([queries.n_queries for queries in sets], np.int64)
    firsts = np.cumsum(sizes) - sizes
    queries = (joined.features, joined.grades, joined.starts, joined.labels, joined.lengths, joined.ideals)
    return (*(np.ascontiguousarray(np.asarray(part)) for part in queries), firsts, sizes)


def learning_kernel(method: Method) -> Kernel:
    """PDGD on a block of clients."""
    rate = method.learning_rate * (1.0 if method.batch is None else method.server_step.rate)
    remedy, n_params = method.remedy, method.n_params
    # Why: what a remedy's clients send is more than how they moved, and is clipped as a whole
    clipping = Clipping(method.protection.clipping.weight_norm) if remedy.has_memory else method.protection.clipping
    settings = (np.float32(rate), np.float32(remedy.pull), method.batch or 1, *clipping)
    parts = network_parts(method.ranker.activation) if isinstance(method.ranker, MlpRanker) else None
    places, learn_clients = personal_places(method.ranker), kernel_for(method.learner.pull, parts)
    places = np.arange(n_params) if remedy.has_memory else places  # each begins at a ranker of its own

    def learn(*arguments: Any, shifts: Array | None = None) -> Worked:
        *before, personal = arguments
        n = len(personal)
        shifts = np.empty((n, 0), np.float32) if shifts is None else shifts
        worked = Worked(np.empty((n, n_params), np.float32), np.empty(n), personal)
        learn_clients(*worked[:3], *before, places, shifts, *settings)
        return worked

    return learn


def evolution_kernel(method: Method) -> Kernel:
    """Evolution strategies on a block of clients."""
    from hushrank.engine.es_kernel import ACTIVATIONS, MEASURES, evolve_clients

    evolution, ranker = cast("Evolution", method.exchange), method.ranker
    if evolution.is_as_published:
        from hushrank.engine.es_published_kernel import evolve_as_published as evolve_clients
    network = (ranker.hidden, ACTIVATIONS[ranker.activation]) if isinstance(ranker, MlpRanker) else (0, 0)
    values = np.array(evolution.finite.values)
    threshold = np.uint64(math.floor(evolution.p * 2**32))
    n_params = method.n_params
    tried = (evolution.sigma, evolution.antithetic, MEASURES[evolution.reward], values, threshold)

    def evolve(*arguments: Any) -> Worked:
        *before, personal = arguments
        n = len(personal)
        noises, scales, qualities = np.empty((n, n_params), np.float32), np.empty(n), np.empty(n)
        evolve_clients(noises, scales, qualities, *before, *network, *tried)
        return Worked(noises, qualities, personal, scales)

    return evolve


# {what clients send: the kernel that they learn with}
KERNELS: dict[str, Callable[[Method], Kernel]] = {
    UpdateExchange.name: learning_kernel,
    Evolution.name: evolution_kernel,
}
