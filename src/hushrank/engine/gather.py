"""What a batch computes on: the folds' queries end to end, the cells' keys and people, the first rankers. NumPy only.

Shapes: C cells, k shown documents, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hushrank.aggregation.server_step import ServerState
from hushrank.clicks.table import ClickTable, TableUser
from hushrank.engine.evaluate import ideal_gains
from hushrank.engine.plan import Cell, Plan
from hushrank.engine.setting import Setting
from hushrank.streams import Purpose, draw_normal, seed_key, stream
from hushrank.types import Array


class Queries(NamedTuple):
    """The training queries of a batch's folds, end to end: each fold once, however many cells use it."""

    features: Any  # [n_documents, n_features]
    columns: Any  # n_features times [n_documents], or None
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


class Seen(NamedTuple):
    """What one round shows of itself; of several rounds with a leading axis."""

    quality: Any  # [C] mean nDCG of the lists that people saw: over a client's lists, then over clients
    searches: Any  # [C] how many lists that were


# advance(state, first, n): the state after n rounds from `first` on, and what they showed
Advance: TypeAlias = Callable[[State, int, int], tuple[State, Seen]]


def gather_queries(setting: Setting, plan: Plan) -> Queries:
    """Padded to the plan's sizes, so that batches with other folds run the same program."""
    trains = [setting.dataset.folds[fold].train for fold in plan.folds]
    firsts = np.cumsum([0] + [train.n_documents for train in trains])[:-1]
    starts = [train.starts[:-1] + first for train, first in zip(trains, firsts, strict=True)]
    ideals = [ideal_gains(train, setting.method.k) for train in trains]
    features = np.zeros((plan.shape.n_documents, setting.dataset.n_features), np.float32)
    np.concatenate([train.features for train in trains], out=features[: sum(train.n_documents for train in trains)])
    return Queries(
        features=features,
        columns=tuple(np.ascontiguousarray(features.T)) if plan.shape.by_column else None,
        grades=_padded([train.grades for train in trains], plan.shape.n_documents, np.int32),
        starts=_padded(starts, plan.shape.n_queries, np.int32),
        lengths=_padded([train.lengths for train in trains], plan.shape.n_queries, np.int32),
        ideals=_padded(ideals, plan.shape.n_queries, np.float32),
    )


def _padded(parts: list[Array], size: int, dtype: type) -> Any:
    """[size] the parts end to end, zeros after them."""
    joined: Array = np.concatenate(parts).astype(dtype)
    return np.concatenate([joined, np.zeros(size - len(joined), dtype)])


def gather_cells(setting: Setting, plan: Plan) -> Cells:
    sizes = [setting.dataset.folds[fold].train.n_queries for fold in plan.folds]
    firsts = np.cumsum([0, *sizes])
    places = [plan.folds.index(cell.fold) for cell in plan.cells]
    tables = [click_table(setting, cell) for cell in plan.cells]
    n_grades = max(len(table.click) for table in tables)
    return Cells(
        keys=np.stack([cell_key(setting, cell) for cell in plan.cells]),
        first_query=np.array(firsts[places], np.int32),
        n_queries=np.array([sizes[place] for place in places], np.uint32),
        examine=np.array([table.examine for table in tables], np.float32),
        click=np.array([_widened(table.click, n_grades) for table in tables], np.float32),
        stop=np.array([_widened(table.stop, n_grades) for table in tables], np.float32),
    )


def person_table(setting: Setting, cell: Cell) -> ClickTable | None:
    """The click table of the cell's person; None for one that is something else."""
    user = setting.users[cell.user][1]
    return user.as_table(setting.method.k) if isinstance(user, TableUser) else None


def click_table(setting: Setting, cell: Cell) -> ClickTable:
    table = person_table(setting, cell)
    if table is None:
        name = setting.users[cell.user][0]
        raise ValueError(f"clicks={name} is no table of probabilities: the fast engines cannot run it.")
    return table


def _widened(table: tuple[float, ...], n_grades: int) -> tuple[float, ...]:
    """A shorter person's table beside a longer one's: grades beyond it do not occur (the recipe checked)."""
    return table + (0.0,) * (n_grades - len(table))


def cell_key(setting: Setting, cell: Cell) -> Array:
    """[2] The user is not in it: different people meet the same queries and draws, which pairs the comparison."""
    return stream(seed_key(setting.seed), cell.repeat, setting.dataset.folds[cell.fold].number)


def initial_params(setting: Setting, cell: Cell) -> Array:
    """[p] the ranker that everybody starts with."""
    if setting.start is not None:
        return np.asarray(setting.start, np.float32)
    normals = draw_normal(stream(cell_key(setting, cell), Purpose.INITIAL), setting.method.n_params)
    return setting.method.ranker.initial(normals).astype(np.float32)


def initial_state(setting: Setting, plan: Plan) -> State:
    params = np.stack([initial_params(setting, cell) for cell in plan.cells])
    return State(params, setting.method.server_step.init(params))
