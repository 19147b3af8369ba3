"""HTPS: transformers put the query into the context of its session, then of the whole history. [htps]

It runs in the simulator only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.history_fast import find_windows
from hushrank.personal.models.layers_fast import (
    Parts,
    attend,
    combine_scores,
    drop_units,
    find_cosine,
    look_up,
    score_features,
    score_kernels,
)
from hushrank.personal.models.parameters import WORDS, attention_shapes, kernel_shapes, matrices
from hushrank.streams_fast import fold_in
from hushrank.types import Array, Parameter

_LAYERS = ("words", "session", "history")
_N_DROPS = 2  # in one transformer


@dataclass(frozen=True, slots=True)
class Htps:
    """score = w . (cosines of the document with the query in its session and in its history, two kernels, features).

    Shared: all of it. Personal: nothing that is trained; a client puts each query into the context of its own history.
    Differs: a text is the mean of its words in context rather than their sum, which cosines do not see, so that long
    titles do not drown out the query; a history item is the sum of its query and its clicked document.
    """

    name: ClassVar[str] = "htps"
    n_features: int = 20
    dim: int = 100
    heads: int = 6
    head_size: int = 50
    inner: int = 256
    dropout: float = 0.1

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        layers = {
            name: shape
            for layer in _LAYERS
            for name, shape in {
                **attention_shapes(layer, dim=self.dim, heads=self.heads, head_size=self.head_size),
                f"{layer}/inner/weights": (self.dim, self.inner),
                f"{layer}/inner/bias": (self.inner,),
                f"{layer}/outer/weights": (self.inner, self.dim),
                f"{layer}/outer/bias": (self.dim,),
                **{f"{layer}/{norm}/{part}": (self.dim,) for norm in ("norm-1", "norm-2") for part in ("gain", "bias")},
            }.items()
        }
        kernels = {**kernel_shapes("kernels/global"), **kernel_shapes("kernels/context")}
        features = {"features/weights": (self.n_features, 1), "features/bias": (1,), "combine/weights": (5, 1)}
        return matrices({**layers, **kernels, **features})


def score_htps(
    model: Htps,
    shared: Parts,
    personal: Parts,  # noqa: ARG001 - all models take the same arguments
    inputs: PersonalInputs,
    key: jax.Array | None = None,
) -> jax.Array:
    """[B, D]; units are left out only with a key, that is in training."""
    keys = [None if key is None else fold_in(key, jnp.asarray(place)) for place in range(6)]
    is_word, is_title_word = inputs.query_words > 0, inputs.document_words > 0
    query, documents = look_up(shared[WORDS], inputs.query_words), look_up(shared[WORDS], inputs.document_words)
    around_query = _transform(model, shared, "words", query, is_word, keys[0])
    around_documents = _transform(model, shared, "words", documents, is_title_word, keys[1])
    found = _average(around_documents, is_title_word)
    history = inputs.history
    items = sum(
        _average(_transform(model, shared, "words", look_up(shared[WORDS], words), words > 0, drawn), words > 0)
        for words, drawn in ((history.query_words, keys[2]), (history.clicked_words, keys[3]))
    )  # [H, d]
    long, short = find_windows(inputs)
    in_session = _put_last(
        model, shared, "session", items[short.rows], short.is_item, _average(around_query, is_word), keys[4]
    )
    in_history = _put_last(model, shared, "history", items[long.rows], long.is_item, in_session, keys[5])
    return combine_scores(
        shared,
        find_cosine(in_session[:, None, :], found),
        find_cosine(in_history[:, None, :], found),
        score_kernels(shared, "kernels/global", query, documents, is_word, is_title_word),
        score_kernels(shared, "kernels/context", around_query, around_documents, is_word, is_title_word),
        score_features(shared, inputs.features),
    )


def _put_last(
    model: Htps,
    shared: Parts,
    layer: str,
    items: jax.Array,
    is_item: jax.Array,
    query: jax.Array,
    key: jax.Array | None,
) -> jax.Array:
    """[B, d] the query after a transformer over [items; query], each with its distance from the query."""
    tokens = jnp.concatenate([items, query[:, None, :]], axis=1)
    is_token = jnp.pad(is_item, ((0, 0), (0, 1)), constant_values=True)
    return _transform(model, shared, layer, tokens + _distances(*tokens.shape[1:]), is_token, key)[:, -1]


def _transform(
    model: Htps, shared: Parts, layer: str, x: jax.Array, is_item: jax.Array, key: jax.Array | None
) -> jax.Array:
    """[..., L, d] attention, then a small network, each added to its input and normalised."""
    first, second = (None if key is None else fold_in(key, jnp.asarray(place)) for place in range(_N_DROPS))
    read = attend(shared, layer, x, is_item, heads=model.heads)
    x = _normalise(shared, f"{layer}/norm-1", x + drop_units(read, first, model.dropout))
    inner = jax.nn.relu(x @ shared[f"{layer}/inner/weights"] + shared[f"{layer}/inner/bias"])
    outer = inner @ shared[f"{layer}/outer/weights"] + shared[f"{layer}/outer/bias"]
    return _normalise(shared, f"{layer}/norm-2", x + drop_units(outer, second, model.dropout))


def _normalise(shared: Parts, name: str, x: jax.Array) -> jax.Array:
    """Mean 0 and variance 1 over each vector, then a gain (its parameter is the gain less one) and a bias."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    scaled = centred / jnp.sqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-6)
    return scaled * (1.0 + shared[f"{name}/gain"]) + shared[f"{name}/bias"]


def _average(x: jax.Array, is_item: jax.Array) -> jax.Array:
    """[..., d] over the items of [..., L, d]"""
    n_items = jnp.maximum(jnp.sum(is_item, axis=-1, keepdims=True), 1)
    return jnp.sum(jnp.where(is_item[..., None], x, 0.0), axis=-2) / n_items


def _distances(n: int, dim: int) -> Array:
    """[n, dim] sines and cosines of the distance from the last place, as in the transformer's position encoding."""
    angles = np.arange(n)[::-1, None] / 10_000.0 ** (np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, -1)[:, :dim].astype(np.float32)
