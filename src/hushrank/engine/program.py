"""One batch of cells as one compiled program: twin of a loop over `round.run_round`, for all cells at once.

Shapes: C cells, b clients of a block, n = C * b rows, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from hushrank.aggregation.mean import MeanState, mean_finish
from hushrank.engine.gather import Cells, Queries, State
from hushrank.engine.local import Rows, learn_locally
from hushrank.engine.plan import Plan
from hushrank.engine.setting import Setting
from hushrank.streams import Purpose
from hushrank.streams_fast import draw_bits, draw_uniform, fold_in

CHUNK = 256  # Why: most rounds in one call; between calls the host looks at the clock, at signals and at the progress bar
_LOCAL = (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP)

Advance: TypeAlias = Callable[[Queries, Cells, State, int, int], tuple[State, Any]]


def compile_rounds(setting: Setting, plan: Plan) -> Advance:
    """`advance(queries, cells, state, first, n)`: the state after n <= CHUNK rounds, and [CHUNK, C] each one's online nDCG."""

    def advance(queries: Queries, cells: Cells, state: State, first: Any, n: Any) -> tuple[State, Any]:
        def body(i: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
            state, online = run_round(setting, plan, queries, cells, carry[0], first + i)
            return state, carry[1].at[i].set(online)

        # Why: the number of rounds is a run-time value, so that a run cut anywhere executes the same code.
        return lax.fori_loop(0, n, body, (state, jnp.zeros((CHUNK, len(plan.cells)))))

    compiled: Advance = jax.jit(advance)
    return compiled


def run_round(setting: Setting, plan: Plan, queries: Queries, cells: Cells, state: State, round: Any) -> tuple[State, Any]:
    """The new state, and [C] the mean nDCG of the lists that people saw."""
    cohort = sample_cohort(setting, plan, cells, round)
    sums = 1.0 if setting.batch is None else float(setting.batch)  # Why: a central batch sums its gradients, a mean divides

    def update(i: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
        state, online = carry
        mean, quality = aggregate_cohort(setting, plan, queries, cells, state.params, cohort, round, i)
        server, params = setting.server_step(state.server, state.params, sums * mean_finish(mean))
        moved = jax.tree.map(partial(jnp.where, mean.weight > 0), State(params, server), state)
        return moved, online + quality / setting.updates_per_round

    start = (state, jnp.zeros(len(plan.cells)))
    return update(jnp.int32(0), start) if setting.updates_per_round == 1 else lax.fori_loop(0, setting.updates_per_round, update, start)


def sample_cohort(setting: Setting, plan: Plan, cells: Cells, round: Any) -> Any:
    """[C, n_rows] client ids; twin of `cohort.sample_cohort`. A central run has one client, the server itself."""
    n_clients, size = setting.population.n_clients, setting.population.cohort_size
    if setting.batch is not None:
        return jnp.zeros((len(plan.cells), plan.n_rows), jnp.uint32)
    ids = jnp.broadcast_to(jnp.arange(n_clients, dtype=jnp.uint32), (len(plan.cells), n_clients))
    if size == n_clients:
        return ids
    draws = draw_bits(fold_in(name_keys(cells.keys, Purpose.COHORT, round)[:, None], ids), 1)[..., 0]
    return jnp.sort(jnp.argsort(draws, axis=-1, stable=True)[:, :size], axis=-1).astype(jnp.uint32)


def aggregate_cohort(
    setting: Setting, plan: Plan, queries: Queries, cells: Cells, params: Any, cohort: Any, round: Any, update: Any
) -> tuple[MeanState, Any]:
    """The weighted sum [C, p] of what arrives, and [C] the mean nDCG of what was shown: block after block, in order."""
    n_cells = len(plan.cells)

    def add_block(block: Any, carry: tuple[MeanState, Any]) -> tuple[MeanState, Any]:
        mean, quality = carry
        place = block * plan.block + jnp.arange(plan.block)
        ids = cohort[:, jnp.minimum(place, plan.n_rows - 1)]
        rows = describe_rows(setting, cells, ids, place, is_there=place < plan.n_rows, round=round, update=update)
        delta, shown = learn_locally(setting, plan, queries, cells, jnp.repeat(params, plan.block, axis=0), rows)
        weight = jnp.where(answers(setting, cells, ids, round), rows.n_interactions.reshape(ids.shape), 0)
        total = jnp.einsum("cb,cbp->cp", weight.astype(jnp.float32), delta.reshape(*ids.shape, -1))
        added = MeanState(mean.total + total, mean.weight + weight.sum(axis=1, keepdims=True))
        return added, quality + shown.reshape(ids.shape).sum(axis=1) / plan.n_rows

    start = (MeanState(jnp.zeros_like(params), jnp.zeros((n_cells, 1), jnp.int32)), jnp.zeros(n_cells))
    return add_block(jnp.int32(0), start) if plan.n_blocks == 1 else lax.fori_loop(0, plan.n_blocks, add_block, start)


def describe_rows(setting: Setting, cells: Cells, ids: Any, place: Any, *, is_there: Any, round: Any, update: Any) -> Rows:
    """Ids [C, b] as rows: who searches how often, and with which draws."""
    if setting.batch is None:
        each = jnp.asarray(setting.population.interactions)[ids % len(setting.population.interactions)]
        first = jnp.zeros_like(ids)
    else:
        each = jnp.ones(ids.shape, jnp.int32)
        first = jnp.broadcast_to(update * setting.batch + place, ids.shape).astype(jnp.uint32)
    keys = {purpose: fold_in(name_keys(cells.keys, purpose, round)[:, None], ids).reshape(-1, 2) for purpose in _LOCAL}
    cell = jnp.broadcast_to(jnp.arange(len(ids))[:, None], ids.shape)
    return Rows(cell.ravel(), jnp.where(is_there, each, 0).ravel(), first.ravel(), keys)


def answers(setting: Setting, cells: Cells, ids: Any, round: Any) -> Any:
    """[C, b] whose update arrives; twin of `cohort.answers`."""
    if setting.population.dropout == 0:
        return jnp.ones(ids.shape, bool)
    key = fold_in(name_keys(cells.keys, Purpose.DROPOUT, round)[:, None], ids)
    return draw_uniform(key, 1)[..., 0] >= setting.population.dropout


def name_keys(keys: Any, purpose: Purpose, round: Any) -> Any:
    """[C, 2] the cells' keys for one purpose and round."""
    return fold_in(fold_in(keys, jnp.uint32(purpose)), jnp.asarray(round))
