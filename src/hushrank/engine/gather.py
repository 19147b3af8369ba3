"""What a batch's program computes on: the folds' queries end to end, the cells' keys and people, the first rankers.

Shapes: C cells, k shown documents, p parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from hushrank.aggregation.server_step import ServerState
from hushrank.engine.plan import Cell, Plan
from hushrank.engine.setting import Setting
from hushrank.metrics.ndcg import ideal_dcg
from hushrank.streams import Purpose, draw_normal, seed_key, stream
from hushrank.types import Array, QuerySet


class Queries(NamedTuple):
    """The training queries of a batch's folds, end to end: each fold once, however many cells use it."""

    features: Any  # [n_documents, n_features]
    grades: Any  # [n_documents]
    starts: Any  # [n_queries] first document
    lengths: Any  # [n_queries]
    ideals: Any  # [n_queries] DCG@k of the best list


class Cells(NamedTuple):
    """What differs between the cells of a batch."""

    keys: Any  # [C, 2]
    first_query: Any  # [C] where the cell's fold begins
    n_queries: Any  # [C]
    examine: Any  # [C, k] the person's click table
    click: Any  # [C, n_grades]
    stop: Any  # [C, n_grades]


class State(NamedTuple):
    """What a round changes."""

    params: Any  # [C, p]
    server: ServerState  # [C, p] each


def gather_queries(setting: Setting, plan: Plan) -> Queries:
    trains = [setting.dataset.folds[fold].train for fold in plan.folds]
    firsts = np.cumsum([0] + [train.n_documents for train in trains])[:-1]
    starts = [train.starts[:-1] + first for train, first in zip(trains, firsts, strict=True)]
    return Queries(
        features=jnp.asarray(np.concatenate([train.features for train in trains]), jnp.float32),
        grades=jnp.asarray(np.concatenate([train.grades for train in trains]), jnp.int32),
        starts=jnp.asarray(np.concatenate(starts), jnp.int32),
        lengths=jnp.asarray(np.concatenate([train.lengths for train in trains]), jnp.int32),
        ideals=jnp.asarray(np.concatenate([ideal_gains(train, setting.k) for train in trains]), jnp.float32),
    )


def ideal_gains(queries: QuerySet, k: int) -> Array:
    """[n_queries] DCG@k of each query's best list."""
    return np.array([ideal_dcg(queries.grades[queries.rows(q)], k) for q in range(queries.n_queries)])


def gather_cells(setting: Setting, plan: Plan) -> Cells:
    sizes = [setting.dataset.folds[fold].train.n_queries for fold in plan.folds]
    firsts = np.cumsum([0, *sizes])
    places = [plan.folds.index(cell.fold) for cell in plan.cells]
    tables = [setting.users[cell.user][1].as_table(setting.k) for cell in plan.cells]
    n_grades = max(len(table.click) for table in tables)
    return Cells(
        keys=jnp.asarray(np.stack([cell_key(setting, cell) for cell in plan.cells])),
        first_query=jnp.asarray(firsts[places], jnp.int32),
        n_queries=jnp.asarray([sizes[place] for place in places], jnp.uint32),
        examine=jnp.asarray([table.examine for table in tables], jnp.float32),
        click=jnp.asarray([np.resize(table.click, n_grades) for table in tables], jnp.float32),
        stop=jnp.asarray([np.resize(table.stop, n_grades) for table in tables], jnp.float32),
    )


def cell_key(setting: Setting, cell: Cell) -> Array:
    """[2] The user is not in it: different people meet the same queries and draws, which pairs the comparison."""
    return stream(seed_key(setting.seed), cell.repeat, setting.dataset.folds[cell.fold].number)


def initial_params(setting: Setting, cell: Cell) -> Array:
    """[p] the ranker that everybody starts with."""
    normals = draw_normal(stream(cell_key(setting, cell), Purpose.INITIAL), setting.n_params)
    return setting.ranker.initial(normals).astype(np.float32)


def initial_state(setting: Setting, plan: Plan) -> State:
    params = jnp.asarray(np.stack([initial_params(setting, cell) for cell in plan.cells]))
    return State(params, setting.server_step.init(params))
