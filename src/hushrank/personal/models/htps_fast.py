"""HTPS: transformers put the query into the context of its session, then of the whole history. [htps]

It runs in the simulator only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from hushrank.personal.inputs import HistoryTable, PersonalInputs
from hushrank.personal.models.history_fast import find_windows
from hushrank.personal.models.layers_fast import (
    Parts,
    attend,
    combine_scores,
    draw_drops,
    drop_units,
    find_cosine,
    look_up,
    score_features,
    score_kernels,
)
from hushrank.personal.models.parameters import WORDS, attention_shapes, kernel_shapes, matrices
from hushrank.types import Array, Parameter

_LAYERS = ("words", "session", "history")
Drops: TypeAlias = Sequence[jax.Array | None]  # of the two places in one transformer where units are left out


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
    items: jax.Array,
    key: jax.Array | None = None,
) -> jax.Array:
    """[B, D]; items: of `read_htps`. Units are left out only with a key, that is in training."""
    b, d = len(inputs.query_words), model.dim
    drops = draw_drops(key, model.dropout, [(2 * b, d)] * 2 + [(b, d)] * 4)
    texts = _read_texts(model, shared, inputs, drops[:2])
    long, short = find_windows(inputs)
    query = _average(*texts.query)
    in_session = _put_last(model, shared, "session", items[short.rows], short.is_item, query, drops[2:4])
    in_history = _put_last(model, shared, "history", items[long.rows], long.is_item, in_session, drops[4:6])
    found = _average(*texts.documents)
    cosines = [find_cosine(each[:, None, :], found) for each in (in_session, in_history)]
    words, titles = look_up(shared[WORDS], inputs.query_words), look_up(shared[WORDS], inputs.document_words)
    around = texts.query[0][:, : inputs.query_words.shape[-1]]
    pairs = {"kernels/global": (words, titles), "kernels/context": (around, texts.documents[0])}
    kernels = score_kernels(shared, pairs, inputs.query_words > 0, inputs.document_words > 0)
    return combine_scores(shared, *cosines, *kernels, score_features(shared, inputs.features))


def read_htps(model: Htps, shared: Parts, history: HistoryTable, key: jax.Array | None = None) -> jax.Array:
    """[H, d] each earlier search: its query and its clicked documents, each by its words in context."""
    ragged = history.query_words, history.clicked_words
    drops = draw_drops(key, model.dropout, [(2 * len(history.sessions), model.dim)] * 2)
    queries, clicks = _read_ragged(model, shared, ragged, drops)
    return _average(*queries) + _average(*clicks)


class _Texts(NamedTuple):
    """Word vectors in context [..., Ld, d] and which of them are words [..., Ld]."""

    query: tuple[jax.Array, jax.Array]  # [B, ...]
    documents: tuple[jax.Array, jax.Array]  # [B, D, ...]


def _read_texts(model: Htps, shared: Parts, inputs: PersonalInputs, drops: Drops) -> _Texts:
    """Queries and their candidates."""
    b, d, n_title = inputs.document_words.shape
    owners = np.concatenate([np.arange(b), b + np.repeat(np.arange(b), d)])
    of_texts = [None if factors is None else factors[owners] for factors in drops]
    ragged = inputs.query_words, inputs.document_words.reshape(b * d, n_title)
    query, (around, _) = _read_ragged(model, shared, ragged, of_texts)
    return _Texts(query, (around.reshape(b, d, -1, model.dim)[:, :, :n_title], inputs.document_words > 0))


def _read_ragged(
    model: Htps, shared: Parts, ragged: Sequence[jax.Array], drops: Drops
) -> list[tuple[jax.Array, jax.Array]]:
    """Texts of several widths through one transformer, in one pass. Why: compilation pays for each pass."""
    width = max(each.shape[-1] for each in ragged)
    words = jnp.concatenate([jnp.pad(each, ((0, 0), (0, width - each.shape[-1]))) for each in ragged])
    around = _transform(model, shared, "words", look_up(shared[WORDS], words), words > 0, drops)
    cuts = np.cumsum([len(each) for each in ragged[:-1]]).tolist()
    return list(zip(jnp.split(around, cuts), jnp.split(words > 0, cuts), strict=True))


def _put_last(
    model: Htps,
    shared: Parts,
    layer: str,
    items: jax.Array,
    is_item: jax.Array,
    query: jax.Array,
    drops: Drops,
) -> jax.Array:
    """[B, d] the query after a transformer over [items; query], each with its distance from the query."""
    tokens = jnp.concatenate([items, query[:, None, :]], axis=1)
    is_token = jnp.pad(is_item, ((0, 0), (0, 1)), constant_values=True)
    return _transform(model, shared, layer, tokens + _distances(*tokens.shape[1:]), is_token, drops)[:, -1]


def _transform(model: Htps, shared: Parts, layer: str, x: jax.Array, is_item: jax.Array, drops: Drops) -> jax.Array:
    """[..., L, d] attention, then a small network, each added to its input and normalised."""
    read = attend(shared, layer, x, is_item, heads=model.heads)
    x = _normalise(shared, f"{layer}/norm-1", x + drop_units(read, drops[0]))
    inner = jax.nn.relu(x @ shared[f"{layer}/inner/weights"] + shared[f"{layer}/inner/bias"])
    outer = inner @ shared[f"{layer}/outer/weights"] + shared[f"{layer}/outer/bias"]
    return _normalise(shared, f"{layer}/norm-2", x + drop_units(outer, drops[1]))


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
