"""Clients that search, click and learn, fused into one loop for processors: twin of `local.learn` for many clients.

Compiled by Numba. What is special about linear rankers stands in `make_room`, `score_list` and `pull_list`, of networks
in `network_kernel.py`. Lists stay ragged, only clicked pairs are looked at, and all that a client touches
fits into the cache; XLA pads lists and writes every step to memory. A client's numbers do not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types

from hushrank.streams import Purpose

_QUERY, _SHOW, _CLICK, _STOP = (np.uint32(p) for p in (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP))
_ONE, _ZERO, _HALF = np.float32(1), np.float32(0), np.float32(0.5)
FLAGS = {"nogil": True, "cache": True, "error_model": "numpy"}
SUMS = {**FLAGS, "fastmath": {"reassoc", "contract", "nsz"}}  # Why: lets a sum use vectors; same code, same bits


@njit(**FLAGS)
def threefry(k0: Any, k1: Any, low: Any) -> Any:
    """Both words of block (0, low); twin of `streams.threefry`."""
    k2 = np.uint32(k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = np.uint32(k0), np.uint32(low + k1)
    x0, x1 = _mix(x0, x1, 13, 15, 26, 6)
    x0, x1 = np.uint32(x0 + k1), np.uint32(x1 + k2 + np.uint32(1))
    x0, x1 = _mix(x0, x1, 17, 29, 16, 24)
    x0, x1 = np.uint32(x0 + k2), np.uint32(x1 + k0 + np.uint32(2))
    x0, x1 = _mix(x0, x1, 13, 15, 26, 6)
    x0, x1 = np.uint32(x0 + k0), np.uint32(x1 + k1 + np.uint32(3))
    x0, x1 = _mix(x0, x1, 17, 29, 16, 24)
    x0, x1 = np.uint32(x0 + k1), np.uint32(x1 + k2 + np.uint32(4))
    x0, x1 = _mix(x0, x1, 13, 15, 26, 6)
    return np.uint32(x0 + k2), np.uint32(x1 + k0 + np.uint32(5))


@njit(inline="always")
def _mix(x0: Any, x1: Any, a: int, b: int, c: int, d: int) -> Any:
    x0, x1 = _turn(x0, x1, np.uint32(a))
    x0, x1 = _turn(x0, x1, np.uint32(b))
    x0, x1 = _turn(x0, x1, np.uint32(c))
    return _turn(x0, x1, np.uint32(d))


@njit(inline="always")
def _turn(x0: Any, x1: Any, r: Any) -> Any:
    x0 = np.uint32(x0 + x1)
    return x0, np.uint32(x0 ^ np.uint32(np.uint32(x1 << r) | np.uint32(x1 >> np.uint32(np.uint32(32) - r))))


@njit(**FLAGS)
def derive(key: Any, purpose: Any, name: Any) -> Any:
    """The key of a purpose, round and client; twin of `streams.stream`."""
    k0, k1 = threefry(key[0], key[1], purpose)
    for part in name:
        k0, k1 = threefry(k0, k1, part)
    return k0, k1


@njit(**FLAGS)
def derive_own(key: Any, who: Any) -> Any:
    """The keys of a client's queries, lists, clicks and stops in a round, once for all its interactions."""
    return derive(key, _QUERY, who), derive(key, _SHOW, who), derive(key, _CLICK, who), derive(key, _STOP, who)


@njit(**FLAGS)
def fold(key: Any, name: Any) -> Any:
    """The key of one more name; twin of `streams.fold_in`."""
    return threefry(key[0], key[1], name)


@njit(**FLAGS)
def first_word(key: Any) -> Any:
    return threefry(key[0], key[1], np.uint32(0))[0]


@njit(**FLAGS)
def fill_uniform(out: Any, n: int, key: Any) -> None:
    """out[:n] as `streams.draw_uniform`; out has room for n + 1."""
    for j in range((n + 1) // 2):
        x0, x1 = threefry(key[0], key[1], np.uint32(j))
        out[2 * j] = (np.float32(x0 >> np.uint32(9)) + _HALF) * np.float32(2.0**-23)
        out[2 * j + 1] = (np.float32(x1 >> np.uint32(9)) + _HALF) * np.float32(2.0**-23)


@njit(**SUMS)
def score_documents(params: Any, documents: Any, scores: Any) -> None:
    """scores[:length]; twin of `LinearRanker.score`."""
    for d in range(documents.shape[0]):
        score = _ZERO
        for f in range(documents.shape[1]):
            score += params[f] * documents[d, f]
        scores[d] = score


@njit(**FLAGS)
def sample_places(scores: Any, draws: Any, length: int, k: int, places: Any) -> int:
    """places[:n_shown], best first; twin of `policy.sample_ranking`. Turns `draws` into scores plus Gumbel draws."""
    n_shown = 0
    for d in range(length):
        draws[d] = scores[d] - np.log(-np.log(draws[d]))
        if n_shown == k and not draws[d] > draws[places[k - 1]]:
            continue
        at = n_shown if n_shown < k else k - 1
        while at > 0 and draws[d] > draws[places[at - 1]]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = d
        n_shown = min(n_shown + 1, k)
    return n_shown


@njit(**FLAGS)
def dcg(grades: Any, begin: int, places: Any, n_shown: int) -> float:
    total = 0.0
    for i in range(n_shown):
        grade = grades[begin + places[i]]
        if grade > 0:
            total += (2.0**grade - 1.0) / np.log2(2.0 + i)
    return total


@njit(**FLAGS)
def click_places(
    grades: Any, begin: int, places: Any, n_shown: int, draws: Any, examine: Any, click: Any, clicked: Any
) -> bool:
    """What the person would click on if they saw it; whether there is any such place."""
    is_any = False
    for i in range(n_shown):
        clicked[i] = draws[i] < click[grades[begin + places[i]]] * examine[i]
        is_any = is_any or clicked[i]
    return is_any


@njit(**FLAGS)
def stop_reading(grades: Any, begin: int, places: Any, n_shown: int, draws: Any, stop: Any, clicked: Any) -> None:
    """Take back the clicks below the one after which the person left; with `click_places`, twin of the users."""
    has_left = False
    for i in range(n_shown):
        clicked[i] = clicked[i] and not has_left
        has_left = has_left or (clicked[i] and draws[i] < stop[grades[begin + places[i]]])


@njit(**FLAGS)
def pull_pairs(scores: Any, length: int, places: Any, n_shown: int, clicked: Any, left: Any, pulls: Any) -> bool:
    """pulls[:n_shown], the weight of each shown document's gradient; twin of the loop in `pdgd.pdgd_gradient`."""
    last = n_shown - 1
    while not clicked[last]:
        last -= 1
    pulls[:n_shown] = _ZERO
    log_mass_left(scores, length, places, n_shown, left)
    is_any = False
    for a in range(min(last + 2, n_shown)):
        for b in range(a + 1, min(last + 2, n_shown)):
            if clicked[a] != clicked[b]:
                ratio = _ONE
                for i in range(a + 1, b + 1):
                    share = np.exp(scores[places[a]] - left[i]) - np.exp(scores[places[b]] - left[i])
                    ratio *= max(_ONE + share, _ZERO)
                gap = np.exp(-abs(scores[places[a]] - scores[places[b]]))
                pull = gap / (
                    (_ONE + gap) * (_ONE + gap) * (_ONE + ratio)
                )  # rho times the pair gradient [fpdgd, Eqs. 5, 6]
                pulls[a] += pull if clicked[a] else -pull
                pulls[b] += pull if clicked[b] else -pull
                is_any = True
    return is_any


@njit(**FLAGS)
def log_mass_left(scores: Any, length: int, places: Any, n_shown: int, left: Any) -> None:
    """left[:n_shown]; twin of `pdgd.log_mass_left`."""
    is_hidden = np.ones(length, np.bool_)
    most = np.float32(-np.inf)
    for i in range(n_shown):
        is_hidden[places[i]] = False
    for d in range(length):
        most = max(most, scores[d]) if is_hidden[d] else most
    mass = _ZERO
    for d in range(length):
        mass += np.exp(scores[d] - most) if is_hidden[d] else _ZERO
    below = most + np.log(mass) if length > n_shown else np.float32(-np.inf)
    for i in range(n_shown - 1, -1, -1):
        score = scores[places[i]]
        low, high = min(below, score), max(below, score)
        below = high + np.log(_ONE + np.exp(low - high))
        left[i] = below


@njit(**SUMS)
def add_gradient(gradient: Any, documents: Any, places: Any, pulls: Any, n_shown: int) -> None:
    """gradient += sum of pull * document; twin of `LinearRanker.score_gradient`."""
    for i in range(n_shown):
        if pulls[i] != 0:
            for f in range(documents.shape[1]):
                gradient[f] += pulls[i] * documents[places[i], f]


@njit(**FLAGS)
def make_room(params: Any, n_features: int, longest: int, k: int) -> Any:  # noqa: ARG001 - networks need them
    """What scoring keeps for the gradient of a list: nothing here."""
    return ()


@njit(**FLAGS)
def score_list(local: Any, documents: Any, scores: Any, room: Any) -> None:  # noqa: ARG001 - as above
    """scores[:length]"""
    score_documents(local, documents, scores)


@njit(**FLAGS)
def pull_list(gradient: Any, local: Any, documents: Any, places: Any, pulls: Any, n_shown: int, room: Any) -> None:  # noqa: ARG001 - as above
    """gradient += that of sum of pull * score"""
    add_gradient(gradient, documents, places, pulls, n_shown)


@njit(**SUMS)
def apply_gradient(local: Any, gradient: Any, rate: Any) -> None:
    for f in range(len(local)):
        local[f] += rate * gradient[f]
        gradient[f] = _ZERO


@njit(**FLAGS)
def add_terms(gradient: Any, local: Any, start: Any, pull: Any, shift: Any) -> None:
    """gradient -= pull (local - start), and += shift where there is one; twin of `round.Federation.pull`."""
    if pull > 0:
        for f in range(len(gradient)):
            gradient[f] += -pull * (local[f] - start[f])
    for f in range(len(shift)):
        gradient[f] += shift[f]


@njit(**SUMS)
def add_rows(total: Any, updates: Any, weights: Any) -> None:
    """total[:] += weight * update over rows [n, p], one row after another."""
    for row in range(updates.shape[0]):
        weight = weights[row]
        for f in range(updates.shape[1]):
            total[f] += weight * updates[row, f]


@njit(**FLAGS)
def scale_weights(local: Any, norm: float) -> None:
    """Twin of `clipping.clip_weights`."""
    length = 0.0
    for f in range(len(local)):
        length += np.float64(local[f]) * np.float64(local[f])
    length = np.sqrt(length)
    if length > norm:
        scale = norm / length
        for f in range(len(local)):
            local[f] = np.float32(local[f] * scale)


@njit(**FLAGS)
def put_at(vector: Any, places: Any, values: Any) -> None:
    for j in range(len(places)):
        vector[places[j]] = values[j]


@njit(**FLAGS)
def take_from(vector: Any, places: Any, values: Any) -> None:
    for j in range(len(places)):
        values[j] = vector[places[j]]


@njit(**SUMS)
def write_update(update: Any, local: Any, params: Any) -> None:
    for f in range(len(update)):
        update[f] = local[f] - params[f]


@njit(**FLAGS)
def write_clipped(update: Any, local: Any, params: Any, norm: float, order: int, step: float) -> None:
    """Twin of `clipping.clip_update` and `round_towards_zero`."""
    length = 0.0
    for f in range(len(update)):
        d = np.float64(np.float32(local[f] - params[f]))
        length += d * d if order == 2 else abs(d)
    length = np.sqrt(length) if order == 2 else length
    scale = (1.0 - 2.0**-40) * norm / length if length > norm else 1.0
    for f in range(len(update)):
        d = np.float64(np.float32(local[f] - params[f])) * scale
        d = np.trunc(d / step) * step if step > 0 else d
        update[f] = np.float32(d)


@njit(**FLAGS)
def write_sent(update: Any, local: Any, params: Any, clip_norm: float, order: int, step: float) -> None:
    if clip_norm > 0:
        write_clipped(update, local, params, clip_norm, order, step)
    else:
        write_update(update, local, params)


def array_type(kind: Any, n_axes: int) -> Any:
    """Why read-only: cached data sets are, and one signature for all callers is compiled once."""
    return types.Array(kind, n_axes, "C", readonly=True)


f4, f8, i8 = types.float32, types.float64, types.int64
# Of every kernel: the shared parameters; the queries and their groups; the clients.
QUERIES = (
    *(array_type(f4, 2), array_type(types.uint8, 1), array_type(i8, 1), array_type(i8, 1), array_type(i8, 1)),
    *(array_type(f4, 1), array_type(i8, 1), array_type(i8, 1), array_type(f4, 2), array_type(f4, 2), array_type(f4, 2)),
)
CLIENTS = (array_type(types.uint32, 1), i8, array_type(i8, 1), array_type(i8, 1), array_type(i8, 1))
# Why arrays to write to, and none returned: handing a new array to Python costs ten times as much.
_SIGNATURE = types.void(
    *(types.Array(f4, 2, "C"), types.Array(f8, 1, "C"), types.Array(f4, 2, "C")),
    *(array_type(f4, 1), *QUERIES, *CLIENTS, array_type(i8, 1), array_type(f4, 2)),
    *(f4, f4, i8, f8, f8, i8, f8),
)


@njit(_SIGNATURE, **FLAGS)
def learn_clients(
    updates: Any,  # [n, p] written: what each client learnt
    qualities: Any,  # [n] written: the mean nDCG of what it saw
    personal: Any,  # [n, n_personal] its own parameters, before and after
    params: Any,  # [p] the ranker that everybody has
    features: Any,  # [n_documents, p]
    grades: Any,  # [n_labels] of every group's documents, end to end
    starts: Any,  # [n_queries] first row of the features
    labels: Any,  # [n_queries] first row of the grades
    lengths: Any,  # [n_queries]
    ideals: Any,  # [n_queries] DCG@k of the best list
    first_query: Any,  # [n_groups]
    n_queries: Any,  # [n_groups]
    examine: Any,  # [n_groups, k] click tables
    click: Any,  # [n_groups, n_grades]
    stop: Any,  # [n_groups, n_grades]
    key: Any,  # [2] of the cell
    round: int,
    ids: Any,  # [n] clients
    n_interactions: Any,  # [n]
    groups: Any,  # [n]
    places: Any,  # [n_personal] where personal parameters stand
    shifts: Any,  # [n, p or 0] a term of each client's local gradients
    rate: Any,  # learning rate
    pull: Any,  # of every local step towards where the client began; 0: none
    batch: int,  # gradients summed at the same weights; 1 on a client
    weight_norm: float,  # of the weights after every step; 0: as they are
    clip_norm: float,  # of a client's update; 0: as it is
    order: int,  # 1 or 2: which norm that is
    step: float,  # of the grid that a clipped update stands on; 0: none
) -> None:
    """Every client's round; the first three arrays are written."""
    k, longest = examine.shape[1], np.max(lengths)
    local, start, gradient = params.copy(), params.copy(), np.zeros(len(params), np.float32)
    scores, draws = np.empty(longest, np.float32), np.empty(max(longest, k) + 1, np.float32)
    shown, pulls = np.empty(k, np.int64), np.empty(k, np.float32)
    clicked, left = np.empty(k, np.bool_), np.empty(k, np.float32)
    room = make_room(params, features.shape[1], longest, k)
    for row in range(len(ids)):
        local[:] = params
        put_at(local, places, personal[row])
        start[:] = local
        group, quality = groups[row], 0.0
        table = (examine[group], click[group], stop[group])
        who = (np.uint32(round), np.uint32(ids[row]))
        query_key, show_key, click_key, stop_key = derive_own(key, who)
        for interaction in range(n_interactions[row]):
            name = np.uint32(interaction)
            query = first_query[group] + first_word(fold(query_key, name)) % np.uint32(n_queries[group])
            begin, label, length = starts[query], labels[query], lengths[query]
            documents = features[begin : begin + length]
            score_list(local, documents, scores, room)
            fill_uniform(draws, length, fold(show_key, name))
            n_shown = sample_places(scores, draws, length, k, shown)
            quality += dcg(grades, label, shown, n_shown) / ideals[query] if ideals[query] > 0 else 0.0
            fill_uniform(draws, k, fold(click_key, name))
            would = click_places(grades, label, shown, n_shown, draws, table[0], table[1], clicked)
            if would:
                fill_uniform(draws, k, fold(stop_key, name))
                stop_reading(grades, label, shown, n_shown, draws, table[2], clicked)
                if pull_pairs(scores, length, shown, n_shown, clicked, left, pulls):
                    pull_list(gradient, local, documents, shown, pulls, n_shown, room)
            if (interaction + 1) % batch == 0:
                add_terms(gradient, local, start, pull, shifts[row])
                apply_gradient(local, gradient, rate)
                if weight_norm > 0:
                    scale_weights(local, weight_norm)
        qualities[row] = quality / n_interactions[row]
        take_from(local, places, personal[row])
        put_at(local, places, params[places])
        write_sent(updates[row], local, params, clip_norm, order, step)


class RankerParts(NamedTuple):
    """What stands in `learn_clients` where a linear ranker has functions of the same names."""

    name: str  # under which the compiled loop is kept
    make_room: Callable[..., Any]
    score_list: Callable[..., None]
    pull_list: Callable[..., None]


@cache
def kernel_for(pull: Callable[..., bool] | None, parts: RankerParts | None = None) -> Callable[..., Any]:
    """`learn_clients` with another learner's `pull` in the place of `pull_pairs`, and another ranker's parts; None: as
    it is.

    Why the same code with other globals: Numba cannot keep a function of functions from one process to the next, and
    the usual learner must not be compiled again in each.
    """
    if pull is None and parts is None:
        return learn_clients
    text, others = learn_clients.py_func, {} if parts is None else parts._asdict()
    name = others.pop("name", "learn_clients")
    if pull is not None:
        name, others["pull_pairs"] = f"{name}_by_{pull.__name__}", njit(nogil=True, error_model="numpy")(pull)
    own = FunctionType(text.__code__, {**text.__globals__, **others}, name)
    own.__qualname__ = name  # by which Numba finds it again
    return njit(_SIGNATURE, **{**FLAGS, "cache": pull is None})(own)
