"""A client that is too slow lets its trusted proxy train for it, wholly or the upper layers [fedps, section 3.4].

whole   The proxy gets log, profile and model, and does what the client would do (`training.train_peps`).
upper   Log and profile stay. In every step of training the client computes the lower layers and sends what they give;
        the proxy computes the scores and answers them; the client works out the loss and sends how it pulls at each
        score; the proxy follows its layers' gradients and answers how the loss grows with what it was sent.

Lower layers, on the client: the word vectors, global and personal, and the layer of features (`LOWER`). Upper layers,
on the proxy: all other parameters (attention, kernels, recurrent unit, projection of documents, combination), and with
them nearly all of the work. Both together take the steps that the client alone would take.

What `upper` keeps from the proxy: times, sessions, the rest of the log, features, and the table of personal vectors.
What it does not: the vectors of a search's words, which whoever has the public vectors can look up, and by the pull
which documents were clicked; how the lower layers changed, which the client sends openly in the end, outside any secure
sum, because the proxy adds up its half; and in every step the squared length of their gradients. It is for slow
devices below a proxy that may see the searches that are trained on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hushrank.personal.inputs import PersonalInputs, take_queries
from hushrank.personal.loss import count_pairs, pair_loss
from hushrank.personal.models.parameters import (
    OWN_WORDS,
    WORDS,
    WordSharing,
    flatten_parameters,
    join_shared,
    split_shared,
)
from hushrank.personal.models.peps import LowerGradients, LowerValues, Peps, trace_lower, trace_upper
from hushrank.personal.training import (
    AdamState,
    ClientTraining,
    LocalTraining,
    order_searches,
    scale_gradients,
    select_sent,
    square_norm,
    start_adam,
    step_adam,
)
from hushrank.types import Array, NamedArrays

LOWER = (WORDS, OWN_WORDS, "features/weights", "features/bias")  # parameters of the lower layers; all others are upper


class TrainedSide(NamedTuple):
    """Parameters of one side and what its Adam remembers."""

    params: dict[str, Array]
    adam: AdamState


def split_layers(params: NamedArrays) -> tuple[dict[str, Array], dict[str, Array]]:
    """The parameters of the lower layers, and those of the upper ones."""
    lower = {name: part for name, part in params.items() if name in LOWER}
    return lower, {name: part for name, part in params.items() if name not in LOWER}


# The client's half


def read_lower(
    sent: NamedArrays, kept: NamedArrays, personal: NamedArrays, some: PersonalInputs, sharing: WordSharing
) -> LowerValues:
    """What the client sends to its proxy of a few searches."""
    return trace_lower(join_shared(sent, kept, sharing), personal, some)[0]


def find_pull(scores: Array, some: PersonalInputs) -> Array:
    """[B, D] how the loss grows with each score that the proxy answered."""
    return pair_loss(scores, some.is_clicked, some.is_document)[1]


def follow_lower(
    sent: NamedArrays,
    kept: NamedArrays,
    personal: NamedArrays,
    some: PersonalInputs,
    g: LowerGradients,
    sharing: WordSharing,
) -> dict[str, Array]:
    """Gradients of the lower layers, of the summed loss, from the proxy's last answer."""
    shared = join_shared(sent, kept, sharing)
    _, back = trace_lower(shared, personal, some, trains_words=sharing.words != "frozen")
    return select_sent(back(g), sharing)


# The proxy's half


def score_upper(model: Peps, upper: NamedArrays, lower: LowerValues) -> Array:
    """[B, D] what the proxy answers."""
    return trace_upper(model, upper, lower)[0]


def follow_upper(
    model: Peps, upper: NamedArrays, lower: LowerValues, pull: Array
) -> tuple[dict[str, Array], LowerGradients]:
    """Gradients of the upper layers, which stay at the proxy, and what it answers."""
    return trace_upper(model, upper, lower)[1](pull)


# Both


def step_side(side: TrainedSide, gradients: NamedArrays, squared: float, training: LocalTraining) -> TrainedSide:
    """One step of Adam; squared: the squared length of both sides' gradients, one number that each tells the other."""
    scaled = scale_gradients(gradients, squared, training.clip_norm)
    adam, moved = step_adam(side.adam, side.params, scaled, training.rate)
    return TrainedSide(moved, adam)


def train_offloaded(
    model: Peps,
    shared: NamedArrays,
    personal: NamedArrays,
    inputs: PersonalInputs,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    key: Array,
) -> ClientTraining:
    """One visit with both halves, in one process: what `train_peps` gives."""
    sent, kept = split_shared(shared, sharing)
    lower, upper = ({**part} for part in split_layers({**sent, **personal}))
    client, proxy = TrainedSide(lower, start_adam(lower)), TrainedSide(upper, start_adam(upper))
    for epoch in range(training.epochs):
        order = order_searches(inputs, epoch=epoch, key=key)
        for first in range(0, len(order), training.batch):
            batch = take_queries(inputs, order[first : first + training.batch])
            of_lower, of_upper = _exchange(model, client.params, proxy.params, kept, batch, sharing, training.chunk)
            squared = square_norm(of_lower) + square_norm(of_upper)
            client, proxy = (
                step_side(side, found, squared, training) for side, found in ((client, of_lower), (proxy, of_upper))
            )
    own = {name: part for name, part in client.params.items() if name in personal}
    end = {name: part for name, part in {**client.params, **proxy.params}.items() if name in sent}
    n_pairs = count_pairs(inputs.is_clicked, inputs.is_document)[inputs.is_query].sum()
    return ClientTraining(flatten_parameters(end) - flatten_parameters(sent), own, int(n_pairs))


def _exchange(
    model: Peps,
    lower: NamedArrays,
    upper: NamedArrays,
    kept: NamedArrays,
    batch: PersonalInputs,
    sharing: WordSharing,
    chunk: int,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Gradients of both sides, of the mean loss over the pairs of a batch: four messages for each chunk of searches."""
    personal = {name: part for name, part in lower.items() if name == OWN_WORDS}
    sent = {name: part for name, part in lower.items() if name != OWN_WORDS}
    total = {name: np.zeros_like(part) for name, part in {**lower, **upper}.items()}
    n_pairs = float(max(count_pairs(batch.is_clicked, batch.is_document).sum(), 1))
    for first in range(0, len(batch.is_query), chunk):
        some = take_queries(batch, np.arange(first, min(first + chunk, len(batch.is_query))))
        values = read_lower(sent, kept, personal, some, sharing)
        pull = find_pull(score_upper(model, upper, values), some)
        of_upper, answer = follow_upper(model, upper, values, pull)
        of_lower = follow_lower(sent, kept, personal, some, answer, sharing)
        for name, gradient in {**of_upper, **of_lower}.items():
            total[name] += gradient / np.asarray(n_pairs, dtype=gradient.dtype)
    return split_layers(total)
