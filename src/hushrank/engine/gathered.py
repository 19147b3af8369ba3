"""Rounds whose server needs all updates at once: the clients as one compiled program, the server's part on the host.

Twin of `fused.run_fused_round` for accelerators. Rules and attacks are plain NumPy functions.
Shapes: C cells, p parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hushrank.engine.cohort import sample_cohort
from hushrank.engine.combine import CellCohort, Received, combine_cells, describe_cells, gather_cohort
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
from hushrank.engine.memory import personal_part
from hushrank.engine.plan import Plan, Shape
from hushrank.engine.program import (
    LearntBlock,
    compile_program,
    find_place,
    learn_block,
    put_back,
    without_amount,
)
from hushrank.engine.record import stack_named
from hushrank.engine.setting import Method, Setting, attacks_of
from hushrank.federation.keeping import calibrate_within, note_own
from hushrank.federation.state import KEPT_LENGTHS, LENGTHS, OWN_PARAMETERS
from hushrank.types import Array, NamedArrays
from hushrank.unlearning.lengths import place_of


def compile_gathered(setting: Setting, plan: Plan, *, platform: str) -> Advance:
    """`advance(state, first, n)`: the state after n rounds, and what they showed."""
    place, method = find_place(plan.shape, platform), setting.method
    arrays = (gather_queries(setting, plan), gather_cells(setting, plan), _on_device(initial_state(setting, plan)))
    queries, cells, start = jax.device_put(arrays, place)
    example = (queries, cells, start, jax.device_put(np.int32(1), place))
    program = compile_program(gather_updates, learnt_alike(method), plan.shape, example, place)
    keys = [cell_key(setting, cell) for cell in plan.cells]
    attacks = attacks_of(setting, [cell.fold for cell in plan.cells])

    def advance(state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        shown = []
        for round in map(method.round_of, range(first, first + n)):
            device_state, number = jax.device_put((_on_device(state), np.int32(round)), place)
            updates, qualities, personal = program(queries, cells, device_state, number)
            updates, qualities = np.asarray(updates), np.asarray(qualities)
            cohorts = [gather_cohort(method, key, round) for key in keys]
            sizes = [len(cohort.ids) for cohort in cohorts]
            state = {**state, **{name: np.asarray(kept) for name, kept in personal.items()}}
            state, sent = keep_all(method, state, [updates[c, :n] for c, n in enumerate(sizes)], cohorts, round)
            collected = [each[cohort.weights > 0] for each, cohort in zip(sent, cohorts, strict=True)]
            state, evidence = combine_cells(method, state, Received(collected, cohorts, keys, attacks, round))
            seen = describe_cells(setting, plan, cohorts, [[qualities[c, :size]] for c, size in enumerate(sizes)])
            shown.append({**seen, **evidence})
        return state, stack_named(shown)

    return advance


def learnt_alike(method: Method) -> Method:
    """The method for which one program serves all rules and attacks, which come after it."""
    alike = replace(without_amount(method), rule=None, attack=None, n_malicious=0, stride=1, first_round=1)
    return replace(alike, keep_every=None, calibrates=False, keeps_sums=False)


def keep_all(
    method: Method, state: NamedArrays, updates: list[Array], cohorts: Sequence[CellCohort], round: int
) -> tuple[NamedArrays, list[Array]]:
    """What clients keep of each cell's updates [n, p], and these, scaled where they have to be; see `keeping.py`."""
    if method.calibrates:
        place = place_of(round, method.stride)
        updates = [
            calibrate_within(
                state[PARAMS][c], sent, state[KEPT_LENGTHS][c, cohort.ids, place], method.protection.clipping
            )
            for c, (sent, cohort) in enumerate(zip(updates, cohorts, strict=True))
        ]
    if method.keep_every is None or not method.notes(round):
        return state, updates
    lengths = [
        note_own(state[LENGTHS][c], cohort.ids, sent, round=round, every=method.keep_every)
        for c, (sent, cohort) in enumerate(zip(updates, cohorts, strict=True))
    ]
    return {**state, LENGTHS: np.stack(lengths)}, updates


def _on_device(state: NamedArrays) -> dict[str, Any]:
    """What clients need of the state."""
    return {name: state[name] for name in (PARAMS, OWN_PARAMETERS) if name in state}


def gather_updates(
    method: Method, shape: Shape, queries: Queries, cells: Cells, state: NamedArrays, round: Any
) -> tuple[Any, Any, Any]:
    """Updates [C, n_rows, p] and qualities [C, n_rows] of all clients in the order of the cohort; the new own ones."""
    cohort = sample_cohort(method, shape, cells, round)

    def learn(block: Any) -> LearntBlock:
        within = block * shape.block + jnp.arange(shape.block)
        one = jnp.int32(0)  # the only step of the server in a round, from the first client on
        return learn_block(method, shape, queries, cells, state, cohort, round, one, within=within, first=one)

    learnt: LearntBlock = jax.tree.map(_join_blocks, lax.map(learn, jnp.arange(shape.n_blocks)))
    own = put_back(method, personal_part(state), learnt, round)
    return learnt.updates[:, : shape.n_rows], learnt.qualities[:, : shape.n_rows], own


def _join_blocks(blocks: Any) -> Any:
    """[C, n_blocks * b, ...] of [n_blocks, C, b, ...]."""
    return jnp.moveaxis(blocks, 0, 1).reshape(blocks.shape[1], -1, *blocks.shape[3:])
