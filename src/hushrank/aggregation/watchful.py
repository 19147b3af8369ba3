"""The weighted mean until there is evidence against somebody; who is caught is left out, for as long as it lasts.

Evidence is counted per client over its rounds and goes down while the client behaves [page1954]. Three kinds count:

- *opposition*: updates point away from where most clients' updates have pointed for a long time;
- *loudness*: updates are several times as long as the median one;
- *copies*: updates nearly equal another client's of the same round, as only clients that conspire send them.

Nobody says how many liars there are. Shapes: n clients of a round, k known ones, p parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.aggregation.copies import find_copies
from hushrank.aggregation.geometric_median import lengths
from hushrank.aggregation.mean import mean_gathered
from hushrank.keys import above_zero, at_least, key
from hushrank.types import Array, Combined, Gathered, NamedArrays

_SLACK = 0.1  # usual agreements; Why: evidence against those who neither agree nor oppose goes down
_DIFFERENT = 0.5  # of the others' agreement; Why: honest people with a taste of their own oppose less than that
_CONSENSUS = 0.03  # usual agreements; Why: where clients agree on nothing (one grade each), nobody can oppose it
_LATELY = 200  # rounds; Why: clients who differ agree until what they share is learnt, and must not be held to it
_LOUD = 5.0  # times the median length; Why: five searches of honest people stay below it almost always
_SHOUT = 10.0  # times the median length, to which single updates are cut; Why: evidence takes some rounds
_NEEDED = 5.0  # rounds of shouting or copying that make a client suspect
_FORGIVEN = 0.1  # copies that are forgiven in a round without
_FEWEST = 5  # clients of a round; Why: among fewer, one who differs cannot be told from one who lies
_WARM_UP = 5  # rounds until the spread of the parameters is known
_STEPS = 6  # of Weiszfeld's iteration; Why: the centre moves little between two rounds
_FLOOR = 0.05  # of the mean variance, added to each; Why: parameters that hardly move must not decide


class WatchfulMemory(NamedTuple):
    """What is remembered."""

    ids: Array  # [k] in rising order: whoever has sent something
    n_rounds: Array  # [k] in which each did, older ones counting less
    sums: Array  # [k, p] float32 of its directions, likewise
    agreement: Array  # [k] with the others, lately
    history: Array  # [k] the same over the whole memory
    opposition: Array  # [k] evidence
    loudness: Array  # [k] evidence
    copies: Array  # [k] evidence
    is_out: Array  # [k] whether it is left out
    squares: Array  # [p] sum of the directions' squares, mean over clients, older rounds counting less
    totals: Array  # [3] rounds, rounds with a measured agreement, sum of its mean square; likewise
    length: Array  # [1] of the median update, lately


class Directions(NamedTuple):
    """The updates of a round, none longer than the median one, which has length 1."""

    x: Array  # [n, p] float64
    times: Array  # [n] how many times as long as the median one each was
    is_there: Array  # [n] whether anything was learnt
    middle: float  # length of the median one


@dataclass(frozen=True, slots=True)
class Watchful:
    """FedAvg, bit by bit, while nobody is suspected and no update is ten times as long as the median one."""

    watchful_evidence: float = key(
        30.0, "opposition that makes a client suspect, in agreements of usual size", check=above_zero
    )
    watchful_memory: int = key(500, "rounds of a client after which they count a third", check=at_least(2))

    def __call__(self, gathered: Gathered) -> Combined:
        past = recall(gathered)
        here = np.searchsorted(past.ids, gathered.ids)
        found, usual = find_directions(gathered.updates), float(past.length[0])
        past = self._learn(past, here, found)
        suspicion, consensus = self._suspect(past, here)
        is_out = choose_suspects(suspicion, past.is_out[here])
        past.is_out[here] = is_out
        counted = gathered.updates
        # Why the median lately too: in a round in which few clicked, the median tells little
        times = found.times * found.middle / max(found.middle, usual)
        if len(here) >= _FEWEST and (times > _SHOUT).any():
            cut = np.minimum(1, _SHOUT / np.maximum(times, 1))
            counted = (counted * cut[:, None]).astype(counted.dtype)
        mean = mean_gathered(counted[~is_out], gathered.weights[~is_out])
        evidence = {
            "left_out": float(is_out.sum()),
            "opposition": float(past.opposition[here].max() / self.watchful_evidence),
            "loudness": float(past.loudness[here].max() / _NEEDED),
            "copies": float(past.copies[here].max() / _NEEDED),
            "consensus": consensus,
        }
        return Combined(mean, evidence, past._asdict(), (~is_out).astype(np.float64))

    def _learn(self, past: WatchfulMemory, here: Array, found: Directions) -> WatchfulMemory:
        """What a round adds to the evidence."""
        keep = 1 - 1 / self.watchful_memory
        past = WatchfulMemory(*(array.copy() for array in past))
        agreement = measure_agreement(past, here, found)
        if agreement is not None:
            past.totals[1:] = keep * past.totals[1:] + [1, np.mean(agreement[found.is_there] ** 2)]
            usual = np.sqrt(past.totals[2] / past.totals[1])
            agreement = np.where(found.is_there, agreement / usual, 0)
            rate = 1 / np.minimum(past.n_rounds[here] + 1, _LATELY)
            past.agreement[here] += rate * (agreement - past.agreement[here])
            past.history[here] += (agreement - past.history[here]) / (past.n_rounds[here] + 1)
            slack = max(_SLACK, _DIFFERENT * find_consensus(past, here)) * found.is_there
            against = past.opposition[here] - agreement - slack  # [page1954, Eq. 1]
            past.opposition[here] = np.clip(against, 0, 2 * self.watchful_evidence)
        louder = np.clip(np.log(np.maximum(found.times, 1e-9) / _LOUD), -1, 1)
        past.loudness[here] = np.clip(past.loudness[here] + louder, 0, 2 * _NEEDED)
        copied = np.where(find_copies(found.x), 1.0, -_FORGIVEN)
        past.copies[here] = np.clip(past.copies[here] + copied, 0, 2 * _NEEDED)
        is_trusted = ~past.is_out[here]
        past.sums[here] = keep * past.sums[here] + found.x
        past.n_rounds[here] = keep * past.n_rounds[here] + found.is_there
        past.totals[0] = keep * past.totals[0] + 1
        past.length[0] += (found.middle - past.length[0]) / min(past.totals[0], _LATELY)
        return past._replace(squares=keep * past.squares + np.mean(found.x[is_trusted] ** 2, axis=0))

    def _suspect(self, past: WatchfulMemory, here: Array) -> tuple[Array, float]:
        """[n] evidence against each, 1 where it is enough; and how much most of the others agree."""
        consensus = find_consensus(past, here)
        opposed = past.opposition[here] / self.watchful_evidence * (past.history[here] < 0)
        is_judged = (consensus > _CONSENSUS) | (past.is_out[here] & (consensus > -_CONSENSUS))
        misbehaved = np.maximum(past.loudness[here], past.copies[here]) / _NEEDED
        suspicion = np.maximum(np.where(is_judged, opposed, 0), misbehaved)
        return suspicion if len(here) >= _FEWEST else np.zeros_like(suspicion), consensus


def find_consensus(past: WatchfulMemory, here: Array) -> float:
    """How much the others are agreed with by more than half of the clients, at least."""
    return float(np.sort(past.agreement[here])[(len(here) - 1) // 2])


def choose_suspects(suspicion: Array, was_out: Array) -> Array:
    """[n] who is left out: from evidence of 1 on, until it has gone down to a half; always less than half of all."""
    is_out = (suspicion >= 1) | (was_out & (suspicion > 0.5))
    most = (len(suspicion) - 1) // 2
    is_out[np.argsort(-suspicion, kind="stable")[most:]] = False
    return np.asarray(is_out)


def find_directions(updates: Array) -> Directions:
    x = updates.astype(np.float64)
    each = lengths(x)
    is_there = each > 0
    middle = float(np.median(each[is_there])) if is_there.any() else 1.0
    x /= np.maximum(each, middle)[:, None]
    return Directions(x, each / middle, is_there, middle)


def measure_agreement(past: WatchfulMemory, here: Array, found: Directions) -> Array | None:
    """[n] cosine of each direction with the way of the others so far; None: nobody knows it yet.

    The others' way is the geometric median of each one's mean direction: a majority decides, however loud a minority
    is. Parameters are measured by their spread, so that those with the most noise do not decide.
    """
    is_known = (past.n_rounds[here] > 0) & ~past.is_out[here]
    if past.totals[0] <= _WARM_UP or np.count_nonzero(is_known) < _FEWEST or not found.is_there.any():
        return None
    variances = past.squares / past.totals[0]
    scale = 1 / np.sqrt(variances + _FLOOR * variances.mean())
    means = scale * past.sums[here] / np.maximum(past.n_rounds[here], 1)[:, None]
    shares = weigh_centre(means, is_known / np.count_nonzero(is_known))
    ways = shares @ means - shares[:, None] * means  # without the client's own
    x = scale * found.x
    usual = lengths(ways) * lengths(x)
    return np.asarray(np.einsum("ip,ip->i", x, ways) / np.where(usual > 0, usual, 1))


def weigh_centre(points: Array, weights: Array) -> Array:
    """[n] each point's share in the geometric median of points [n, p], by Weiszfeld's steps from the mean."""
    shares = weights
    for _ in range(_STEPS):
        away = lengths(points - shares @ points)
        shares = weights / np.maximum(away, 1e-9)
        shares = shares / shares.sum()
    return shares


def recall(gathered: Gathered) -> WatchfulMemory:
    """What is remembered, with an empty row for everybody who is new."""
    p = gathered.updates.shape[1]
    kept: NamedArrays = gathered.memory or {
        "ids": np.empty(0, np.int64),
        **dict.fromkeys(("n_rounds", "agreement", "history", "opposition", "loudness", "copies"), np.empty(0)),
        "sums": np.empty((0, p), np.float32),
        "is_out": np.empty(0, np.bool_),
        "squares": np.zeros(p),
        "totals": np.zeros(3),
        "length": np.zeros(1),
    }
    past = WatchfulMemory(**kept)
    new = np.setdiff1d(gathered.ids, past.ids)
    if not len(new):
        return past
    ids = np.concatenate([past.ids, new])
    order = np.argsort(ids)
    each = ("n_rounds", "sums", "agreement", "history", "opposition", "loudness", "copies", "is_out")
    rows = {name: _extend(kept[name], len(new))[order] for name in each}
    return past._replace(ids=ids[order], **rows)


def _extend(rows: Array, n: int) -> Array:
    return np.concatenate([rows, np.zeros((n, *rows.shape[1:]), rows.dtype)])
