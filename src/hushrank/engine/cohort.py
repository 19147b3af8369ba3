"""Who takes part in a round of a compiled program: twin of `federation/cohort.py`.

Shapes: C cells, b clients of a block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from hushrank.engine.inputs import Cells
from hushrank.engine.plan import Shape
from hushrank.engine.setting import Method
from hushrank.federation.cohort import is_present
from hushrank.streams import Purpose
from hushrank.streams_fast import draw_bits, draw_uniform, fold_in


class Drawn(NamedTuple):
    """The clients of a round."""

    ids: Any  # [C, n_rows]
    n: Any  # [C] how many of these there are; the rest is padding


def sample_cohort(method: Method, shape: Shape, cells: Cells, round: Any) -> Drawn:
    """Twin of `cohort.sample_ids`. A central run has one client, the server itself."""
    n_clients, size = method.population.n_clients, method.population.n_seats
    everybody = jnp.full(shape.n_cells, shape.n_rows, jnp.int32)
    if method.batch is not None:
        return Drawn(jnp.zeros((shape.n_cells, shape.n_rows), jnp.uint32), everybody)
    if method.population.draws_everybody:
        present = np.flatnonzero(is_present(method.population)).astype(np.uint32)
        return Drawn(jnp.broadcast_to(jnp.asarray(present), (shape.n_cells, shape.n_rows)), everybody)
    ids = jnp.broadcast_to(jnp.arange(n_clients, dtype=jnp.uint32), (shape.n_cells, n_clients))
    number = 0 if method.population.is_rotation else round
    draws = draw_bits(fold_in(name_keys(cells.keys, Purpose.COHORT, number)[:, None], ids), 1)[..., 0]
    if method.population.is_rotation:
        first = (round - 1) % n_clients * size  # Why first a remainder: it must fit into a word
        turn = jnp.argsort(draws, axis=-1, stable=True)[:, (first + jnp.arange(size)) % n_clients]
        return leave_out(method, shape, jnp.sort(turn, axis=-1).astype(jnp.uint32))
    if method.population.is_poisson:
        is_drawn = draws < jnp.uint32(method.population.threshold)
        is_drawn = is_drawn & is_present(method.population) if method.population.absent else is_drawn
        first = jnp.argsort(~is_drawn, axis=-1, stable=True)[:, : shape.n_rows].astype(jnp.uint32)
        return Drawn(first, is_drawn.sum(axis=-1, dtype=jnp.int32))
    return leave_out(
        method, shape, jnp.sort(jnp.argsort(draws, axis=-1, stable=True)[:, :size], axis=-1).astype(jnp.uint32)
    )


def leave_out(method: Method, shape: Shape, ids: Any) -> Drawn:
    """Of the clients that were drawn [C, n_seats], in ascending order, those that are there."""
    if not method.population.absent:
        return Drawn(ids, jnp.full(shape.n_cells, shape.n_rows, jnp.int32))
    is_there = jnp.asarray(is_present(method.population))[ids]
    first = jnp.argsort(~is_there, axis=-1, stable=True)[:, : shape.n_rows]
    return Drawn(jnp.take_along_axis(ids, first, axis=-1), is_there.sum(axis=-1, dtype=jnp.int32))


def draw_groups(method: Method, cells: Cells, ids: Any, round: Any) -> Any:
    """[C, b] as whom each client behaves; twin of `cohort.draw_groups`."""
    groups = method.population.groups
    if not method.population.regroup:
        return jnp.asarray(groups)[ids % len(groups)]
    key = fold_in(name_keys(cells.keys, Purpose.REGROUP, round)[:, None], ids)
    return jnp.asarray(groups)[draw_bits(key, 1)[..., 0] % len(groups)]


def answers(method: Method, cells: Cells, ids: Any, round: Any) -> Any:
    """[C, b] whose update arrives; twin of `cohort.answers`."""
    if method.population.dropout == 0:
        return jnp.ones(ids.shape, bool)
    key = fold_in(name_keys(cells.keys, Purpose.DROPOUT, round)[:, None], ids)
    return draw_uniform(key, 1)[..., 0] >= method.population.dropout


def name_keys(keys: Any, purpose: Purpose | tuple[Purpose, ...], round: Any) -> Any:
    """[..., 2] the cells' keys for a purpose and round; for several purposes [C, 1, 2] gives [C, n_purposes, 2]."""
    return fold_in(fold_in(keys, jnp.asarray(purpose, jnp.uint32)), jnp.asarray(round))
