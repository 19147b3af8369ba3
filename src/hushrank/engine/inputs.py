"""What a batch computes on: queries end to end, the cells' keys and people, the first rankers. NumPy only.

Shapes: C cells, G groups of clients, k shown documents, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hushrank.clicks.table import ClickTable, TableUser
from hushrank.engine.evaluate import ideal_gains
from hushrank.engine.plan import Cell, Plan
from hushrank.engine.setting import Setting
from hushrank.federation.groups import Group
from hushrank.federation.personal import first_kept
from hushrank.federation.state import KEPT_LENGTHS, LENGTHS, OPTIMISER, SUMS, with_owner
from hushrank.streams import Purpose, draw_normal, seed_key, stream
from hushrank.types import Array, NamedArrays, QuerySet, User
from hushrank.unlearning.lengths import first_lengths

PARAMS = "params"  # in a batch's state: [C, p]
# advance(state, first, n): the state after n rounds from `first` on, and what each of them showed, [n, C]
Advance: TypeAlias = Callable[[NamedArrays, int, int], tuple[NamedArrays, NamedArrays]]


class Queries(NamedTuple):
    """Training queries end to end: each set of features once, however many groups and cells use it."""

    features: Any  # [n_documents, n_features], more columns where a GPU's kernel reads several at once
    columns: Any  # n_features times [n_documents], or None
    grades: Any  # [n_labels] of every group's documents
    starts: Any  # [n_queries] first row of the features
    labels: Any  # [n_queries] first row of the grades
    lengths: Any  # [n_queries]
    ideals: Any  # [n_queries] DCG@k of the best list


class Cells(NamedTuple):
    """What differs between the cells of a batch."""

    keys: Any  # [C, 2]
    first_query: Any  # [C, G] where the queries of the cell's place and group begin
    n_queries: Any  # [C, G]
    examine: Any  # [C, G, k] click tables
    click: Any  # [C, G, n_grades]
    stop: Any  # [C, G, n_grades]


def join_queries(sets: Sequence[QuerySet], k: int) -> Queries:
    """Query sets end to end, in their own types; sets with the same features share them, one alone is not copied."""
    unique = list({id(queries.features): queries.features for queries in sets}.values())
    places = dict(zip(map(id, unique), _firsts([len(features) for features in unique]), strict=True))
    labels = _firsts([queries.n_documents for queries in sets])
    return Queries(
        features=_end_to_end(unique),
        columns=None,
        grades=_end_to_end([queries.grades for queries in sets]),
        starts=_end_to_end([queries.starts[:-1] + places[id(queries.features)] for queries in sets]),
        labels=_end_to_end([queries.starts[:-1] + first for queries, first in zip(sets, labels, strict=True)]),
        lengths=_end_to_end([queries.lengths for queries in sets]),
        ideals=_end_to_end([ideal_gains(queries, k) for queries in sets]).astype(np.float32),
    )


def _firsts(sizes: Sequence[int]) -> list[int]:
    """Where each part begins when all stand end to end."""
    return [0, *np.cumsum(sizes)[:-1].tolist()]


def _end_to_end(parts: Sequence[Array]) -> Array:
    """One array of several; neighbours in memory, as the documents of divided clients are, are not copied."""
    base = parts[0].base
    if len(parts) > 1 and isinstance(base, np.ndarray) and base.shape[1:] == parts[0].shape[1:]:
        whole = base[: sum(len(part) for part in parts)]
        firsts = _firsts([len(part) for part in parts])
        if all(_is_piece(whole[first : first + len(part)], part) for first, part in zip(firsts, parts, strict=True)):
            return whole
    return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))


def _is_piece(piece: Array, part: Array) -> bool:
    """Whether both are the same memory."""
    alike = (piece.shape, piece.strides, piece.dtype) == (part.shape, part.strides, part.dtype)
    return alike and piece.ctypes.data == part.ctypes.data


def gather_queries(setting: Setting, plan: Plan) -> Queries:
    """Padded to the plan's sizes, so that batches with other folds run the same program."""
    sets = [group.train for place in plan.places for group in setting.groups_of(*place)]
    joined = join_queries(sets, setting.method.k)
    features = np.zeros((plan.shape.n_documents, plan.shape.n_columns), np.float32)
    features[: len(joined.features), : setting.dataset.n_features] = joined.features
    return Queries(
        features=features,
        columns=tuple(np.ascontiguousarray(features.T)) if plan.shape.by_column else None,
        grades=_padded(joined.grades, plan.shape.n_labels, np.int32),
        starts=_padded(joined.starts, plan.shape.n_queries, np.int32),
        labels=_padded(joined.labels, plan.shape.n_queries, np.int32),
        lengths=_padded(joined.lengths, plan.shape.n_queries, np.int32),
        ideals=_padded(joined.ideals, plan.shape.n_queries, np.float32),
    )


def _padded(values: Array, size: int, dtype: type) -> Array:
    """[size] the values, zeros after them."""
    return np.concatenate([values.astype(dtype), np.zeros(size - len(values), dtype)])


def gather_cells(setting: Setting, plan: Plan) -> Cells:
    sizes = np.array([[group.train.n_queries for group in setting.groups_of(*place)] for place in plan.places])
    firsts = np.reshape(_firsts(sizes.ravel().tolist()), sizes.shape)
    places = [plan.places.index(setting.place_of(cell.fold, cell.repeat)) for cell in plan.cells]
    tables = [click_tables(setting, cell) for cell in plan.cells]
    n_grades = max(table.click.shape[1] for table in tables)
    return Cells(
        keys=np.stack([cell_key(setting, cell) for cell in plan.cells]),
        first_query=firsts[places].astype(np.int32),
        n_queries=sizes[places].astype(np.uint32),
        examine=np.stack([table.examine for table in tables]),
        click=np.stack([_widened(table.click, n_grades) for table in tables]),
        stop=np.stack([_widened(table.stop, n_grades) for table in tables]),
    )


class GroupTables(NamedTuple):
    """The click tables of a cell's groups, float32."""

    examine: Array  # [G, k]
    click: Array  # [G, n_grades]
    stop: Array  # [G, n_grades]


def click_tables(setting: Setting, cell: Cell) -> GroupTables:
    tables = [_click_table(setting, cell, group) for group in setting.groups_of(cell.fold, cell.repeat)]
    n_grades = max(len(table.click) for table in tables)
    return GroupTables(
        np.array([table.examine for table in tables], np.float32),
        np.stack([_widened(np.array(table.click, np.float32), n_grades) for table in tables]),
        np.stack([_widened(np.array(table.stop, np.float32), n_grades) for table in tables]),
    )


def stack_tables(setting: Setting, cells: Sequence[Cell]) -> GroupTables:
    """The click tables of the groups of several cells, end to end."""
    tables = [click_tables(setting, cell) for cell in cells]
    n_grades = max(table.click.shape[1] for table in tables)
    return GroupTables(
        np.concatenate([table.examine for table in tables]),
        np.concatenate([_widened(table.click, n_grades) for table in tables]),
        np.concatenate([_widened(table.stop, n_grades) for table in tables]),
    )


def _click_table(setting: Setting, cell: Cell, group: Group) -> ClickTable:
    name, user = setting.users[cell.user]
    table = table_of(group.user or user, setting.method.k)
    if table is None:
        raise ValueError(f"clicks={name} is no table of probabilities: the fast engines cannot run it.")
    return table


def person_table(setting: Setting, cell: Cell) -> ClickTable | None:
    """The click table of the cell's person; None for one that is something else."""
    return table_of(setting.users[cell.user][1], setting.method.k)


def table_of(user: User, k: int) -> ClickTable | None:
    return user.as_table(k) if isinstance(user, TableUser) else None


def _widened(table: Array, n_grades: int) -> Array:
    """A shorter person's table beside a longer one's: grades beyond it do not occur (the recipe checked)."""
    missing = [(0, 0)] * (table.ndim - 1) + [(0, n_grades - table.shape[-1])]
    return np.pad(table, missing)


def cell_key(setting: Setting, cell: Cell) -> Array:
    """[2] The user is not in it: different people meet the same queries and draws, which pairs the comparison."""
    key = run_key(setting, cell)
    return key if setting.purpose is None else stream(key, setting.purpose)


def run_key(setting: Setting, cell: Cell) -> Array:
    """[2] the same for a training and its warm-up."""
    return stream(seed_key(setting.seed), cell.repeat, setting.dataset.folds[cell.fold].number)


def initial_params(setting: Setting, cell: Cell) -> Array:
    """[p] the ranker that everybody starts with."""
    if setting.starts is not None:
        return np.asarray(setting.starts[cell.user, cell.fold, cell.repeat], np.float32)
    if setting.start is not None:
        return np.asarray(setting.start, np.float32)
    normals = draw_normal(stream(run_key(setting, cell), Purpose.INITIAL), setting.method.n_params)
    return setting.method.ranker.initial(normals).astype(np.float32)


def initial_memory(setting: Setting, params: Array) -> dict[str, Array]:
    """What optimiser and clients remember before the first round; params [..., p]."""
    method = setting.method
    kept = first_kept(method.remedy, method.ranker, params, method.population.n_clients)
    return {**with_owner(OPTIMISER, method.server_step.init(params)), **kept, **first_records(setting, params)}


def first_records(setting: Setting, params: Array) -> dict[str, Array]:
    """What clients keep of their updates before the first round; params [..., p]."""
    method, cells, found = setting.method, params.shape[:-1], dict[str, Array]()
    n_clients = method.population.n_clients
    if method.keep_every is not None:
        none = first_lengths(n_clients, setting.n_kept)
        found[LENGTHS] = np.tile(none, (*cells, 1, 1))
    if method.keeps_sums:
        found[SUMS] = np.zeros((*cells, n_clients, method.n_params), np.float32)
    return found


def initial_state(setting: Setting, plan: Plan) -> dict[str, Array]:
    params = np.stack([initial_params(setting, cell) for cell in plan.cells])
    state = {PARAMS: params, **initial_memory(setting, params)}
    if not setting.method.calibrates or setting.kept is None:
        return state
    kept = np.stack([setting.kept[cell] for cell in plan.cells])
    return {**state, KEPT_LENGTHS: np.asarray(kept, np.float32)}
