"""One batch of cells as one compiled program: twin of a loop over `round.run_round`, for all cells at once.

Shapes: C cells, G groups of clients, b clients of a block, n = C * b rows, p parameters.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from hushrank.aggregation.mean import MeanState
from hushrank.engine.addition import ADDITIONS
from hushrank.engine.cohort import Drawn, answers, draw_groups, name_keys, sample_cohort
from hushrank.engine.es_local import ES_DRAWS, evolve_locally
from hushrank.engine.inputs import (
    PARAMS,
    Advance,
    Cells,
    Queries,
    cell_key,
    gather_cells,
    gather_queries,
    initial_state,
)
from hushrank.engine.keeping import find_column, keep_block
from hushrank.engine.local import DRAWS, ClientRows, clip_deltas, learn_locally
from hushrank.engine.memory import absorb_means, begin_block, finish_block, gather_block, personal_part
from hushrank.engine.plan import CHUNK, Plan, Shape
from hushrank.engine.setting import Method, Setting
from hushrank.federation.cohort import check_drawn
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.groups import Group, measured_groups
from hushrank.federation.personal import personal_places
from hushrank.federation.seen import ONLINE, SEARCHES
from hushrank.federation.state import LENGTHS, OPTIMISER, OWN_PARAMETERS, part_of, with_owner
from hushrank.streams import Purpose
from hushrank.streams_fast import fold_in
from hushrank.types import Array, NamedArrays

_CLIENTS = "clients"  # the axis that devices divide
MOST_PROGRAMS = 32  # Why: see `device.spare_mappings`, which cannot let go of these
# Why loops too: rounds in a row are one graph that the GPU runs by itself, and the host need not start each of them
RECORDED = "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE"
_PROGRAMS: OrderedDict[Any, Any] = OrderedDict()  # the last ones used, the latest at the end
_COMPILING = threading.Lock()


class LocalLearner(NamedTuple):
    """What clients do with what is sent to them, compiled."""

    learn: Callable[..., tuple[Any, Any]]  # (method, shape, queries, cells, params, rows) -> updates, qualities
    draws: tuple[Purpose, ...]  # that it needs


# {what clients send: how they learn it}
LOCAL_LEARNERS = {
    UpdateExchange.name: LocalLearner(learn_locally, DRAWS),
    Evolution.name: LocalLearner(evolve_locally, ES_DRAWS),
}


class Seen(NamedTuple):
    """What one round shows of itself; of several rounds with a leading axis."""

    quality: Any  # [C] mean nDCG of the lists that people saw: over a client's lists, then over clients
    searches: Any  # [C] how many lists that were
    groups: Any  # [C, G, 2] of each group the sum of its clients' qualities, and how many they are; G 0: all are alike


class Sums(NamedTuple):
    """What a round's clients add up to."""

    mean: MeanState  # [C, p] weighted sum of what arrived, [C, 1] weights
    answered: Any  # [C, 1] how many arrived
    seen: Seen
    n_outside: Any  # numbers beyond the range of a secure sum
    personal: dict[str, Any]  # {name: [C, n_clients, ...]} what clients keep


class LearntBlock(NamedTuple):
    """What a block of clients brings out of a round."""

    ids: Any  # [C, b]
    is_there: Any  # [C, b] False for padding
    groups: Any  # [C, b]
    searches: Any  # [C, b] 0 for padding
    weights: Any  # [C, b] 0 for padding and for those whose update never arrives
    updates: Any  # [C, b, p]
    qualities: Any  # [C, b] mean nDCG of what each client saw
    personal: dict[str, Any]  # {name: [C, b, ...]} what they keep from now on


def compile_rounds(setting: Setting, plan: Plan, *, platform: str) -> Advance:
    """`advance(state, first, n)` for n <= CHUNK rounds, compiled once per method and shapes, whatever the batches."""
    place = find_place(plan.shape, platform)
    arrays = (gather_queries(setting, plan), gather_cells(setting, plan), dict(initial_state(setting, plan)))
    queries, cells, start = jax.device_put(arrays, place)
    numbers = jax.device_put((np.int32(1), np.int32(1), draw_noise(setting, plan, 1, 0)), place)
    method = without_amount(setting.method)
    program = compile_program(run_rounds, method, plan.shape, (queries, cells, start, *numbers), place)

    def advance(state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        numbers = jax.device_put((np.int32(first), np.int32(n), draw_noise(setting, plan, first, n)), place)
        new, seen, n_drawn, n_outside = program(queries, cells, jax.device_put(dict(state), place), *numbers)
        if setting.method.population.is_poisson:
            check_drawn(setting.method.population, int(n_drawn))
        ADDITIONS[method.summation.name].check(method, int(n_outside))
        shown: Seen = jax.tree.map(lambda column: np.asarray(column)[:n], seen)
        return new, name_seen(shown, setting.groups_of(0, 0) if setting.groups else ())

    return advance


def name_seen(seen: Seen, groups: Sequence[Group]) -> dict[str, Any]:
    """What rounds showed, [n, C] by name."""
    with np.errstate(invalid="ignore"):  # Why: a group of which nobody took part has no mean
        means = seen.groups[..., 0] / seen.groups[..., 1] if len(groups) > 1 else seen.quality[..., None]
    by_group = {f"{ONLINE}/{groups[g].name}": means[..., g] for g in measured_groups(groups)}
    is_honest = np.array([group.is_honest for group in groups], bool)
    honest = seen.groups[..., is_honest, :].sum(axis=-2) if not is_honest.all() else None
    online = seen.quality if honest is None else honest[..., 0] / np.maximum(honest[..., 1], 1)
    return {ONLINE: online, SEARCHES: seen.searches, **by_group}


def draw_noise(setting: Setting, plan: Plan, first: int, n: int) -> Any:
    """[CHUNK, C, p] of each round's mean, or int32 of its secure sum, drawn on the host as the plain round draws it;
    None without protection."""
    method = setting.method
    if not method.protection.has_noise:
        return None
    addition, keys = ADDITIONS[method.summation.name], [cell_key(setting, cell) for cell in plan.cells]
    noise: Array = np.zeros((CHUNK, len(keys), method.n_sent), addition.dtype)
    for i in range(n):
        for cell, key in enumerate(keys):
            noise[i, cell] = addition.draw_noise(method, key, method.round_of(first + i))
    return noise


def find_place(shape: Shape, platform: str) -> Any:
    """One device, or a copy on each of several."""
    if shape.n_devices == 1:
        return SingleDeviceSharding(jax.devices(platform)[0])
    return NamedSharding(_mesh(shape, platform), PartitionSpec())


@cache
def _mesh(shape: Shape, platform: str | None = None) -> Mesh:
    return Mesh(np.array(jax.devices(platform)[: shape.n_devices]), (_CLIENTS,))


def compile_program(function: Callable[..., Any], method: Method, shape: Shape, example: Any, place: Any) -> Any:
    """`function(method, shape, *example)` for arrays like those of the example, compiled once while it is in use."""
    layout = (place, *((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(example)))
    recorded = RECORDED if shape.kernel == "compiled" else None
    name = (function.__name__, method, shape, layout, recorded)
    with _COMPILING:
        program = _PROGRAMS.pop(name, None)
        if program is None:
            options = None if recorded is None else {"xla_gpu_enable_command_buffer": recorded}
            program = jax.jit(partial(function, method, shape)).lower(*example).compile(options)
        _PROGRAMS[name] = program
        while len(_PROGRAMS) > MOST_PROGRAMS:
            _PROGRAMS.popitem(last=False)
    return program


def without_amount(method: Method) -> Method:
    """The method for which one program serves all amounts of noise, which come from the host."""
    if method.is_secure:
        return method  # Why: a secure sum's range follows from the noise
    return replace(method, exchange=method.exchange.without_amount(), noise_number=None)


def run_rounds(
    method: Method, shape: Shape, queries: Queries, cells: Cells, state: NamedArrays, first: Any, n: Any, noise: Any
) -> tuple[NamedArrays, Seen, Any, Any]:
    """n rounds in a row; twin of a loop over `round.run_round`. noise [CHUNK, C, p] or None.

    Last what the host refuses: the size of the largest cohort that was drawn, for which there may have been no room,
    and how many numbers were beyond the range of a secure sum.
    """

    def body(i: Any, carry: tuple[NamedArrays, Seen, Any, Any]) -> tuple[NamedArrays, Seen, Any, Any]:
        own = None if noise is None else noise[i]
        round = method.round_of(first + i)
        cohort = sample_cohort(method, shape, cells, round)
        state, seen, n_outside = run_round(method, shape, queries, cells, carry[0], round, cohort, own)
        recorded = jax.tree.map(lambda column, value: column.at[i].set(value), carry[1], seen)
        return state, recorded, jnp.maximum(carry[2], cohort.n.max()), carry[3] + n_outside

    # Why: the number of rounds is a run-time value, so that a run cut anywhere executes the same code.
    nothing = jax.tree.map(lambda column: jnp.zeros((CHUNK, *column.shape), column.dtype), _nothing_seen(method, shape))
    return lax.fori_loop(0, n, body, (state, nothing, jnp.int32(0), jnp.int32(0)))


def run_round(
    method: Method,
    shape: Shape,
    queries: Queries,
    cells: Cells,
    state: NamedArrays,
    round: Any,
    cohort: Drawn,
    noise: Any,
) -> tuple[NamedArrays, Seen, Any]:
    """One round of every cell; noise [C, p] of its mean or secure sum, or None. Last: numbers beyond its range."""

    def update(i: Any, carry: tuple[NamedArrays, Seen, Any]) -> tuple[NamedArrays, Seen, Any]:
        state, before, n_outside = carry
        sums = aggregate_cohort(method, shape, queries, cells, state, cohort, round, i)
        combined = ADDITIONS[method.summation.name].finish(method, sums.mean, noise)
        is_heard = sums.answered >= method.quorum.needed(cohort.n)[:, None]
        moved = take_step(method, state, combined, is_heard)
        moved = {**moved, **sums.personal}
        quality = before.quality + sums.seen.quality / method.updates_per_round
        seen = Seen(quality, before.searches + sums.seen.searches, before.groups + sums.seen.groups)
        return moved, seen, n_outside + sums.n_outside

    return _repeat(method.updates_per_round, update, (state, _nothing_seen(method, shape), jnp.int32(0)))


def take_step(method: Method, state: NamedArrays, combined: Any, is_heard: Any) -> dict[str, Any]:
    """The server's step in every cell that heard from enough clients [C, 1]."""
    step, params = method.server_step(part_of(state, OPTIMISER), state[PARAMS], combined[:, : method.n_params])
    moved = {PARAMS: params, **with_owner(OPTIMISER, step), **absorb_means(method, state, combined)}

    def choose(new: Any, old: Any) -> Any:
        return jnp.where(is_heard.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return {**state, **{name: choose(new, state[name]) for name, new in moved.items()}}


def _nothing_seen(method: Method, shape: Shape) -> Seen:
    n_groups = method.population.n_groups if method.population.n_groups > 1 else 0
    groups = jnp.zeros((shape.n_cells, n_groups, 2))
    return Seen(jnp.zeros(shape.n_cells), jnp.zeros(shape.n_cells, jnp.int32), groups)


def _repeat(n: int, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """A loop, or just its body: XLA compiles the latter faster."""
    return body(jnp.int32(0), start) if n == 1 else lax.fori_loop(0, n, body, start)


def aggregate_cohort(
    method: Method,
    shape: Shape,
    queries: Queries,
    cells: Cells,
    state: NamedArrays,
    cohort: Drawn,
    round: Any,
    update: Any,
) -> Sums:
    """The weighted sum of what arrives, and what was shown; the clients divided among the devices."""

    def aggregate(device: Any, *arrays: Any) -> Sums:
        return aggregate_share(method, shape, *arrays, first=device * shape.share)

    arrays = (queries, cells, dict(state), cohort, jnp.asarray(round), jnp.asarray(update))
    if shape.n_devices == 1:
        return aggregate(0, *arrays)

    def on_each_device(*arrays: Any) -> Sums:
        return lax.psum(aggregate(lax.axis_index(_CLIENTS), *arrays), _CLIENTS)

    everywhere = PartitionSpec()
    divided = jax.shard_map(
        on_each_device, mesh=_mesh(shape), in_specs=everywhere, out_specs=everywhere, check_vma=False
    )
    summed: Sums = divided(*arrays)
    return summed


def aggregate_share(
    method: Method,
    shape: Shape,
    queries: Queries,
    cells: Cells,
    state: NamedArrays,
    cohort: Drawn,
    round: Any,
    update: Any,
    *,
    first: Any,
) -> Sums:
    """One device's clients, from place `first` of the cohort on: block after block, in order."""

    def add_block(block: Any, sums: Sums) -> Sums:
        now = {**state, **sums.personal}
        within = block * shape.block + jnp.arange(shape.block)
        learnt = learn_block(method, shape, queries, cells, now, cohort, round, update, within=within, first=first)
        return add_learnt(method, sums, learnt, cohort, round)

    nobody = jnp.zeros((shape.n_cells, 1), jnp.int32)
    nothing = jnp.zeros((shape.n_cells, method.n_sent), ADDITIONS[method.summation.name].dtype)
    own = personal_part(state)
    start = Sums(MeanState(nothing, nobody), nobody, _nothing_seen(method, shape), jnp.int32(0), own)
    sums: Sums = _repeat(shape.n_blocks, add_block, start)
    return sums


def learn_block(
    method: Method,
    shape: Shape,
    queries: Queries,
    cells: Cells,
    state: NamedArrays,
    cohort: Drawn,
    round: Any,
    update: Any,
    *,
    within: Any,
    first: Any,
) -> LearntBlock:
    """What the clients at places `first + within` [b] of the cohort learn, each by itself."""
    place = first + within
    is_there = (within < shape.share) & (place < cohort.n[:, None])
    ids = cohort.ids[:, jnp.minimum(place, shape.n_rows - 1)]
    rows = describe_rows(method, cells, ids, place, is_there=is_there, round=round, update=update)
    searches = rows.n_interactions.reshape(ids.shape)
    delta, quality, kept = learn_rows(method, shape, queries, cells, state, ids, rows)
    each = jnp.minimum(searches, 1) if method.counts_alike else searches
    weight = jnp.where(answers(method, cells, ids, round), each, 0)
    delta = clip_deltas(delta, *method.protection.clipping[1:])
    if method.keeps_updates:
        delta, records = keep_block(method, cells, state, cohort, round, ids, weight, delta)
        kept = {**kept, **records}
    updates, qualities = delta.reshape(*ids.shape, -1), quality.reshape(ids.shape)
    return LearntBlock(ids, is_there, rows.group.reshape(ids.shape), searches, weight, updates, qualities, kept)


def learn_rows(
    method: Method, shape: Shape, queries: Queries, cells: Cells, state: NamedArrays, ids: Any, rows: ClientRows
) -> tuple[Any, Any, dict[str, Any]]:
    """[n, n_sent] what each client sends, not clipped, [n] the quality of what it saw, and what clients keep."""
    learn = partial(find_learner(method, shape), method, shape, queries, cells)
    if method.remedy.has_memory:
        block = gather_block(state, ids, rows.n_interactions.reshape(ids.shape))
        start, shifts = begin_block(method, block)
        moved, quality = learn(start, rows) if shifts is None else learn(start, rows, shifts)
        sent, kept = finish_block(method, block, moved)
        return sent.reshape(len(moved), -1), quality, kept
    if shape.kernel and OWN_PARAMETERS not in state:
        return *learn(state[PARAMS], rows), {}
    start = jnp.repeat(state[PARAMS], shape.block, axis=0)
    if OWN_PARAMETERS not in state:
        return *learn(start, rows), {}
    places, cell = personal_places(method.ranker), jnp.arange(len(ids))[:, None]
    start = start.at[:, places].set(state[OWN_PARAMETERS][cell, ids].reshape(len(start), -1))
    delta, quality = learn(start, rows)
    kept = (start + delta)[:, places].reshape(*ids.shape, -1)
    return delta.at[:, places].set(0.0), quality, {OWN_PARAMETERS: kept}


def find_learner(method: Method, shape: Shape) -> Callable[..., tuple[Any, Any]]:
    if not shape.kernel:
        return LOCAL_LEARNERS[method.exchange.name].learn
    from hushrank.engine.gpu_kernel import learn_in_kernel  # Why here: a JAX without Pallas for Triton does the rest

    return learn_in_kernel


def add_learnt(method: Method, sums: Sums, learnt: LearntBlock, cohort: Drawn, round: Any) -> Sums:
    """One block more."""
    weight = learnt.weights
    total, n_outside = ADDITIONS[method.summation.name].add(method, learnt.updates, weight)
    mean = MeanState(sums.mean.total + total, sums.mean.weight + weight.sum(axis=1, keepdims=True))
    shown = learnt.qualities.sum(axis=1) / jnp.maximum(cohort.n, 1)
    seen = Seen(
        sums.seen.quality + shown,
        sums.seen.searches + learnt.searches.sum(axis=1),
        sums.seen.groups + sum_groups(learnt, sums.seen.groups.shape[1]),
    )
    answered = sums.answered + (weight > 0).sum(axis=1, keepdims=True, dtype=jnp.int32)
    return Sums(mean, answered, seen, sums.n_outside + n_outside, put_back(method, sums.personal, learnt, round))


def sum_groups(learnt: LearntBlock, n_groups: int) -> Any:
    """[C, G, 2] the sum of each group's qualities in a block, and how many clients that were."""
    is_member = (learnt.groups[..., None] == jnp.arange(n_groups)) & learnt.is_there[..., None]  # [C, b, G]
    qualities = jnp.where(is_member, learnt.qualities[..., None], 0.0)
    return jnp.stack([qualities.sum(axis=1), is_member.sum(axis=1).astype(jnp.float32)], axis=-1)


def put_back(method: Method, personal: dict[str, Any], learnt: LearntBlock, round: Any) -> dict[str, Any]:
    """{name: [C, n_clients, ...]} with what the block's clients keep; padding is dropped."""

    def put(name: str, stored: Any) -> Any:
        places = jnp.where(learnt.is_there, learnt.ids.astype(jnp.int32), stored.shape[1])
        where: tuple[Any, ...] = (jnp.arange(len(stored))[:, None], places)
        where = (*where, find_column(method, stored, round)) if name == LENGTHS else where
        return stored.at[where].set(learnt.personal[name], mode="drop")

    return {name: put(name, stored) for name, stored in personal.items()}


def describe_rows(
    method: Method, cells: Cells, ids: Any, place: Any, *, is_there: Any, round: Any, update: Any
) -> ClientRows:
    """Ids [C, b] as rows: who searches how often, and with which draws."""
    if method.batch is None:
        each = jnp.asarray(method.population.interactions)[ids % len(method.population.interactions)]
        first = jnp.zeros_like(ids)
    else:
        each = jnp.ones(ids.shape, jnp.int32)
        first = jnp.broadcast_to(update * method.batch + place, ids.shape).astype(jnp.uint32)
    group = draw_groups(method, cells, ids, round)
    draws = LOCAL_LEARNERS[method.exchange.name].draws
    keys = fold_in(name_keys(cells.keys[:, None], draws, round)[:, None], ids[:, :, None]).reshape(-1, len(draws), 2)
    cell = jnp.broadcast_to(jnp.arange(len(ids))[:, None], ids.shape)
    return ClientRows(cell.ravel(), group.ravel(), jnp.where(is_there, each, 0).ravel(), first.ravel(), keys)
