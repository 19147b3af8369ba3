"""Networks in the fused loop: how they score a list, and how the pulls of its documents reach their parameters.

Twin of `MlpRanker` for lists of any length, one hidden layer of any width. The loop itself is `kernel.learn_clients`.
What scoring finds out about a list is kept for its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hushrank.engine.compiled import FLAGS, FUSED, MAKING, SUMS
from hushrank.engine.kernel import RankerParts
from hushrank.engine.lanes import LANES, load, load_some, mask_less, multiply_add, select, splat, store
from hushrank.engine.vectors import add_products, multiply

_ZERO, _ONE = np.float32(0), np.float32(1)
_LOG2_E, _MOST = np.float32(np.log2(np.e)), np.float32(126)
# Why these: 2^r = their polynomial for |r| <= 1/2, with the smallest relative error that degree 5 allows, 7.5e-8
_C0, _C1, _C2, _C3, _C4, _C5 = (
    np.float32(c) for c in (1.00000007, 0.69314697, 0.2402212, 0.05550713, 0.00967554, 0.00132764)
)


class Room(NamedTuple):
    """What a kernel writes on its way through a list; w is the width of the hidden layer in whole registers."""

    active: Any  # [longest, w] the hidden layer of every document
    pulled: Any  # [k] where in the list the documents that pull stand
    pulls: Any  # [k] theirs
    back: Any  # [k, w] their gradients at the hidden layer, zeros after its end
    sums: Any  # [n_features, LANES]


@njit(**MAKING)
def make_network_room(params: Any, n_features: int, longest: int, k: int) -> Room:
    hidden = len(params) // (n_features + 2)
    wide = (hidden + LANES - 1) // LANES * LANES
    return Room(
        *(np.zeros((longest, wide), np.float32), np.zeros(k, np.int64), np.zeros(k, np.float32)),
        *(np.zeros((k, wide), np.float32), np.zeros((n_features, LANES), np.float32)),
    )


@njit(**FLAGS)
def split_network(params: Any, n_features: int) -> Any:
    """[n_features, hidden], [hidden], [hidden]; twin of `MlpRanker.split`."""
    hidden = len(params) // (n_features + 2)
    cut = n_features * hidden
    return params[:cut].reshape(n_features, hidden), params[cut : cut + hidden], params[cut + hidden :]


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
def relu(x: Any) -> Any:
    """The positive part, and NaN of NaN."""
    return _ZERO if x < _ZERO else x


@njit(**FUSED)
def slope_of_sigmoid(values: Any) -> Any:
    """In every lane, from the sigmoid itself."""
    return values * (splat(_ONE) - values)


@njit(**FUSED)
def slope_of_relu(values: Any) -> Any:
    return select(mask_less(splat(_ZERO), values), splat(_ONE), splat(_ZERO))


def score_with(activate: Callable[..., Any]) -> Any:
    """How networks with this activation score a list."""

    @njit(**SUMS)
    def activate_hidden(active: Any, output: Any, scores: Any, length: int) -> None:
        for d in range(length):
            score = _ZERO
            for h in range(len(output)):
                active[d, h] = activate(active[d, h])
                score += output[h] * active[d, h]
            scores[d] = score

    @njit(**FLAGS)
    def score_network(local: Any, documents: Any, scores: Any, room: Room) -> None:
        """scores[:length]; twin of `MlpRanker.score`."""
        weights, bias, output = split_network(local, documents.shape[1])
        multiply(room.active, documents, weights, bias)
        activate_hidden(room.active, output, scores, documents.shape[0])

    return score_network


def pull_with(slope: Callable[..., Any]) -> Any:
    """How the pulls of documents reach the parameters of networks whose activation has this slope."""

    @njit(**FLAGS)
    def pull_network(
        target: Any, factor: Any, local: Any, documents: Any, places: Any, pulls: Any, n_shown: int, room: Room
    ) -> None:
        """target += factor * the gradient of sum of pull * score; twin of `MlpRanker.score_gradient`.

        `target` may be `local`: what is written is no longer read.
        """
        n = find_pulled(places, pulls, n_shown, room)
        output = split_network(local, documents.shape[1])[2]
        weights, to_bias, to_output = split_network(target, documents.shape[1])
        for column in range(0, len(output), LANES):
            inside = (1 << min(len(output) - column, LANES)) - 1  # the lanes before the layer's end; others hold zeros
            own, for_bias, for_output = load_some(output, column, inside), splat(_ZERO), splat(_ZERO)
            for i in range(n):
                values = load_some(room.active, room.pulled[i] * room.active.shape[1] + column, inside)
                back = splat(room.pulls[i]) * own * slope(values)
                for_bias, for_output = for_bias + back, multiply_add(splat(room.pulls[i]), values, for_output)
                store(room.back, i * room.back.shape[1] + column, back)
            store(to_bias, column, multiply_add(for_bias, splat(factor), load(to_bias, column)))
            store(to_output, column, multiply_add(for_output, splat(factor), load(to_output, column)))
        add_products(weights, factor, documents, room.pulled, room.back, n, room.sums)

    return pull_network


@njit(**FLAGS)
def find_pulled(places: Any, pulls: Any, n_shown: int, room: Room) -> int:
    """How many documents pull; which, and how strongly, is kept."""
    n = 0
    for i in range(n_shown):
        if pulls[i] != 0:
            room.pulled[n], room.pulls[n] = places[i], pulls[i]
            n += 1
    return n


_PARTS = {
    "sigmoid": (score_with(sigmoid), pull_with(slope_of_sigmoid)),
    "relu": (score_with(relu), pull_with(slope_of_relu)),
}


def network_parts(activation: str) -> RankerParts:
    """Of networks with this activation."""
    return RankerParts(f"learn_{activation}_networks", make_network_room, *_PARTS[activation])
