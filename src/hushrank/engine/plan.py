"""How the work is cut: batches of cells, blocks of clients, tiles of lists. It follows from setting and data alone.

XLA gives other bits for other shapes, so every shape is fixed here; the memory limit and the number of workers only
decide how many batches run at once.

- a *cell* is one training: a user, a fold, a repeat;
- a *batch* of cells runs in one program, so that small federations fill the processor;
- a *block* is a fixed number of clients whose local parameters are held at once, so that any cohort fits;
- a *tile* is a fixed number of lists of similar length, so that long lists do not set the cost of short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.engine.setting import Method, Setting
from hushrank.federation.exchange import UpdateExchange
from hushrank.rankers.linear import LinearRanker
from hushrank.types import Array, QuerySet

CHUNK = 256  # Why: most rounds in one call; between calls the host looks at clock, signals and progress
_ROWS = {"cpu": 1024, "gpu": 1 << 14}  # Why: lists in flight per step; enough to hide launch costs, and in a cache
_CELLS = {"cpu": 32, "gpu": 1024}  # Why: several batches for several workers on a processor; a GPU is one worker
_BLOCK_ROWS = 1 << 14  # Why: bounds the lists in flight of a huge cohort
# Why: local parameters of one block; a network of 64 over 700 features still gives 370 rows on a processor
_BLOCK_BYTES = {"cpu": 64 << 20, "gpu": 256 << 20}
_TILE = {"cpu": 64, "gpu": 1024}  # Why: lists per tile; a GPU needs more of them to be busy
_WIDTHS = (0.3, 0.6, 0.8, 0.92, 0.98, 1.0)  # Why: quantiles of the lengths; each costs compilation
_LONG = 5  # Why: on a GPU, times the mean length that the longest list must have until a network's tiles pay for their
# launches: mslr-like (11 times, labels-1) 1.6 -> 2.9 million searches a second, mq2007-like (4 times) 6.1 -> 4.2
_COLUMNS = 256  # Why: each column, or part of 16, is a term of the program's text
AT_ONCE = 16  # Why: numbers of a row of features that the GPU's kernel reads at once; two sectors of its memory
_PAGE = 32  # Why: the GPU's kernel holds a page's pairs in registers, and spells every position out
_IN_REGISTERS = 1 << 14  # Why: parameters; four warps have room for 32,000 numbers, and gradients need as many


class Cell(NamedTuple):
    """One training."""

    user: int  # index into setting.users
    fold: int  # index into setting.dataset.folds
    repeat: int  # 0, 1, ...


@dataclass(frozen=True, slots=True)
class Shape:
    """The fixed sizes of one program."""

    n_cells: int
    n_devices: int  # that the clients are divided among
    n_rows: int  # clients (or interactions of a central batch) of one cell behind one step of the server
    share: int  # of these on one device
    block: int  # of these held at once; the last block is padded
    n_blocks: int
    tile: int  # lists per tile
    n_tiles: int
    widths: tuple[int, ...]  # list lengths that tiles are padded to, ascending
    by_column: bool  # whether the features lie column by column too: neighbouring threads read neighbouring numbers
    kernel: str  # where a client's whole round is one kernel: "compiled", or "interpreted" in tests; else ""
    n_documents: int  # rows of the padded feature matrix
    n_columns: int  # of it
    n_labels: int  # of all groups
    n_queries: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch of cells."""

    cells: tuple[Cell, ...]
    places: tuple[tuple[int, int], ...]  # (fold, repeat) with queries of their own among those of the cells, each once
    shape: Shape


def make_plans(setting: Setting, *, platform: str, n_devices: int = 1) -> tuple[Plan, ...]:
    """One plan per batch; batches are as equal as can be, so that they share compiled programs."""
    cells = [
        Cell(user, fold, repeat)
        for user in range(len(setting.users))
        for fold in range(len(setting.dataset.folds))
        for repeat in range(setting.repeats)
    ]
    most = max(1, min(_ROWS[platform] // setting.method.rows_per_update, _CELLS[platform]))
    size = -(-len(cells) // -(-len(cells) // most))
    return tuple(
        make_plan(setting, tuple(cells[i : i + size]), platform, n_devices) for i in range(0, len(cells), size)
    )


def without_kernel(setting: Setting, plan: Plan, platform: str) -> Plan:
    """The same cells, for XLA's kernels alone."""
    return make_plan(setting, plan.cells, platform, plan.shape.n_devices, may_have_kernel=False)


def make_plan(
    setting: Setting, cells: tuple[Cell, ...], platform: str, n_devices: int, *, may_have_kernel: bool = True
) -> Plan:
    places = tuple(sorted({setting.place_of(cell.fold, cell.repeat) for cell in cells}))
    n_rows, n_cells, n_features = setting.method.rows_per_update, len(cells), setting.dataset.n_features
    lists = setting.method.lists_per_row
    fits = max(1, min(_BLOCK_BYTES[platform] // (4 * setting.method.n_sent), _BLOCK_ROWS) // (n_cells * lists))
    share = -(-n_rows // n_devices)
    n_blocks = -(-share // fits)
    block = -(-share // n_blocks)
    is_linear = isinstance(setting.method.ranker, LinearRanker)
    sends_updates = setting.method.exchange.name == UpdateExchange.name
    has_kernel = may_have_kernel and platform == "gpu" and sends_updates and fits_kernel(setting.method)
    has_tiles = platform == "cpu" or (not has_kernel and not is_linear and has_long_lists(setting))
    tile = min(_TILE[platform] if has_tiles else _BLOCK_ROWS, block * n_cells * lists)
    shape = Shape(
        n_cells=n_cells,
        n_devices=n_devices,
        n_rows=n_rows,
        share=share,
        block=block,
        n_blocks=n_blocks,
        tile=tile,
        n_tiles=-(-block * n_cells * lists // tile),
        widths=list_widths(setting, _WIDTHS if has_tiles else (1.0,)),
        by_column=platform == "gpu" and not has_kernel and is_linear and n_features <= _COLUMNS,
        kernel="compiled" if has_kernel else "",
        n_documents=_count_features(setting, places),
        n_columns=-(-n_features // AT_ONCE) * AT_ONCE if has_kernel else n_features,
        n_labels=len(places) * _most(setting, lambda sets: sum(s.n_documents for s in sets)),
        n_queries=len(places) * _most(setting, lambda sets: sum(s.n_queries for s in sets)),
    )
    return Plan(cells, places, shape)


def fits_kernel(method: Method) -> bool:
    """Whether a GPU's registers hold what one client works with."""
    return method.k <= _PAGE and method.ranker.n_features <= _COLUMNS and method.n_params <= _IN_REGISTERS


def count_documents(sets: list[QuerySet]) -> int:
    """Rows of features, each set of them counted once."""
    return sum({id(queries.features): queries.n_documents for queries in sets}.values())


def _count_features(setting: Setting, places: tuple[tuple[int, int], ...]) -> int:
    """Rows of features that hold those of these places or of as many others; repeats of a fold may share theirs."""
    shared = [
        count_documents([s for place in of_fold for s in _training_sets(setting, place)])
        for of_fold in _places_by_fold(setting)
    ]
    return min(len({fold for fold, _ in places}) * max(shared), len(places) * _most(setting, count_documents))


def _most(setting: Setting, count: Callable[[list[QuerySet]], int]) -> int:
    """The largest count over the places, each with its groups' training queries."""
    return max(count(_training_sets(setting, place)) for of_fold in _places_by_fold(setting) for place in of_fold)


def _places_by_fold(setting: Setting) -> list[list[tuple[int, int]]]:
    repeats = setting.repeats if setting.is_divided_anew else 1
    return [[(fold, repeat) for repeat in range(repeats)] for fold in range(len(setting.dataset.folds))]


def _training_sets(setting: Setting, place: tuple[int, int]) -> list[QuerySet]:
    return [group.train for group in setting.groups_of(*place)]


def list_widths(setting: Setting, quantiles: tuple[float, ...]) -> tuple[int, ...]:
    """Paddings that waste little: quantiles of the list lengths, as multiples of eight, no shorter than a page."""
    marks = np.quantile(_lengths(setting), quantiles)
    return tuple(sorted({int(-(-max(mark, setting.method.k) // 8) * 8) for mark in marks}))


def has_long_lists(setting: Setting) -> bool:
    """Whether one padding for all lists would be mostly padding."""
    lengths = _lengths(setting)
    return bool(lengths.max() > _LONG * lengths.mean())


def _lengths(setting: Setting) -> Array:
    return np.concatenate(
        [s.lengths for of_fold in _places_by_fold(setting) for place in of_fold for s in _training_sets(setting, place)]
    )


def estimate_bytes(setting: Setting, plan: Plan) -> int:
    """What one batch holds in memory while it runs: the queries, four vectors per row of a block, what is kept."""
    shape, method = plan.shape, setting.method
    queries = shape.n_documents * (4 * shape.n_columns + 4)
    rows = shape.block * shape.n_cells * method.lists_per_row
    own = method.n_personal + (2 * method.n_params if method.remedy.has_memory else 0)
    own += 2 * setting.n_kept + (0 if setting.kept is None else setting.kept.shape[-1])
    own += 2 * method.n_params if method.keeps_sums else 0
    kept = gathered_bytes(setting, plan) + 4 * shape.n_cells * method.population.n_clients * own
    return queries + 4 * 4 * method.n_sent * (rows + 4 * shape.n_cells) + kept


def gathered_bytes(setting: Setting, plan: Plan) -> int:
    """Of all updates of a round at once, where the server needs them so, two copies on the way, and the rule's own."""
    method, n_rows = setting.method, plan.shape.n_rows
    own = 0 if method.rule is None else method.rule.count_bytes(n_rows)
    return 3 * 4 * plan.shape.n_cells * n_rows * method.n_params + own if method.is_gathered else 0
