"""Clients that search, click and learn, fused into one loop for processors: twin of `local.learn` for many clients.

Compiled by Numba. Lists stay ragged, only clicked pairs are looked at, and all that a client touches
fits into the cache; XLA pads lists and writes every step to memory. A client's numbers do not depend on its neighbours.
What is special about linear rankers stands in `make_ranker_room`, `score_list` and `pull_list`, of networks in
`network_kernel.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types

from hushrank.engine.compiled import FLAGS, INLINED, MAKING, SUMS, array_type, f4, f8, i8, keep_compiled
from hushrank.engine.lanes import LANES
from hushrank.engine.search import (
    Asked,
    click_list,
    draw_query,
    judge_places,
    make_search,
    name_client,
    name_round,
    name_search,
    show_list,
)
from hushrank.engine.vectors import add_some_rows, apply_gradient, make_room, multiply_rows, pull_lanes

_ONE, _ZERO = np.float32(1), np.float32(0)


@njit(**INLINED)
def pull_pairs(search: Any, length: int, n_shown: int, is_close: bool) -> bool:
    """pulls[:n_shown], the weight of each shown document's gradient; twin of the loop in `pdgd.pdgd_gradient`."""
    clicked, seen = 0, 0
    for i in range(n_shown):
        clicked += search.is_clicked[i]
        seen = min(i + 2, n_shown) if search.is_clicked[i] else seen
    if clicked == seen:
        return False
    if is_close:
        divide_mass(search, length, n_shown)
        pull_lanes(search.shown, search.left, search.is_clicked, seen, search.pulls)
    else:
        log_mass_left(search, length, n_shown)
        pull_by_logarithms(search, n_shown, seen)
    return True


@njit(**SUMS)
def divide_mass(search: Any, length: int, n_shown: int) -> None:
    """shown[:n_shown], the masses of the shown documents; left[:n_shown], 1 / the mass left at each position.

    Why from below: the mass that was never shown may be small beside the rest. `masses` has holes afterwards.
    """
    for i in range(n_shown):
        search.shown[i] = search.masses[search.places[i]]
        search.masses[search.places[i]] = _ZERO
    below = _ZERO
    for d in range((length + LANES - 1) // LANES * LANES):
        below += search.masses[d]
    for i in range(n_shown - 1, -1, -1):
        below += search.shown[i]
        search.left[i] = _ONE / below


@njit(**FLAGS)
def pull_by_logarithms(search: Any, n_shown: int, seen: int) -> None:
    """As `pull_lanes`, for scores as far apart as they like and lists as long."""
    scores, places, left, pulls, is_clicked = search.scores, search.places, search.left, search.pulls, search.is_clicked
    for i in range(n_shown):
        pulls[i] = _ZERO
    for a in range(seen):
        for b in range(a + 1, seen):
            if is_clicked[a] != is_clicked[b]:
                ratio = _ONE
                for i in range(a + 1, b + 1):
                    share = np.exp(scores[places[a]] - left[i]) - np.exp(scores[places[b]] - left[i])
                    ratio *= max(_ONE + share, _ZERO)
                gap = np.exp(-abs(scores[places[a]] - scores[places[b]]))
                pull = gap / (
                    (_ONE + gap) * (_ONE + gap) * (_ONE + ratio)
                )  # rho times the pair gradient [fpdgd, Eqs. 5, 6]
                pulls[a] += pull if is_clicked[a] else -pull
                pulls[b] += pull if is_clicked[b] else -pull


@njit(**FLAGS)
def log_mass_left(search: Any, length: int, n_shown: int) -> None:
    """left[:n_shown]; twin of `pdgd.log_mass_left`. `masses` marks what was shown."""
    scores, is_hidden = search.scores, search.masses
    most, mass = np.float32(-np.inf), _ZERO
    for d in range(length):
        is_hidden[d] = _ONE
    for i in range(n_shown):
        is_hidden[search.places[i]] = _ZERO
    for d in range(length):
        most = max(most, scores[d]) if is_hidden[d] > 0 else most
    for d in range(length):
        mass += np.exp(scores[d] - most) if is_hidden[d] > 0 else _ZERO
    below = most + np.log(mass) if length > n_shown else np.float32(-np.inf)
    for i in range(n_shown - 1, -1, -1):
        score = scores[search.places[i]]
        low, high = min(below, score), max(below, score)
        below = high + np.log(_ONE + np.exp(low - high))
        search.left[i] = below


@njit(**MAKING)
def make_vector(n: int) -> Any:
    """[n] zeros, and after them zeros for at least one register."""
    room = make_room(n + LANES)
    room[:] = _ZERO
    return room[:n]


@njit(**FLAGS)
def make_ranker_room(params: Any, n_features: int, longest: int, k: int) -> Any:  # noqa: ARG001 - networks need them
    """What scoring keeps for the gradient of a list: nothing here."""
    return ()


@njit(**FLAGS)
def score_list(local: Any, documents: Any, scores: Any, room: Any) -> None:  # noqa: ARG001 - as above
    """scores[:length]; twin of `LinearRanker.score`."""
    multiply_rows(documents, local, scores)


@njit(**FLAGS)
def pull_list(
    target: Any, factor: Any, _local: Any, documents: Any, places: Any, pulls: Any, n_shown: int, _room: Any
) -> None:
    """target += factor * the sum of pull * document; twin of `LinearRanker.score_gradient`. It may be `local`."""
    add_some_rows(target, factor, documents, places, pulls, n_shown)


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
def copy(vector: Any, target: Any) -> None:
    """Why a loop: Numba's `target[:] = vector` looks first whether they overlap, and goes number by number."""
    for f in range(len(vector)):
        target[f] = vector[f]


@njit(**FLAGS)
def put_at(vector: Any, places: Any, values: Any) -> None:
    for j in range(len(places)):
        vector[places[j]] = values[j]


@njit(**FLAGS)
def take_back(vector: Any, places: Any, before: Any) -> None:
    for place in places:
        vector[place] = before[place]


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


@njit(**INLINED)
def learn_client(
    local: Any, start: Any, gradient: Any, shift: Any, search: Any, room: Any, asked: Any, who: Any, steps: Any
) -> float:
    """The mean nDCG of what a client saw; `local` is written, `gradient` left at zero. who, steps: see its caller."""
    (group, n_interactions), (rate, pull, batch, weight_norm) = who, steps
    k, quality = asked.examine.shape[1], 0.0
    # Why: a step that is one search's gradient and nothing else is added at once; `gradient` is not needed
    is_simple = batch == 1 and pull == 0 and weight_norm == 0 and len(shift) == 0
    target, factor = (local, rate) if is_simple else (gradient, _ONE)
    for interaction in range(n_interactions):
        lane = name_search(search, interaction)
        query = draw_query(search, asked, group, lane)
        begin, length, ideal = asked.starts[query], asked.lengths[query], asked.ideals[query]
        documents = asked.features[begin : begin + length]
        score_list(local, documents, search.scores, room)
        n_shown, is_close = show_list(search, length, k, lane)
        gain = judge_places(search, asked.grades, asked.labels[query], n_shown)
        quality += gain / ideal if ideal > 0 else 0.0
        if click_list(search, asked, group, n_shown, lane) and pull_pairs(search, length, n_shown, is_close):
            pull_list(target, factor, local, documents, search.places, search.pulls, n_shown, room)
        if not is_simple and (interaction + 1) % batch == 0:
            add_terms(gradient, local, start, pull, shift)
            apply_gradient(local, gradient, rate)
            if weight_norm > 0:
                scale_weights(local, weight_norm)
    return quality / n_interactions


# Of every kernel: the shared parameters; the queries and their groups; the clients.
QUERIES = (
    *(array_type(f4, 2), array_type(types.uint8, 1), array_type(i8, 1), array_type(i8, 1), array_type(i8, 1)),
    *(array_type(f4, 1), array_type(i8, 1), array_type(i8, 1), array_type(f4, 2), array_type(f4, 2), array_type(f4, 2)),
)
CLIENTS = (array_type(types.uint32, 2), i8, array_type(i8, 1), array_type(i8, 1), array_type(i8, 1), array_type(i8, 1))
# Why arrays to write to, and none returned: handing a new array to Python costs ten times as much.
_SIGNATURE = types.void(
    *(types.Array(f4, 2, "C"), types.Array(f8, 1, "C"), types.Array(f4, 2, "C")),
    *(array_type(f4, 2), *QUERIES, *CLIENTS, array_type(i8, 1), array_type(f4, 2)),
    *(f4, f4, i8, f8, f8, i8, f8),
)


@keep_compiled(_SIGNATURE)
def learn_clients(
    updates: Any,  # [n, p] written: what each client learnt
    qualities: Any,  # [n] written: the mean nDCG of what it saw
    personal: Any,  # [n, n_personal] its own parameters, before and after
    params: Any,  # [C, p] the ranker that everybody in a cell has
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
    keys: Any,  # [C, 2] of the cells
    round: int,
    cells: Any,  # [n] whose clients these are
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
    asked = Asked(features, grades, starts, labels, lengths, ideals, first_query, n_queries, examine, click, stop)
    search, steps = make_search(np.max(lengths), examine.shape[1], click.shape[1]), (rate, pull, batch, weight_norm)
    room = make_ranker_room(params[0], features.shape[1], np.max(lengths), examine.shape[1])
    local, start, gradient = make_vector(params.shape[1]), np.empty_like(params[0]), make_vector(params.shape[1])
    for row in range(len(ids)):
        shared = params[cells[row]]
        copy(shared, local)
        put_at(local, places, personal[row])
        if pull > 0:
            copy(local, start)
        if row == 0 or cells[row] != cells[row - 1]:
            name_round(search, keys[cells[row]], np.uint32(round))
        name_client(search, ids[row])
        who = (groups[row], n_interactions[row])
        qualities[row] = learn_client(local, start, gradient, shifts[row], search, room, asked, who, steps)
        take_from(local, places, personal[row])
        take_back(local, places, shared)
        write_sent(updates[row], local, shared, clip_norm, order, step)


class RankerParts(NamedTuple):
    """What stands in `learn_clients` where a linear ranker has functions of the same names."""

    name: str  # under which the compiled loop is kept
    make_ranker_room: Callable[..., Any]
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
    others: dict[str, Any] = {} if parts is None else parts._asdict()
    name = others.pop("name", "learn_clients")
    if pull is not None:
        name, others["pull_pairs"] = f"{name}_by_{pull.__name__}", wrap_pull(pull)
    one = njit(**INLINED)(_with(learn_client, "learn_client", others))
    all_of_them = _with(learn_clients, name, {**others, "learn_client": one})
    return keep_compiled(_SIGNATURE)(all_of_them) if pull is None else njit(_SIGNATURE, **MAKING)(all_of_them)


def wrap_pull(pull: Callable[..., bool]) -> Callable[..., bool]:
    """A learner's own `pull` as the loop calls it."""
    own = njit(**MAKING)(pull)

    def pull_own(search: Any, length: int, n_shown: int, _: bool) -> bool:
        clicked, left, pulls = search.is_clicked, search.left, search.pulls
        return own(search.scores, length, search.places, n_shown, clicked, left, pulls)

    return njit(**MAKING)(pull_own)


def _with(compiled: Any, name: str, others: dict[str, Any]) -> FunctionType:
    """The Python function behind a compiled one, with some of its globals replaced."""
    text = compiled.py_func
    return FunctionType(text.__code__, {**text.__globals__, **others}, name)
