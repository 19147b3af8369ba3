"""The weighted mean until there is evidence against somebody; who is caught is left out, for as long as it lasts.

Evidence is counted per client over its rounds and goes down while the client behaves [page1954]. Two kinds leave a
client out:

- *opposition*: updates point away from where most clients' updates have pointed for a long time;
- *loudness*: updates are several times as long as the median one.

A third, *copies*, updates that nearly equal another client's of the same round, leaves all who send such a copy one
vote together. It leaves nobody out: who conspires cannot be told from who is copied.

Nobody says how many liars there are. Shapes: n clients of a round, k known ones, p parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from hushrank.aggregation.copies import find_copies, find_voices
from hushrank.aggregation.geometric_median import lengths
from hushrank.aggregation.mean import mean_gathered
from hushrank.keys import above_zero, at_least, key
from hushrank.types import Array, Combined, Gathered, NamedArrays

_SLACK = 0.1  # usual agreements; Why: evidence against those who neither agree nor oppose goes down
_DIFFERENT = 0.5  # of the others' agreement; Why: honest people with a taste of their own oppose less than that
_CONSENSUS = 0.03  # usual agreements; Why: where clients agree on nothing (one grade each), nobody can oppose it
_LATELY = 200  # rounds; Why: clients who differ agree until what they share is learnt, and must not be held to it
_LOUD = 5.0  # times the median length, to which updates are cut; Why: honest people stay below it almost always
_DOUBT = 1 / 3  # of enough evidence, from which on they are cut to the median length; Why: a long lie that is made
# good afterwards still moves the ranker meanwhile
_NEEDED = 5.0  # rounds of shouting that make a client suspect, and of copying that leave copies one vote
_FORGIVEN = 0.1  # copies that are forgiven in every round
_CHANCE = 3.0  # times the median client's rate of copies, forgiven too; Why: many small updates are alike by chance
_GONE = 4  # memories without an update after which a client is forgotten
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
    copy_rate: Array  # [k] part of its rounds, lately, in which its update was like another
    is_out: Array  # [k] whether it is left out
    last_round: Array  # [k] in which it sent something
    squares: Array  # [p] sum of the directions' squares, mean over clients, older rounds counting less
    totals: Array  # [3] rounds, rounds with a measured agreement, sum of its mean square; likewise
    length: Array  # [1] of the median update, lately


_SHARED = ("ids", "squares", "totals", "length")
_OF_CLIENT = tuple(name for name in WatchfulMemory._fields if name not in _SHARED)


class Directions(NamedTuple):
    """The updates of a round, none longer than the median one, which has length 1."""

    x: Array  # [n, p] float64
    times: Array  # [n] how many times as long as the median one each was
    is_there: Array  # [n] whether anything was learnt
    middle: float  # length of the median one


@dataclass(frozen=True, slots=True)
class Watchful:
    """FedAvg, but for the order of additions, while nobody is doubted and nothing is five times the median length."""

    n_judged: ClassVar[int] = _FEWEST

    watchful_evidence: float = key(
        30.0, "opposition that makes a client suspect, in agreements of usual size", check=above_zero
    )
    watchful_memory: int = key(500, "rounds of a client after which what it did counts a third", check=at_least(2))

    def __call__(self, gathered: Gathered) -> Combined:
        past = recall(gathered, forget_after=_GONE * self.watchful_memory)
        here = np.searchsorted(past.ids, gathered.ids)
        usual = float(past.length[0])
        found = find_directions(gathered.updates, usual)
        is_copy = find_copies(found.x, ~past.is_out[here])
        voices = listen(past, here, gathered.updates, gathered.weights, is_copy)
        times = found.times * found.middle / max(found.middle, usual)
        limits = find_limits(self._doubt(past)[here])
        counted = cut_lengths(gathered.updates, times, limits)
        past = self._learn(past, here, found, np.minimum(times, limits), is_copy, voices)
        suspicion, consensus = self._suspect(past, here)
        past.is_out[:] = choose_suspects(suspicion, past.is_out, here)
        trust = 1.0 - past.is_out[here]
        voices = listen(past, here, counted, gathered.weights, is_copy)
        speaks = (trust > 0) & (voices == np.arange(len(here)))
        evidence = {
            "left_out": float(np.count_nonzero(trust == 0)),
            "opposition": float(past.opposition[here].max() / self.watchful_evidence),
            "loudness": float(past.loudness[here].max() / _NEEDED),
            "copies": float(past.copies[here].max() / _NEEDED),
            "alike": float(np.count_nonzero(trust > 0) - np.count_nonzero(speaks)),
            "consensus": consensus,
        }
        return Combined(average_trusted(counted, gathered.weights, speaks), evidence, past._asdict(), trust)

    def _learn(
        self, past: WatchfulMemory, here: Array, found: Directions, times: Array, is_copy: Array, voices: Array
    ) -> WatchfulMemory:
        """What a round adds to the evidence. times: [n] usual lengths of each update as it counts in the mean."""
        keep = 1 - 1 / self.watchful_memory
        is_trusted = ~past.is_out[here]
        lately = 1 / np.minimum(past.n_rounds[here] + 1, _LATELY)
        self._learn_opposition(past, here, found, times, lately, voices)
        louder = np.clip(np.log(np.maximum(found.times, 1e-9) / _LOUD), -1, 1)
        past.loudness[here] = np.clip(past.loudness[here] + louder, 0, 2 * _NEEDED)
        past.copy_rate[here] += lately * (is_copy - past.copy_rate[here])
        copied = is_copy - _FORGIVEN - _CHANCE * np.median(past.copy_rate[here])
        past.copies[here] = np.clip(past.copies[here] + copied, 0, 2 * _NEEDED)
        past.sums[here] = keep * past.sums[here] + found.x
        past.n_rounds[here] = keep * past.n_rounds[here] + found.is_there
        if not (is_trusted & found.is_there).any():
            return past
        past.totals[0] = keep * past.totals[0] + 1
        past.length[0] += (found.middle - past.length[0]) / min(past.totals[0], _LATELY)
        return past._replace(squares=keep * past.squares + np.mean(found.x[is_trusted] ** 2, axis=0))

    def _learn_opposition(
        self, past: WatchfulMemory, here: Array, found: Directions, times: Array, lately: Array, voices: Array
    ) -> None:
        cosines = measure_agreement(past, here, found, voices)
        if cosines is None:
            return
        agreement = cosines * times  # Why as it counts in the mean: a payment counts no more than it undoes
        usual = np.mean(
            (cosines * np.minimum(times, 1))[found.is_there] ** 2
        )  # Why at most 1: lies must not stretch it
        keep = 1 - 1 / self.watchful_memory
        past.totals[1:] = keep * past.totals[1:] + [1, usual]
        if past.totals[2] == 0:
            return
        agreement = np.where(found.is_there, agreement / np.sqrt(past.totals[2] / past.totals[1]), 0)
        past.agreement[here] += lately * (agreement - past.agreement[here])
        past.history[here] += (agreement - past.history[here]) / (past.n_rounds[here] + 1)
        slack = max(_SLACK, _DIFFERENT * find_consensus(past, here)) * found.is_there
        against = past.opposition[here] - agreement - slack  # [page1954, Eq. 1]
        past.opposition[here] = np.clip(against, 0, 2 * self.watchful_evidence)

    def _doubt(self, past: WatchfulMemory) -> Array:
        """[k] evidence of any kind against each, 1 where it is enough, whether or not anybody can be judged by it."""
        return np.maximum(past.opposition / self.watchful_evidence, np.maximum(past.loudness, past.copies) / _NEEDED)

    def _suspect(self, past: WatchfulMemory, here: Array) -> tuple[Array, float]:
        """[k] evidence against each, 1 where it is enough; and how much most of the others agree."""
        consensus = find_consensus(past, here)
        opposed = past.opposition / self.watchful_evidence * (past.history < 0)
        is_judged = (consensus > _CONSENSUS) | (past.is_out & (consensus > -_CONSENSUS))
        return np.maximum(np.where(is_judged, opposed, 0), past.loudness / _NEEDED), consensus


def listen(past: WatchfulMemory, here: Array, updates: Array, weights: Array, is_copy: Array) -> Array:
    """[n] whose update speaks for each client of a round; its own, unless it is one of several copies."""
    may_copy = (past.copies[here] >= _NEEDED) & (len(here) >= _FEWEST)
    return find_voices(updates, weights, is_copy & ~past.is_out[here], may_copy)


def find_consensus(past: WatchfulMemory, here: Array) -> float:
    """How much the others are agreed with by more than half of the clients, at least."""
    return float(np.sort(past.agreement[here])[(len(here) - 1) // 2])


def choose_suspects(suspicion: Array, was_out: Array, here: Array) -> Array:
    """[k] who is left out: from evidence of 1 on, until it has gone down to a half. If that were half of all known
    clients or more, no majority is left that could be right, and nobody is.

    here: [n] rows of those who are judged. The others stay as they are, and count as out where evidence is enough.
    """
    is_out = was_out.copy()
    if len(here) >= _FEWEST:
        is_out[here] = (suspicion[here] >= 1) | (was_out[here] & (suspicion[here] > 0.5))
    is_suspect = is_out | (suspicion >= 1)
    is_suspect[here] = is_out[here]
    return is_out if 2 * np.count_nonzero(is_suspect) < len(is_out) else np.zeros_like(is_out)


def find_limits(doubt: Array) -> Array:
    """[n] usual lengths up to which each update counts: five without doubt, one from a third of enough evidence on."""
    return np.asarray(_LOUD + (1 - _LOUD) * np.minimum(1, doubt / _DOUBT))


def cut_lengths(updates: Array, times: Array, limits: Array) -> Array:
    """[n, p] with none longer than its limit; bit by bit as sent where none is.

    times: [n] median lengths of each; or those that are usual lately, if these are longer. Why: in a round in which few
    clicked, the median tells little.
    """
    if len(updates) < _FEWEST or not (times > limits).any():
        return updates
    return np.asarray(updates * np.minimum(1, limits / np.maximum(times, 1))[:, None], updates.dtype)


def average_trusted(updates: Array, weights: Array, is_trusted: Array) -> Array:
    """[p] the weighted mean of whom there is no evidence against; nothing where nobody is left."""
    if not is_trusted.any():
        return np.zeros_like(updates[0])
    return mean_gathered(updates[is_trusted], weights[is_trusted])


def find_directions(updates: Array, usual: float = 0.0) -> Directions:
    """usual: the median length lately, if there is one; it stands in where half of the clients or more learnt nothing.

    Why: the others could be liars for the most part, and would say how long an update is.
    """
    x = updates.astype(np.float64)
    each = lengths(x)
    is_there = each > 0
    if usual > 0 and 2 * np.count_nonzero(is_there) <= len(each):
        middle = usual
    else:
        middle = float(np.median(each[is_there])) if is_there.any() else 1.0
    x /= np.maximum(each, middle)[:, None]
    return Directions(x, each / middle, is_there, middle)


class Ways(NamedTuple):
    """Where the others of each client have pointed so far, in parameters that are measured by their spread."""

    scale: Array  # [p] by which parameters are multiplied, so that those with the most noise do not decide
    others: Array  # [n, p] for each client, without its own


def measure_agreement(past: WatchfulMemory, here: Array, found: Directions, voices: Array) -> Array | None:
    """[n] cosine of each direction with the way of the others so far; None: nobody knows it yet."""
    ways = find_ways(past, here, voices)
    if ways is None or not found.is_there.any():
        return None
    x = ways.scale * found.x
    usual = lengths(ways.others) * lengths(x)
    return np.asarray(np.einsum("ip,ip->i", x, ways.others) / np.where(usual > 0, usual, 1))


def find_ways(past: WatchfulMemory, here: Array, voices: Array) -> Ways | None:
    """Each one's is the geometric median of the others' mean directions: a majority decides, however loud a minority
    is. None: too few are known."""
    is_known = (past.n_rounds[here] > 0) & ~past.is_out[here]
    if past.totals[0] <= _WARM_UP or np.count_nonzero(is_known) < _FEWEST:
        return None
    variances = past.squares / past.totals[0]
    scale = 1 / np.sqrt(variances + _FLOOR * variances.mean())
    means = scale * past.sums[here] / np.maximum(past.n_rounds[here], 1)[:, None]
    votes = is_known / np.bincount(voices)[voices]  # copies have one together
    shares = weigh_centre(means, votes / votes.sum())
    return Ways(scale, shares @ means - shares[:, None] * means)


def weigh_centre(points: Array, weights: Array) -> Array:
    """[n] each point's share in the geometric median of points [n, p], by Weiszfeld's steps from the mean."""
    shares = weights
    for _ in range(_STEPS):
        away = lengths(points - shares @ points)
        shares = weights / np.maximum(away, 1e-9)
        shares = shares / shares.sum()
    return shares


def recall(gathered: Gathered, *, forget_after: int) -> WatchfulMemory:
    """A copy of what is remembered, with an empty row for everybody who is new and none for who is long gone."""
    p = gathered.updates.shape[1]
    kept: NamedArrays = gathered.memory or {
        "ids": np.empty(0, np.int64),
        **{name: np.empty(0) for name in _OF_CLIENT},
        "sums": np.empty((0, p), np.float32),
        "is_out": np.empty(0, np.bool_),
        "squares": np.zeros(p),
        "totals": np.zeros(3),
        "length": np.zeros(1),
    }
    stays = kept["last_round"] > gathered.round - forget_after
    ids = np.union1d(kept["ids"][stays], gathered.ids)
    rows = np.searchsorted(ids, kept["ids"][stays])
    past = {name: array.copy() for name, array in kept.items()} | {"ids": ids}
    for name in _OF_CLIENT:
        past[name] = np.zeros((len(ids), *kept[name].shape[1:]), kept[name].dtype)
        past[name][rows] = kept[name][stays]
    past["last_round"][np.searchsorted(ids, gathered.ids)] = gathered.round
    return WatchfulMemory(**past)
