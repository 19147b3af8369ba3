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
from hushrank.engine.inputs import PARAMS, Advance, cell_key, join_queries, stack_tables
from hushrank.engine.kernel import kernel_for
from hushrank.engine.large_pages import use_large_pages
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


# (params [C, p], what stays the same at a place, keys [C, 2], round, cells [n], ids [n], n_interactions [n],
# groups [n], personal) -> Worked
Kernel: TypeAlias = Callable[..., Worked]


class Call(NamedTuple):
    """The clients of one call of a kernel: some of a cell's, or all of several small cells' of the same place."""

    fixed: tuple[Array, ...]  # queries and people of the place, as kernels take them
    cells: Array  # [n]
    ids: Array  # [n]
    n_interactions: Array  # [n]
    groups: Array  # [n] among those of all cells of the place
    parts: tuple[tuple[int, slice, CellCohort], ...]  # (cell, where its clients stand above, these)


@dataclass(frozen=True, slots=True)
class FusedBatch:
    """What stays the same from round to round."""

    setting: Setting
    plan: Plan
    kernel: Kernel
    collector: Collector
    fixed: tuple[tuple[tuple[Array, ...], int], ...]  # [C] as kernels take them, and the first of each cell's groups
    keys: Array  # [C, 2]
    attacks: tuple[Attack | Tactics[Attack] | None, ...]  # [C]
    everybody: CellCohort | None  # the clients of every cell and round; None: they are drawn
    rows: int  # clients of a block whose updates are held at once
    run: Callable[..., Iterable[Any]]  # map, or that of a pool of threads


def fuse_rounds(setting: Setting, plan: Plan, *, threads: int = 1) -> Advance:
    """`advance(state, first, n)`: the state after n rounds, and what they showed."""
    method = setting.method
    kernel = KERNELS[method.exchange.name](method)
    fixed = _fixed_arguments(setting, plan)
    keys = np.stack([cell_key(setting, cell) for cell in plan.cells])
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
            tasks = None if everybody is None else cut_tasks(batch, [everybody] * len(keys))
            shown = []
            for round in map(method.round_of, range(first, first + n)):
                state, seen = run_fused_round(batch, state, round, tasks)
                shown.append(seen)
        return state, stack_named(shown)

    return advance


def choose_collector(method: Method) -> Collector:
    if method.is_gathered:
        return Gathering(method.n_params)
    return COLLECTORS[method.summation.name](method.summation.format, method.n_sent)


def run_fused_round(
    batch: FusedBatch, state: NamedArrays, round: int, tasks: Sequence[Sequence[Call]] | None = None
) -> tuple[NamedArrays, dict[str, Array]]:
    """One round of every cell, and what it showed [C]. tasks: where the cohorts are those of every round."""
    method = batch.setting.method
    cohorts = [batch.everybody or gather_cohort(method, key, round) for key in batch.keys]
    tasks = cut_tasks(batch, cohorts) if tasks is None else tasks
    state, collected, qualities = learn_cells(batch, state, tasks, round)
    state, evidence = combine_cells(
        method, state, Received(collected, cohorts, tuple(batch.keys), batch.attacks, round)
    )
    return state, {**describe_cells(batch.setting, batch.plan, cohorts, qualities), **evidence}


def cut_tasks(batch: FusedBatch, cohorts: Sequence[CellCohort]) -> list[list[Call]]:
    """What one thread does at a time: a block of a cell's clients, in calls of at most so many rows, or one call for
    several small cells. Why: a call costs as much as some twenty searches."""
    method, tasks, small = batch.setting.method, list[list[Call]](), dict[int, list[int]]()
    can_join = not (method.remedy.has_memory or method.keeps_updates)
    for cell, cohort in enumerate(cohorts):
        if can_join and 0 < len(cohort.ids) <= batch.rows // 2:
            small.setdefault(id(batch.fixed[cell][0]), []).append(cell)
            continue
        for first in range(0, len(cohort.ids), _BLOCK):
            end = min(first + _BLOCK, len(cohort.ids))
            pieces = [cohort.part(at, min(at + batch.rows, end)) for at in range(first, end, batch.rows)]
            tasks.append([join_cells(batch, {cell: piece}) for piece in pieces])
    for cells in small.values():
        most = max(1, batch.rows // max(len(cohorts[cell].ids) for cell in cells))
        for first in range(0, len(cells), most):
            tasks.append([join_cells(batch, {cell: cohorts[cell] for cell in cells[first : first + most]})])
    return tasks


def join_cells(batch: FusedBatch, cohorts: dict[int, CellCohort]) -> Call:
    """One call for these clients of cells of the same place."""
    sizes = [len(cohort.ids) for cohort in cohorts.values()]
    ends = np.cumsum(sizes).tolist()
    spans = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return Call(
        batch.fixed[next(iter(cohorts))][0],
        np.repeat(np.array(list(cohorts), np.int64), sizes),
        join_arrays([cohort.ids for cohort in cohorts.values()]),
        join_arrays([cohort.n_interactions for cohort in cohorts.values()]),
        join_arrays([cohort.groups + batch.fixed[cell][1] for cell, cohort in cohorts.items()]),
        tuple(zip(cohorts, spans, cohorts.values(), strict=True)),
    )


def learn_cells(
    batch: FusedBatch, state: NamedArrays, tasks: Sequence[Sequence[Call]], round: int
) -> tuple[NamedArrays, list[Array], list[list[Array]]]:
    """What each cell's clients sent, collected; the quality of what they saw, block by block; what they keep."""
    method, own_part = batch.setting.method, part_of(state, PERSONAL)
    # Why not always: the lengths that clients keep are many, and change in few rounds
    stores = {name: array.copy() for name, array in own_part.items() if name != _LENGTHS or method.notes(round)}
    study = study_with_memory if method.remedy.has_memory else study_personally

    def learn_task(task: Sequence[Call]) -> list[tuple[list[Array], list[tuple[Array, NamedArrays]]]]:
        done: list[tuple[list[Array], list[tuple[Array, NamedArrays]]]] = [([], []) for _ in task[0].parts]
        for call in task:
            own = {name: array[call.cells, call.ids] for name, array in stores.items()}
            learnt = study(batch, state, call, own, round)
            for (cell, rows, clients), (block, parts) in zip(call.parts, done, strict=True):
                part = take_rows(learnt, rows)
                if method.keeps_updates:
                    part = keep_own(method, state, cell, clients, own, part, round)
                batch.collector.take(block, part.updates, clients.weights, part.scales)
                parts.append((part.qualities, part.kept))
        return done

    cells = range(len(batch.keys))
    collected = [batch.collector.start() for _ in cells]
    qualities: list[list[Array]] = [[] for _ in cells]
    for task, done in zip(tasks, batch.run(learn_task, tasks), strict=True):
        for p, (block, parts) in enumerate(done):
            cell = task[0].parts[p][0]
            batch.collector.add(collected[cell], block)
            qualities[cell].append(join_arrays([quality for quality, _ in parts]))
            for name, store in stores.items():
                ids = join_arrays([call.parts[p][2].ids for call in task])
                store[cell, ids] = join_arrays([kept[name] for _, kept in parts])
    return {**state, **with_owner(PERSONAL, stores)}, [batch.collector.finish(each) for each in collected], qualities


def take_rows(learnt: Learnt, rows: slice) -> Learnt:
    """Of some clients of a call."""
    updates, qualities, kept, scales = learnt
    some = {name: array[rows] for name, array in kept.items()}
    return Learnt(updates[rows], qualities[rows], some, None if scales is None else scales[rows])


def study_personally(batch: FusedBatch, state: NamedArrays, call: Call, own: NamedArrays, round: int) -> Learnt:
    """What some clients learn, each from the shared parameters of its cell and its own."""
    personal = own.get(_PARAMETERS, np.empty((len(call.ids), 0), np.float32))
    worked = batch.kernel(state[PARAMS], *call.fixed, batch.keys, round, *call[1:5], personal)
    kept = {_PARAMETERS: worked.personal} if _PARAMETERS in own else {}
    return Learnt(worked.updates, worked.qualities, kept, worked.scales)


def study_with_memory(batch: FusedBatch, state: NamedArrays, call: Call, own: NamedArrays, round: int) -> Learnt:
    """The same for clients of one cell, where a remedy says where a client begins, what it sends and what it keeps."""
    method, cell = batch.setting.method, call.parts[0][0]
    known = {name: array[cell] for name, array in part_of(state, REMEDY).items()}
    turn = Turn(np, state[PARAMS][cell], known, own, call.ids, call.n_interactions, method.learning_rate)
    begun = method.remedy.begin(turn)
    starts = np.ascontiguousarray(begun.starts, np.float32)
    shifts = None if begun.shifts is None else np.ascontiguousarray(begun.shifts, np.float32)
    who = (batch.keys, round, *call[1:5])
    worked = batch.kernel(state[PARAMS], *call.fixed, *who, starts.copy(), shifts=shifts)
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


def _fixed_arguments(setting: Setting, plan: Plan) -> tuple[tuple[tuple[Array, ...], int], ...]:
    """[C] what a kernel needs to know of a cell's place in every round: its queries, and the groups of all cells there
    with their people; and which of these groups is the cell's first."""
    of_place = {place: [c for c in plan.cells if setting.place_of(c.fold, c.repeat) == place] for place in plan.places}
    fixed, found = dict[tuple[int, int], tuple[Array, ...]](), list[tuple[tuple[Array, ...], int]]()
    for place, cells in of_place.items():
        *queries, firsts, sizes = _fixed_queries(setting, *place)
        n = len(cells)
        fixed[place] = (*queries, np.tile(firsts, n), np.tile(sizes, n), *stack_tables(setting, cells))
    for cell in plan.cells:
        place = setting.place_of(cell.fold, cell.repeat)
        found.append((fixed[place], of_place[place].index(cell) * len(setting.groups_of(cell.fold, cell.repeat))))
    return tuple(found)


def _fixed_queries(setting: Setting, fold: int, repeat: int) -> tuple[Array, ...]:
    """The queries of a place's groups, end to end, and where each group's begin."""
    sets = [group.train for group in setting.groups_of(fold, repeat)]
    joined = join_queries(sets, setting.method.k)
    sizes = np.array([queries.n_queries for queries in sets], np.int64)
    firsts = np.cumsum(sizes) - sizes
    features = use_large_pages(joined.features)
    queries = (features, joined.grades, joined.starts, joined.labels, joined.lengths, joined.ideals)
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
