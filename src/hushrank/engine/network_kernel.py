"""Networks in the fused loop: how they score a list, and how the pulls of its documents reach their parameters.

Twin of `MlpRanker` for lists of any length, one hidden layer of any width. The loop itself is `kernel.learn_clients`.
What scoring finds out about a list is kept for its gradient. Widths below `LANES` are padded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hushrank.engine.compiled import FUSED, MAKING, SUMS
from hushrank.engine.kernel import RankerParts
from hushrank.engine.lanes import LANES
from hushrank.engine.vectors import multiply

_ZERO, _ONE = np.float32(0), np.float32(1)
_LOG2_E, _MOST = np.float32(np.log2(np.e)), np.float32(126)
# Why these: 2^r = their polynomial for |r| <= 1/2, with the smallest relative error that degree 5 allows, 7.5e-8
_C0, _C1, _C2, _C3, _C4, _C5 = (
    np.float32(c) for c in (1.00000007, 0.69314697, 0.2402212, 0.05550713, 0.00967554, 0.00132764)
)


class Room(NamedTuple):
    """What a kernel writes on its way through a list; w is the width of the hidden layer, or LANES if that is more."""

    active: Any  # [longest, w] the hidden layer of every document
    weights: Any  # [n_features, w] those of a layer below LANES, padded
    bias: Any  # [1, w]
    turned: Any  # [n_features + 1, k] the documents that pull; ones for the bias
    back: Any  # [k, w] their gradients at the hidden layer
    slopes: Any  # [n_features + 1, w] the gradient of the hidden weights, and of the bias
    none: Any  # [1, w] zeros


@njit(**MAKING)
def make_network_room(params: Any, n_features: int, longest: int, k: int) -> Room:
    width = max(len(params) // (n_features + 2), LANES)
    return Room(
        np.zeros((longest, width), np.float32),
        np.zeros((n_features, width), np.float32),
        np.zeros((1, width), np.float32),
        np.ones((n_features + 1, k), np.float32),
        np.zeros((k, width), np.float32),
        np.zeros((n_features + 1, width), np.float32),
        np.zeros((1, width), np.float32),
    )


@njit(**FUSED)
def split_network(params: Any, n_features: int) -> Any:
    """[n_features, hidden], [1, hidden], [hidden]; twin of `MlpRanker.split`."""
    hidden = len(params) // (n_features + 2)
    cut = n_features * hidden
    weights, bias = params[:cut].reshape(n_features, hidden), params[cut : cut + hidden].reshape(1, hidden)
    return weights, bias, params[cut + hidden :]


@njit(**FUSED)
def add_inputs(weights: Any, bias: Any, documents: Any, room: Room) -> None:
    """room.active[:length] = documents @ weights + bias"""
    hidden = weights.shape[1]
    if hidden < LANES:
        for h in range(hidden):
            room.bias[0, h] = bias[0, h]
            for f in range(weights.shape[0]):
                room.weights[f, h] = weights[f, h]
        multiply(room.active, documents, room.weights, room.bias)
    else:
        multiply(room.active, documents, weights, bias)


@njit(**SUMS)
def add_units(active: Any, output: Any, scores: Any, length: int) -> None:
    """scores[:length] = active @ output"""
    for d in range(length):
        score = _ZERO
        for h in range(len(output)):
            score += output[h] * active[d, h]
        scores[d] = score


@njit(**FUSED)
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x) within 1.2e-7, and NaN of NaN; the plain one is in `MlpRanker`. Without calls it uses vectors."""
    power = -_LOG2_E * x
    power = _MOST if power > _MOST else power
    power = -_MOST if power < -_MOST else power
    whole = np.rint(power)
    r = power - whole
    part = _C0 + r * (_C1 + r * (_C2 + r * (_C3 + r * (_C4 + r * _C5))))
    exponent = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23))  # the bits of 2^whole
    return _ONE / (_ONE + part * exponent.view(np.float32))


@njit(**FUSED)
def score_sigmoids(local: Any, documents: Any, scores: Any, room: Room) -> None:
    """scores[:length]; twin of `MlpRanker.score`."""
    weights, bias, output = split_network(local, documents.shape[1])
    add_inputs(weights, bias, documents, room)
    for d in range(documents.shape[0]):
        for h in range(room.active.shape[1]):
            room.active[d, h] = sigmoid(room.active[d, h])
    add_units(room.active, output, scores, documents.shape[0])


@njit(**FUSED)
def score_relus(local: Any, documents: Any, scores: Any, room: Room) -> None:
    """scores[:length]; twin of `MlpRanker.score`."""
    weights, bias, output = split_network(local, documents.shape[1])
    add_inputs(weights, bias, documents, room)
    for d in range(documents.shape[0]):
        for h in range(room.active.shape[1]):
            x = room.active[d, h]
            room.active[d, h] = _ZERO if x < _ZERO else x
    add_units(room.active, output, scores, documents.shape[0])


@njit(**FUSED)
def pull_sigmoids(gradient: Any, local: Any, documents: Any, places: Any, pulls: Any, n_shown: int, room: Room) -> None:
    """gradient += that of sum of pull * score; twin of `MlpRanker.score_gradient`."""
    output, n = split_network(local, documents.shape[1])[2], 0
    for i in range(n_shown):
        pull, place = pulls[i], places[i]  # Why by name: an array may change under a loop, and then it uses no vectors
        if pull != 0:
            for h in range(len(output)):
                value = room.active[place, h]
                room.back[n, h] = pull * output[h] * (value * (_ONE - value))
            n += 1
    add_back(gradient, documents, places, pulls, n_shown, n, room)


@njit(**FUSED)
def pull_relus(gradient: Any, local: Any, documents: Any, places: Any, pulls: Any, n_shown: int, room: Room) -> None:
    """gradient += that of sum of pull * score; twin of `MlpRanker.score_gradient`."""
    output, n = split_network(local, documents.shape[1])[2], 0
    for i in range(n_shown):
        pull, place = pulls[i], places[i]
        if pull != 0:
            for h in range(len(output)):
                room.back[n, h] = pull * output[h] if room.active[place, h] > 0 else _ZERO
            n += 1
    add_back(gradient, documents, places, pulls, n_shown, n, room)


@njit(**FUSED)
def add_back(gradient: Any, documents: Any, places: Any, pulls: Any, n_shown: int, n: int, room: Room) -> None:
    """gradient += what room.back[:n] says at the hidden layer, one row for each of n documents that pull."""
    n_features, at = documents.shape[1], 0
    hidden = len(gradient) // (n_features + 2)
    inputs, output = gradient[:-hidden].reshape(n_features + 1, hidden), gradient[-hidden:]
    for i in range(n_shown):
        pull, place = pulls[i], places[i]
        if pull != 0:
            for f in range(n_features):
                room.turned[f, at] = documents[place, f]
            for h in range(hidden):
                output[h] += pull * room.active[place, h]
            at += 1
    multiply(room.slopes, room.turned, room.back[:n], room.none)
    for f in range(n_features + 1):
        for h in range(hidden):
            inputs[f, h] += room.slopes[f, h]


def network_parts(activation: str) -> RankerParts:
    """Of networks with this activation."""
    return RankerParts(f"learn_{activation}_networks", make_network_room, *_PARTS[activation])


_PARTS = {"sigmoid": (score_sigmoids, pull_sigmoids), "relu": (score_relus, pull_relus)}
