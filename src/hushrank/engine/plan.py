"""How the work is cut: batches of cells, blocks of clients, tiles of lists. All of it follows from setting and data alone.

XLA gives other bits for other shapes, so every shape is fixed here; the memory limit and the number of workers only decide
how many batches run at once (DESIGN: Repeatability).

- a *cell* is one training: a user, a fold, a repeat;
- a *batch* of cells runs in one program, so that small federations fill the processor;
- a *block* is a fixed number of clients whose local parameters are held at once, so that any cohort fits;
- a *tile* is a fixed number of lists of similar length, so that long lists do not set the cost of short ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.engine.setting import Setting
from hushrank.types import Array

_ROWS = 1024  # Why: lists in flight per step; enough to hide launch costs, few enough to stay in the cache
_CELLS = 32  # Why: leaves several batches for several workers when there are many cells
_BLOCK_BYTES = 64 << 20  # Why: local parameters of one block; a network of 64 over 700 features still gives 370 rows
_TILE = {"cpu": 64, "gpu": 1 << 30}  # Why: lists per tile; a GPU wants all of them at once
_WIDTHS = {"cpu": (0.3, 0.6, 0.8, 0.92, 0.98, 1.0), "gpu": (1.0,)}  # Why: quantiles of the list lengths; each costs compilation


class Cell(NamedTuple):
    """One training."""

    user: int  # index into setting.users
    fold: int  # index into setting.dataset.folds
    repeat: int  # 0, 1, ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The shapes of one batch's program."""

    cells: tuple[Cell, ...]
    folds: tuple[int, ...]  # those of the cells, each once
    n_rows: int  # clients (or interactions of a central batch) of one cell behind one step of the server
    block: int  # of these held at once; the last block is padded
    n_blocks: int
    tile: int  # lists per tile
    n_tiles: int
    widths: tuple[int, ...]  # list lengths that tiles are padded to, ascending


def make_plans(setting: Setting, *, platform: str) -> tuple[Plan, ...]:
    """One plan per batch of cells."""
    cells = [
        Cell(user, fold, repeat)
        for user in range(len(setting.users))
        for fold in range(len(setting.dataset.folds))
        for repeat in range(setting.repeats)
    ]
    size = max(1, min(_ROWS // setting.rows_per_update, _CELLS))
    n_batches = -(-len(cells) // size)
    size = -(-len(cells) // n_batches)  # equal batches: few distinct shapes, few compilations
    return tuple(make_plan(setting, tuple(cells[i : i + size]), platform) for i in range(0, len(cells), size))


def make_plan(setting: Setting, cells: tuple[Cell, ...], platform: str) -> Plan:
    n_rows = setting.rows_per_update
    fits = max(1, _BLOCK_BYTES // (4 * setting.n_params * len(cells)))
    block = min(n_rows, fits, max(1, 16 * _ROWS // len(cells)))
    n_blocks = -(-n_rows // block)
    block = -(-n_rows // n_blocks)
    tile = min(_TILE[platform], block * len(cells))
    n_tiles = -(-block * len(cells) // tile)
    return Plan(cells, tuple(sorted({cell.fold for cell in cells})), n_rows, block, n_blocks, tile, n_tiles, list_widths(setting, platform))


def list_widths(setting: Setting, platform: str) -> tuple[int, ...]:
    """Paddings that waste little: quantiles of the list lengths, as multiples of eight, no shorter than a page."""
    lengths: Array = np.concatenate([fold.train.lengths for fold in setting.dataset.folds])
    marks = np.quantile(lengths, _WIDTHS[platform])
    return tuple(sorted({int(-(-max(mark, setting.k) // 8) * 8) for mark in marks}))
