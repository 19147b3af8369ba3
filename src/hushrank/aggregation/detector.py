"""A detector over time: who keeps sending what nobody could expect of him is left out [zhang2022].

A client's next update is predicted from its last one and from how updates change when the ranker moves. A client whose
updates are far from their predictions for a whole window of its rounds is suspicious.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.aggregation.gap import find_upper_group
from hushrank.aggregation.geometric_median import lengths
from hushrank.aggregation.mean import mean_gathered
from hushrank.keys import at_least, key
from hushrank.types import Array, Combined, Gathered, NamedArrays

_FAR = 100.0  # times the median error of a round: what is further off counts as much


class Remembered(NamedTuple):
    """What the detector remembers: k clients, p parameters, a window of w rounds."""

    ids: Array  # [k] in rising order: whoever has sent something
    updates: Array  # [k, p] the last that each sent
    starts: Array  # [k, p] the ranker from which it came
    errors: Array  # [k, w] how far each was from its prediction, over its round's median, latest last; NaN: not yet
    params: Array  # [p] the ranker of the round before
    mean: Array  # [p] the update of the round before
    moves: Array  # [at most w, p] how the ranker moved from round to round
    changes: Array  # [at most w, p] how the mean update changed with it


@dataclass(frozen=True, slots=True)
class Detector:
    """The weighted mean of those who are not suspected.

    Differs: scores are those of clients that come and go, so each is predicted from the round in which it was last
    seen. A suspect is left out while it is suspected, and training goes on. Never are half of the clients left out.
    """

    detector_window: int = key(
        10, "rounds of a client over which its prediction errors are averaged", check=at_least(1)
    )

    def __call__(self, gathered: Gathered) -> Combined:
        past = recall(gathered, self.detector_window)
        places = np.searchsorted(past.ids, gathered.ids)
        past = replace_errors(past, places, measure_errors(past, places, gathered))
        suspicion = past.errors[places].mean(axis=1)  # [zhang2022]; NaN until the window is full
        is_suspect = find_suspects(suspicion)
        # Why: until the windows are full, lies near the largest number add up to more, and then nothing is predicted
        with np.errstate(over="ignore", invalid="ignore"):
            mean = mean_gathered(gathered.updates[~is_suspect], gathered.weights[~is_suspect])
            memory = remember(past, places, gathered, mean)
        evidence = {"suspects": float(np.count_nonzero(is_suspect))}
        return Combined(mean, evidence, memory, (~is_suspect).astype(np.float64))


def find_suspects(suspicion: Array) -> Array:
    """[n] the upper of two groups of scores, if there are two and it is the smaller one."""
    is_suspect = np.zeros(len(suspicion), dtype=bool)
    is_known = ~np.isnan(suspicion)
    if is_known.any():
        is_suspect[is_known] = find_upper_group(suspicion[is_known])
    return is_suspect if 2 * is_suspect.sum() < len(suspicion) else np.zeros_like(is_suspect)


def measure_errors(past: Remembered, places: Array, gathered: Gathered) -> Array:
    """[n] |predicted - sent| over the median of the round, at most _FAR; NaN for who has never been seen."""
    last, sent = past.updates[places].astype(np.float64), gathered.updates.astype(np.float64)
    is_known = np.asarray(np.isfinite(last).all(axis=1))
    with np.errstate(over="ignore", invalid="ignore"):
        correction = curvature_times(past.moves, past.changes, gathered.params - past.starts[places].astype(np.float64))
        # Differs: a correction longer than what it corrects is noise, which few rounds of clicks leave plenty of
        is_plausible = lengths(correction) <= lengths(last)
        errors = lengths(last + np.where(is_plausible[:, None], correction, 0) - sent)  # [zhang2022]
    return np.where(is_known, scale_errors(np.where(np.isnan(errors), np.inf, errors), is_known), np.nan)


def scale_errors(errors: Array, is_known: Array) -> Array:
    """[n] errors over the median of those that are known and finite; infinite ones count as _FAR.

    Differs: the median, and a limit. With the mean, one liar would set the scale of all, and without the limit an
    enormous liar would make every other one look honest.
    """
    usual = errors[is_known & np.isfinite(errors)]
    typical = np.median(usual) if usual.any() else 0.0
    if typical == 0 and usual.any():
        typical = np.median(usual[usual > 0])  # most were predicted exactly
    return np.minimum(errors / typical if typical > 0 else errors, _FAR)


def curvature_times(moves: Array, changes: Array, vectors: Array) -> Array:
    """[n, p] the L-BFGS approximation of how updates change with the ranker, times vectors [n, p].

    B v = sigma v - [Y, sigma S] M^-1 [Y, sigma S]^T v, with S the moves and Y the changes as columns.
    """
    if not len(moves) or not moves[-1].any():
        return np.zeros_like(vectors)
    crossed = moves @ changes.T  # S^T Y
    sigma = crossed[-1, -1] / (moves[-1] @ moves[-1])
    lower = np.tril(crossed, -1)
    middle = np.block([[-np.diag(np.diag(crossed)), lower.T], [lower, sigma * (moves @ moves.T)]])
    both = np.concatenate([changes, sigma * moves])  # [2w, p]
    if not (np.isfinite(middle).all() and np.isfinite(both).all()):
        return np.zeros_like(vectors)  # beyond what numbers hold: no correction
    solved = np.linalg.lstsq(middle, both @ vectors.T, rcond=None)[0]  # Why: moves in a line leave it singular
    return np.asarray(sigma * vectors - solved.T @ both)


def recall(gathered: Gathered, window: int) -> Remembered:
    """What is remembered, with an empty row for everybody who is new."""
    p, kind = gathered.updates.shape[1], gathered.updates.dtype
    kept: NamedArrays = gathered.memory or {
        "ids": np.empty(0, np.int64),
        **dict.fromkeys(("updates", "starts"), np.empty((0, p), kind)),
        **dict.fromkeys(("moves", "changes"), np.empty((0, p))),
        "errors": np.empty((0, window)),
        **dict.fromkeys(("params", "mean"), np.full(p, np.nan)),
    }
    past = Remembered(**kept)
    new = np.setdiff1d(gathered.ids, past.ids)
    if not len(new):
        return past
    ids = np.concatenate([past.ids, new])
    order = np.argsort(ids)
    return past._replace(
        ids=ids[order], **{name: _extend(kept[name], len(new))[order] for name in ("updates", "starts", "errors")}
    )


def _extend(rows: Array, n: int) -> Array:
    return np.concatenate([rows, np.full((n, rows.shape[1]), np.nan, rows.dtype)])


def replace_errors(past: Remembered, places: Array, errors: Array) -> Remembered:
    """The window moves on by one round for whoever was measured."""
    is_known = ~np.isnan(errors)
    who = places[is_known]
    window = past.errors.copy()
    window[who] = np.column_stack([window[who][:, 1:], errors[is_known]])
    return past._replace(errors=window)


def remember(past: Remembered, places: Array, gathered: Gathered, mean: Array) -> NamedArrays:
    updates, starts = past.updates.copy(), past.starts.copy()
    updates[places], starts[places] = gathered.updates, gathered.params
    moves, changes = past.moves, past.changes
    if not np.isnan(past.params).any():
        w = past.errors.shape[1]
        moves = np.concatenate([moves, [gathered.params - past.params]])[-w:]
        changes = np.concatenate([changes, [mean - past.mean]])[-w:]
    return past._replace(
        updates=updates, starts=starts, params=np.array(gathered.params), mean=mean, moves=moves, changes=changes
    )._asdict()
