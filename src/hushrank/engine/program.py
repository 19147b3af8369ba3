"""One batch of cells as one compiled program: twin of a loop over `round.run_round`, for all cells at once.

Shapes: C cells, b clients of a block, n = C * b rows, p parameters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from hushrank.aggregation.mean import MeanState, mean_finish
from hushrank.engine.es_local import ES_DRAWS, evolve_locally
from hushrank.engine.gather import (
    Advance,
    Cells,
    Queries,
    Seen,
    State,
    cell_key,
    gather_cells,
    gather_queries,
    initial_state,
)
from hushrank.engine.local import DRAWS, ClientRows, learn_locally
from hushrank.engine.noise import mean_noise, noise_steps
from hushrank.engine.plan import CHUNK, Plan, Shape
from hushrank.engine.setting import Method, Setting
from hushrank.federation.cohort import check_drawn
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose
from hushrank.streams_fast import draw_bits, draw_uniform, fold_in

_CLIENTS = "clients"  # the axis that devices divide
_PROGRAMS: dict[Any, Any] = {}
_COMPILING = threading.Lock()


class Drawn(NamedTuple):
    """The clients of a round."""

    ids: Any  # [C, n_rows]
    n: Any  # [C] how many of these there are; the rest is padding


class Sums(NamedTuple):
    """What a round's clients add up to."""

    mean: MeanState  # [C, p] weighted sum of what arrived, [C, 1] weights
    answered: Any  # [C, 1] how many arrived
    seen: Seen
    n_outside: Any  # numbers beyond the range of a secure sum


def compile_rounds(setting: Setting, plan: Plan, *, platform: str) -> Advance:
    """`advance(state, first, n)` for n <= CHUNK rounds, compiled once per method and shapes, whatever the batches."""
    arrays = (gather_queries(setting, plan), gather_cells(setting, plan), initial_state(setting, plan))
    place = find_place(plan.shape, platform)
    queries, cells, start = jax.device_put(arrays, place)
    noise = jax.device_put(draw_noise(setting, plan, 1, 0), place)
    program = compile_program(setting.method, plan.shape, queries, cells, start, noise, place)

    def advance(state: State, first: int, n: int) -> tuple[State, Seen]:
        numbers = jax.device_put((np.int32(first), np.int32(n), draw_noise(setting, plan, first, n)), place)
        new, seen, n_drawn, n_outside = program(queries, cells, jax.device_put(state, place), *numbers)
        if setting.method.population.is_poisson:
            check_drawn(setting.method.population, int(n_drawn))
        if setting.method.secure_sum is not None:
            setting.method.secure_sum.check_range(int(n_outside))
        return new, jax.tree.map(lambda column: np.asarray(column)[:n], seen)

    return advance


def draw_noise(setting: Setting, plan: Plan, first: int, n: int) -> Any:
    """[CHUNK, C, p] of each round's mean, or int32 of its secure sum, drawn on the host as the plain round draws it;
    None without protection."""
    method, format = setting.method, setting.method.secure_sum
    if not method.protection.has_noise:
        return None
    keys = [cell_key(setting, cell) for cell in plan.cells]
    noise = np.zeros((CHUNK, len(keys), method.n_params), np.float32 if format is None else np.int32)
    for i in range(n):
        for cell, key in enumerate(keys):
            if format is None:
                noise[i, cell] = mean_noise(method, key, first + i)
            else:
                noise[i, cell] = noise_steps(method, format, key, first + i).astype(np.int32)
    return noise


def find_place(shape: Shape, platform: str) -> Any:
    """One device, or a copy on each of several."""
    if shape.n_devices == 1:
        return SingleDeviceSharding(jax.devices(platform)[0])
    return NamedSharding(_mesh(shape, platform), PartitionSpec())


@cache
def _mesh(shape: Shape, platform: str | None = None) -> Mesh:
    return Mesh(np.array(jax.devices(platform)[: shape.n_devices]), (_CLIENTS,))


def compile_program(
    method: Method, shape: Shape, queries: Queries, cells: Cells, state: State, noise: Any, place: Any
) -> Any:
    method = without_amount(method)
    example = (queries, cells, state, *jax.device_put((np.int32(1), np.int32(1)), place), noise)
    layout = (place, *((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(example)))
    with _COMPILING:
        if (method, shape, layout) not in _PROGRAMS:
            _PROGRAMS[method, shape, layout] = jax.jit(partial(run_rounds, method, shape)).lower(*example).compile()
    return _PROGRAMS[method, shape, layout]


def without_amount(method: Method) -> Method:
    """The method for which one program serves all amounts of noise, which come from the host."""
    if method.is_secure:
        return method  # Why: a secure sum's range follows from the noise
    return replace(method, exchange=method.exchange.without_amount())


def run_rounds(
    method: Method, shape: Shape, queries: Queries, cells: Cells, state: State, first: Any, n: Any, noise: Any
) -> tuple[State, Seen, Any, Any]:
    """n rounds in a row; twin of a loop over `round.run_round`. noise [CHUNK, C, p] or None.

    Last what the host refuses: the size of the largest cohort that was drawn, for which there may have been no room,
    and how many numbers were beyond the range of a secure sum.
    """

    def body(i: Any, carry: tuple[State, Seen, Any, Any]) -> tuple[State, Seen, Any, Any]:
        own = None if noise is None else noise[i]
        cohort = sample_cohort(method, shape, cells, first + i)
        state, seen, n_outside = run_round(method, shape, queries, cells, carry[0], first + i, cohort, own)
        recorded = jax.tree.map(lambda column, value: column.at[i].set(value), carry[1], seen)
        return state, recorded, jnp.maximum(carry[2], cohort.n.max()), carry[3] + n_outside

    # Why: the number of rounds is a run-time value, so that a run cut anywhere executes the same code.
    nothing = Seen(jnp.zeros((CHUNK, shape.n_cells)), jnp.zeros((CHUNK, shape.n_cells), jnp.int32))
    return lax.fori_loop(0, n, body, (state, nothing, jnp.int32(0), jnp.int32(0)))


def run_round(
    method: Method, shape: Shape, queries: Queries, cells: Cells, state: State, round: Any, cohort: Drawn, noise: Any
) -> tuple[State, Seen, Any]:
    """One round of every cell; noise [C, p] of its mean or secure sum, or None. Last: numbers beyond its range."""
    times = 1.0 if method.batch is None else float(method.batch)  # Why: a central batch sums, a mean divides

    def update(i: Any, carry: tuple[State, Seen, Any]) -> tuple[State, Seen, Any]:
        state, before, n_outside = carry
        sums = aggregate_cohort(method, shape, queries, cells, state.params, cohort, round, i)
        if method.secure_sum is None:
            combined = finish_mean(method, sums.mean)
            combined = times * combined if noise is None else combined + noise
        else:
            combined = finish_mean(method, open_sum(method.secure_sum, sums.mean, noise))
        server, params = method.server_step(state.server, state.params, combined)
        is_heard = sums.answered >= method.quorum.needed(cohort.n)[:, None]
        moved = jax.tree.map(partial(jnp.where, is_heard), State(params, server), state)
        quality = before.quality + sums.seen.quality / method.updates_per_round
        return moved, Seen(quality, before.searches + sums.seen.searches), n_outside + sums.n_outside

    return _repeat(method.updates_per_round, update, (state, _nothing_seen(shape), jnp.int32(0)))


def finish_mean(method: Method, mean: MeanState) -> Any:
    return mean_finish(mean) if method.divisor is None else mean.total / method.divisor


def open_sum(format: SumFormat, mean: MeanState, noise: Any) -> MeanState:
    """The weighted sum that whole numbers modulo 2^32 stand for; noise [C, p] in such numbers, or None."""
    words = mean.total if noise is None else mean.total + noise
    return MeanState(words.astype(jnp.float32) * format.step, mean.weight)


def add_words(format: SumFormat, delta: Any, weight: Any) -> tuple[Any, Any]:
    """[C, p] int32, twin of `SumFormat.add` for updates [C, b, p] of weights [C, b]; and how many are out of range.

    Exact: a float32 number over a power of two is one, rounded too, and 32-bit sums wrap as the protocol's do.
    """
    steps = jnp.rint(delta / format.step).astype(jnp.int32)
    n_outside = jnp.sum(~(jnp.abs(delta) <= format.largest) & (weight > 0)[..., None], dtype=jnp.int32)
    return jnp.sum(weight.astype(jnp.int32)[..., None] * steps, axis=1, dtype=jnp.int32), n_outside


def _nothing_seen(shape: Shape) -> Seen:
    return Seen(jnp.zeros(shape.n_cells), jnp.zeros(shape.n_cells, jnp.int32))


def _repeat(n: int, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """A loop, or just its body: XLA compiles the latter faster."""
    return body(jnp.int32(0), start) if n == 1 else lax.fori_loop(0, n, body, start)


def sample_cohort(method: Method, shape: Shape, cells: Cells, round: Any) -> Drawn:
    """Twin of `cohort.sample_ids`. A central run has one client, the server itself."""
    n_clients, size = method.population.n_clients, method.population.cohort_size
    everybody = jnp.full(shape.n_cells, shape.n_rows, jnp.int32)
    if method.batch is not None:
        return Drawn(jnp.zeros((shape.n_cells, shape.n_rows), jnp.uint32), everybody)
    ids = jnp.broadcast_to(jnp.arange(n_clients, dtype=jnp.uint32), (shape.n_cells, n_clients))
    if size == n_clients:
        return Drawn(ids, everybody)
    draws = draw_bits(fold_in(name_keys(cells.keys, Purpose.COHORT, round)[:, None], ids), 1)[..., 0]
    if method.population.is_poisson:
        is_drawn = draws < jnp.uint32(method.population.threshold)
        first = jnp.argsort(~is_drawn, axis=-1, stable=True)[:, : shape.n_rows].astype(jnp.uint32)
        return Drawn(first, is_drawn.sum(axis=-1, dtype=jnp.int32))
    return Drawn(jnp.sort(jnp.argsort(draws, axis=-1, stable=True)[:, :size], axis=-1).astype(jnp.uint32), everybody)


def aggregate_cohort(
    method: Method, shape: Shape, queries: Queries, cells: Cells, params: Any, cohort: Drawn, round: Any, update: Any
) -> Sums:
    """The weighted sum of what arrives, and what was shown; the clients divided among the devices."""

    def aggregate(device: Any, *arrays: Any) -> Sums:
        return aggregate_share(method, shape, *arrays, first=device * shape.share)

    arrays = (queries, cells, params, cohort, jnp.asarray(round), jnp.asarray(update))
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
    params: Any,
    cohort: Drawn,
    round: Any,
    update: Any,
    *,
    first: Any,
) -> Sums:
    """One device's clients, from place `first` of the cohort on: block after block, in order."""

    def add_block(block: Any, sums: Sums) -> Sums:
        within = block * shape.block + jnp.arange(shape.block)
        place = first + within
        is_there = (within < shape.share) & (place < cohort.n[:, None])
        ids = cohort.ids[:, jnp.minimum(place, shape.n_rows - 1)]
        rows = describe_rows(method, cells, ids, place, is_there=is_there, round=round, update=update)
        learn = learn_locally if method.evolution is None else evolve_locally
        delta, quality = learn(method, shape, queries, cells, jnp.repeat(params, shape.block, axis=0), rows)
        searches = rows.n_interactions.reshape(ids.shape)
        each = jnp.minimum(searches, 1) if method.counts_alike else searches
        weight = jnp.where(answers(method, cells, ids, round), each, 0)
        if method.secure_sum is None:
            total = jnp.einsum("cb,cbp->cp", weight.astype(jnp.float32), delta.reshape(*ids.shape, -1))
            n_outside = jnp.int32(0)
        else:
            total, n_outside = add_words(method.secure_sum, delta.reshape(*ids.shape, -1), weight)
        mean = MeanState(sums.mean.total + total, sums.mean.weight + weight.sum(axis=1, keepdims=True))
        shown = quality.reshape(ids.shape).sum(axis=1) / jnp.maximum(cohort.n, 1)
        seen = Seen(sums.seen.quality + shown, sums.seen.searches + searches.sum(axis=1))
        answered = sums.answered + (weight > 0).sum(axis=1, keepdims=True, dtype=jnp.int32)
        return Sums(mean, answered, seen, sums.n_outside + n_outside)

    nobody = jnp.zeros((shape.n_cells, 1), jnp.int32)
    nothing = jnp.zeros(params.shape, jnp.float32 if method.secure_sum is None else jnp.int32)
    start = Sums(MeanState(nothing, nobody), nobody, _nothing_seen(shape), jnp.int32(0))
    sums: Sums = _repeat(shape.n_blocks, add_block, start)
    return sums


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
    draws = DRAWS if method.evolution is None else ES_DRAWS
    keys = fold_in(name_keys(cells.keys[:, None], draws, round)[:, None], ids[:, :, None]).reshape(-1, len(draws), 2)
    cell = jnp.broadcast_to(jnp.arange(len(ids))[:, None], ids.shape)
    return ClientRows(cell.ravel(), jnp.where(is_there, each, 0).ravel(), first.ravel(), keys)


def answers(method: Method, cells: Cells, ids: Any, round: Any) -> Any:
    """[C, b] whose update arrives; twin of `cohort.answers`."""
    if method.population.dropout == 0:
        return jnp.ones(ids.shape, bool)
    key = fold_in(name_keys(cells.keys, Purpose.DROPOUT, round)[:, None], ids)
    return draw_uniform(key, 1)[..., 0] >= method.population.dropout


def name_keys(keys: Any, purpose: Purpose | tuple[Purpose, ...], round: Any) -> Any:
    """[..., 2] the cells' keys for a purpose and round; for several purposes [C, 1, 2] gives [C, n_purposes, 2]."""
    return fold_in(fold_in(keys, jnp.asarray(purpose, jnp.uint32)), jnp.asarray(round))
