"""What a finished run's clients kept, made ready for forgetting: by user, fold and repeat, without gaps."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import cohort_mask
from hushrank.types import Array, Notice
from hushrank.unlearning.lengths import fill_gaps

Cells: TypeAlias = dict[tuple[str, int, int], Array]  # {(user, fold, repeat): an array of that training}


class FilledCells(NamedTuple):
    """Lengths of all trainings, without gaps where that is possible."""

    lengths: Array  # [n_users, n_folds, repeats, n_clients, n_kept]; NaN where a client has none at all
    notices: list[Notice]


def stack_cells(setting: Setting, arrays: Cells, *, what: str) -> Array:
    """[n_users, n_folds, repeats, ...] float32; what: the file that they are from."""
    users, folds = [user for user, _ in setting.users], [fold.number for fold in setting.dataset.folds]
    names = [(user, fold, n) for user in users for fold in folds for n in range(setting.repeats)]
    missing = [name for name in names if name not in arrays]
    if missing or len({arrays[name].shape for name in names}) > 1:
        raise ValueError(f"{what} is damaged: it does not hold the arrays of this run. Run the experiment again.")
    stacked = np.stack([arrays[name] for name in names]).astype(np.float32)
    return stacked.reshape(len(users), len(folds), setting.repeats, *stacked.shape[1:])


def check_shape(setting: Setting, lengths: Array, *, what: str) -> None:
    """Refuse lengths of other clients or rounds."""
    if lengths.shape[3:] != (setting.method.population.n_clients, setting.n_kept):
        raise ValueError(
            f"{what} is damaged: it holds lengths of {lengths.shape[3]} clients in {lengths.shape[-1]} rounds, this "
            f"run has {setting.method.population.n_clients} and {setting.n_kept}. Run the experiment again."
        )


def fill_lengths(setting: Setting, lengths: Array, leavers: tuple[int, ...]) -> FilledCells:
    """Lengths that clients who stay should have kept and have not are those of rounds nearby; it is counted."""
    missing = np.isnan(lengths) & took_part(setting)[None]
    missing[..., list(leavers), :] = False
    found = np.array([fill_gaps(cell).lengths for cell in lengths.reshape(-1, *lengths.shape[3:])])
    filled = found.reshape(lengths.shape)
    n_missing, n_without = int(missing.sum()), int(np.count_nonzero((missing & np.isnan(filled)).any(axis=-1)))
    return FilledCells(filled, notice_missing(n_missing, n_without, n_all=int(took_part(setting).sum())))


def took_part(setting: Setting) -> Array:
    """[n_folds, repeats, n_clients, n_kept] who was asked in the rounds whose lengths are kept."""
    every = setting.method.keep_every or 1
    rounds = range(1, setting.rounds + 1, every)
    shape = (len(setting.dataset.folds), setting.repeats)
    keys = np.stack([cell_key(setting, Cell(0, *place)) for place in np.ndindex(shape)])
    masks = np.stack([cohort_mask(setting.method.population, keys, round) for round in rounds], axis=-1)
    return masks.reshape(*shape, *masks.shape[1:])


def notice_missing(n_missing: int, n_without: int, *, n_all: int) -> list[Notice]:
    """n_without: trainings of a client that has none at all."""
    if not n_missing:
        return []
    own = f" {n_without} times a client has none at all; its updates keep their own lengths." if n_without else ""
    sentence = f"{n_missing:,} lengths that clients who stay should have kept are missing (of about {n_all:,})."
    fallback = f"In the place of each stands the same client's nearest one.{own}"
    return [Notice("lengths-missing", sentence, f"{fallback} Where these are many, --method fresh needs none.")]


def no_lengths(setting: Setting) -> Array:
    """[n_users, n_folds, repeats, n_clients, n_kept] of clients that have kept nothing."""
    cells = (len(setting.users), len(setting.dataset.folds), setting.repeats)
    return np.full((*cells, setting.method.population.n_clients, setting.n_kept), np.nan, np.float32)
