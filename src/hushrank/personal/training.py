"""How one client trains a personalised model: epochs over its searches, in an order of its own, with Adam.

This is what runs on devices, for PEPS; `training_fast.py` is the twin for the simulator, for all models.
A step takes a batch of searches and follows the mean loss over their pairs. Adam starts anew at each visit, and the
length of the gradient, over shared and personal parameters together, is bounded [fedps, Algorithm 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushrank.personal.inputs import PersonalInputs, take_queries
from hushrank.personal.loss import count_pairs, pair_loss
from hushrank.personal.models.parameters import WordSharing, flatten_parameters, join_shared, split_shared
from hushrank.personal.models.peps import Peps, PepsGradients, trace_peps
from hushrank.streams import Purpose, draw_uniform, stream
from hushrank.types import Array, NamedArrays

FIRST_FADE, SECOND_FADE, TINY_STEP = 0.9, 0.999, 1e-8  # Why: the customary constants of Adam


@dataclass(frozen=True, slots=True)
class LocalTraining:
    """How long and how fast a client trains at one visit.

    Differs: a batch is counted in searches, whose candidates are scored together, and not in pairs. 16 searches of 5
    candidates with one click, as in the AOL log, are the 64 pairs of the published setting.
    """

    epochs: int = 1
    batch: int = 16  # searches per step
    rate: float = 1e-3
    clip_norm: float = 10.0
    chunk: int = 4  # searches whose gradient is computed at a time: bounds memory, moves only the last digits

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise ValueError(f"epochs is {self.epochs} and batch {self.batch}, both must be at least 1.")
        if self.chunk < 1 or self.batch % self.chunk:
            raise ValueError(f"chunk is {self.chunk}, must divide batch, which is {self.batch}.")
        if not (self.rate > 0 and self.clip_norm > 0):
            raise ValueError(f"rate is {self.rate} and clip_norm {self.clip_norm}, both must be > 0.")


class AdamState(NamedTuple):
    """What Adam remembers of one set of parameters."""

    first: dict[str, Array]  # fading mean of gradients
    second: dict[str, Array]  # of their squares
    n_steps: int


class ClientTraining(NamedTuple):
    """What a visit gives. Only `delta` may leave the client, and only behind a privacy mechanism."""

    delta: Array  # [n_sent] new minus old, of the shared parameters that are sent, in the order of their names
    personal: dict[str, Array]
    n_pairs: int  # in the searches, each counted once: the weight of this client


def order_searches(inputs: PersonalInputs, *, epoch: int, key: Array) -> Array:
    """[n] the searches that have pairs, in the order of one epoch; padding changes nothing."""
    uniforms = draw_uniform(stream(key, Purpose.SHUFFLE, epoch), len(inputs.is_query))
    has_pairs = inputs.is_query & (count_pairs(inputs.is_clicked, inputs.is_document) > 0)
    return np.argsort(np.where(has_pairs, uniforms, 2.0), kind="stable")[: np.count_nonzero(has_pairs)]


def train_peps(
    model: Peps,
    shared: NamedArrays,
    personal: NamedArrays,
    inputs: PersonalInputs,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    key: Array,
) -> ClientTraining:
    """One visit to one client; `key` is that of the client and the round. Twin of `training_fast.train_client`."""
    sent, kept = split_shared(shared, sharing)
    own = dict(personal)
    adam, old = start_adam({**sent, **own}), flatten_parameters(sent)
    for epoch in range(training.epochs):
        order = order_searches(inputs, epoch=epoch, key=key)
        for first in range(0, len(order), training.batch):
            batch = take_queries(inputs, order[first : first + training.batch])
            gradients = find_gradients(model, sent, kept, own, batch, sharing=sharing, chunk=training.chunk)
            adam, moved = step_adam(adam, {**sent, **own}, clip_gradients(gradients, training.clip_norm), training.rate)
            sent, own = {name: moved[name] for name in sent}, {name: moved[name] for name in own}
    n_pairs = count_pairs(inputs.is_clicked, inputs.is_document)[inputs.is_query].sum()
    return ClientTraining(flatten_parameters(sent) - old, own, int(n_pairs))


def find_gradients(
    model: Peps,
    sent: NamedArrays,
    kept: NamedArrays,
    personal: NamedArrays,
    batch: PersonalInputs,
    *,
    sharing: WordSharing,
    chunk: int = 4,
) -> dict[str, Array]:
    """Of the mean loss over the pairs of a batch: for what is sent and for what is personal, by name."""
    shared = join_shared(sent, kept, sharing)
    total = {name: np.zeros_like(part) for name, part in {**sent, **personal}.items()}
    n_pairs = float(max(count_pairs(batch.is_clicked, batch.is_document).sum(), 1))
    for first in range(0, len(batch.is_query), chunk):
        some = take_queries(batch, np.arange(first, min(first + chunk, len(batch.is_query))))
        scores, back = trace_peps(model, shared, personal, some, trains_words=sharing.words != "frozen")
        _, pull = pair_loss(scores, some.is_clicked, some.is_document)
        for name, gradient in select_sent(back(pull), sharing).items():
            total[name] += gradient / np.asarray(n_pairs, dtype=gradient.dtype)
    return total


def select_sent(gradients: PepsGradients, sharing: WordSharing) -> dict[str, Array]:
    """Under Case 2, only the rows of frequent words."""
    found = {**gradients.shared, **gradients.personal}
    if sharing.words == "frequent":
        found["words"] = found["words"][sharing.rows]
    return found


def clip_gradients(gradients: NamedArrays, clip_norm: float) -> dict[str, Array]:
    """The same direction, at most `clip_norm` long over all arrays together."""
    return scale_gradients(gradients, square_norm(gradients), clip_norm)


def square_norm(gradients: NamedArrays) -> float:
    return float(sum(np.sum(np.square(part, dtype=np.float64)) for part in gradients.values()))


def scale_gradients(gradients: NamedArrays, squared: float, clip_norm: float) -> dict[str, Array]:
    """As `clip_gradients`, where these are a part of what has this squared length."""
    scale = min(1.0, clip_norm / max(float(np.sqrt(squared)), 1e-30))
    return {name: part * np.asarray(scale, dtype=part.dtype) for name, part in gradients.items()}


def bound_move(training: LocalTraining, n_searches: int) -> float:
    """What no number of an update exceeds after a visit with so many searches, whatever they are.

    Step t of Adam moves a number by at most rate (1 - b1) / (1 - b1^t) sqrt((1 - b2^t) / (1 - b2)) sqrt(sum_k (b1^2 /
    b2)^k), k < t, by Cauchy and Schwarz's inequality: its mean of gradients against that of their squares.
    """
    b1, b2, total = FIRST_FADE, SECOND_FADE, 0.0
    for t in range(1, training.epochs * -(-n_searches // training.batch) + 1):
        ratio = sum((b1 * b1 / b2) ** k for k in range(t))
        total += (1 - b1) / (1 - b1**t) * ((1 - b2**t) / (1 - b2) * ratio) ** 0.5
    return training.rate * total


def start_adam(params: NamedArrays) -> AdamState:
    zeros = {name: np.zeros_like(part) for name, part in params.items()}
    return AdamState(zeros, dict(zeros), 0)


def step_adam(
    state: AdamState, params: NamedArrays, gradients: NamedArrays, rate: float
) -> tuple[AdamState, dict[str, Array]]:
    """New state and new parameters."""
    n_steps = state.n_steps + 1
    first = {n: FIRST_FADE * state.first[n] + (1 - FIRST_FADE) * g for n, g in gradients.items()}
    second = {n: SECOND_FADE * state.second[n] + (1 - SECOND_FADE) * g * g for n, g in gradients.items()}
    first_scale, second_scale = 1 / (1 - FIRST_FADE**n_steps), 1 / (1 - SECOND_FADE**n_steps)
    moved = {
        n: part - rate * (first_scale * first[n]) / (np.sqrt(second_scale * second[n]) + TINY_STEP)
        for n, part in params.items()
    }
    return AdamState(first, second, n_steps), moved
