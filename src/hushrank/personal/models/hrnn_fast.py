"""HRNN: a recurrent unit over the searches of a session, another one over sessions, and attention by the query. [hrnn]

It runs in the simulator only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from hushrank.personal.inputs import HistoryTable, PersonalInputs
from hushrank.personal.models.history_fast import HistoryWindow, find_windows
from hushrank.personal.models.layers_fast import (
    Parts,
    combine_scores,
    find_cosine,
    look_up,
    run_gru,
    score_features,
    step_gru,
)
from hushrank.personal.models.parameters import WORDS, gru_shapes, matrices
from hushrank.types import Parameter


@dataclass(frozen=True, slots=True)
class Hrnn:
    """score = w . (cosines of short and long profile with the document, features).

    Shared: all of it. Personal: nothing that is trained; the profiles are states that a client computes from its
    history at each search. A text is the mean of its word vectors.
    """

    name: ClassVar[str] = "hrnn"
    n_features: int = 20
    dim: int = 100
    hidden: int = 100  # numbers of a state

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return matrices(
            {
                **gru_shapes("searches", n_in=2 * self.dim, n_out=self.hidden),
                **gru_shapes("sessions", n_in=self.hidden, n_out=self.hidden),
                "attention/query": (self.dim, self.hidden),
                "attention/state": (self.hidden, self.hidden),
                "attention/bias": (self.hidden,),
                "attention/output": (self.hidden, 1),
                "document/weights": (self.dim, self.hidden),
                "features/weights": (self.n_features, 1),
                "features/bias": (1,),
                "combine/weights": (3, 1),
            }
        )


def score_hrnn(
    model: Hrnn,
    shared: Parts,
    personal: Parts,  # noqa: ARG001 - all models take the same arguments
    inputs: PersonalInputs,
    items: jax.Array,
    key: jax.Array | None = None,  # noqa: ARG001
) -> jax.Array:
    """[B, D]; items: of `read_hrnn`."""
    long, short = find_windows(inputs)
    query = _average(shared, inputs.query_words)
    documents = _average(shared, inputs.document_words) @ shared["document/weights"]
    short_profile = run_gru(shared, "searches", items[short.rows], short.is_item)
    long_profile = _read_sessions(shared, query, *_run_sessions(shared, items[long.rows], long, model.hidden))
    cosines = [find_cosine(profile[:, None, :], documents) for profile in (short_profile, long_profile)]
    return combine_scores(shared, *cosines, score_features(shared, inputs.features))


def read_hrnn(
    model: Hrnn,  # noqa: ARG001
    shared: Parts,
    history: HistoryTable,
    key: jax.Array | None = None,  # noqa: ARG001
) -> jax.Array:
    """[H, 2 d] each earlier search: its query, and its clicked documents."""
    return jnp.concatenate([_average(shared, words) for words in (history.query_words, history.clicked_words)], axis=-1)


def _average(shared: Parts, words: jax.Array) -> jax.Array:
    """[..., d]"""
    n_words = jnp.maximum(jnp.sum(words > 0, axis=-1, keepdims=True), 1)
    return jnp.sum(look_up(shared[WORDS], words), axis=-2) / n_words


def _run_sessions(shared: Parts, items: jax.Array, window: HistoryWindow, hidden: int) -> tuple[jax.Array, jax.Array]:
    """[B, T, hidden] the upper state after each item, and [B, T] whether a session ends there.

    The lower state begins at zero in each session; where a session ends, it is the next input of the upper unit.
    """
    begins = jnp.pad(window.sessions[:, 1:] != window.sessions[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    ends = window.is_item & jnp.pad(begins[:, 1:], ((0, 0), (0, 1)), constant_values=True)

    def advance(
        states: tuple[jax.Array, jax.Array], now: tuple[jax.Array, ...]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        (lower, upper), (item, is_item, is_first, is_last) = states, now
        lower = jnp.where(is_first[:, None], 0.0, lower)
        lower = jnp.where(is_item[:, None], step_gru(shared, "searches", item, lower), lower)
        upper = jnp.where(is_last[:, None], step_gru(shared, "sessions", lower, upper), upper)
        return (lower, upper), upper

    zeros = jnp.zeros((items.shape[0], hidden), items.dtype)
    steps = (jnp.moveaxis(items, 1, 0), window.is_item.T, begins.T, ends.T)
    return jnp.moveaxis(jax.lax.scan(advance, (zeros, zeros), steps)[1], 0, 1), ends


def _read_sessions(shared: Parts, query: jax.Array, states: jax.Array, ends: jax.Array) -> jax.Array:
    """[B, hidden] the mean of the states at session ends, weighted by how much each says about the query."""
    seen = states @ shared["attention/state"] + (query @ shared["attention/query"])[:, None, :]
    logits = (jnp.tanh(seen + shared["attention/bias"]) @ shared["attention/output"])[..., 0]
    weights = jax.nn.softmax(jnp.where(ends, logits, -1e9), axis=-1) * ends
    return jnp.sum(weights[..., None] * states, axis=1)
