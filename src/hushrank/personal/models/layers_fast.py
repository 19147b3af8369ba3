"""The layers of all models in JAX; twin of `layers.py`, whose docstrings say what they compute.

Shapes: ... stands for any batch; L words of a text, d numbers of a vector. Padding has word 0 and vector 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from hushrank.personal.models.layers import FAR, MEANS, SHARPNESS, TINY_COUNT, TINY_NORM
from hushrank.streams_fast import draw_uniform

Parts: TypeAlias = Mapping[str, jax.Array]


def look_up(vectors: jax.Array, words: jax.Array) -> jax.Array:
    """[..., L, d]"""
    return jnp.where((words > 0)[..., None], vectors[words], 0.0)


def look_up_own(vectors: jax.Array, own: jax.Array, words: jax.Array, rows: jax.Array) -> jax.Array:
    """[..., L, d]"""
    is_row = (rows[..., None] == jnp.arange(own.shape[0])).astype(own.dtype)
    # Why a product: its gradient is one as well, where that of an index adds up row by row in a GPU's memory
    picked = jnp.einsum("...lp,pd->...ld", is_row, own, precision="highest")
    return jnp.where((rows >= 0)[..., None], picked, look_up(vectors, words))


def make_unit(x: jax.Array) -> jax.Array:
    return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + TINY_NORM)


def find_cosine(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.sum(make_unit(a) * make_unit(b), axis=-1)


def score_kernels(
    parts: Parts,
    pairs: Mapping[str, tuple[jax.Array, jax.Array]],
    is_word: jax.Array,
    is_title_word: jax.Array,
) -> list[jax.Array]:
    """[B, D] for each name: query vectors [B, Lq, d] against document vectors [B, D, Ld, d].

    Why all at once: one small program instead of one for each, and that is what compilation pays for.
    """
    cosines = jnp.stack([_compare(*pair) for pair in pairs.values()])
    # Why checkpoint: eleven numbers for each pair of words would fill the memory; computing them again is cheaper
    pool = jax.checkpoint(pool_kernels)
    pooled = pool(jnp.where(is_title_word[:, :, None, :], cosines, FAR), is_word)
    return [
        jnp.tanh(one @ parts[f"{name}/weights"] + parts[f"{name}/bias"])[..., 0]
        for name, one in zip(pairs, pooled, strict=True)
    ]


def _compare(query: jax.Array, documents: jax.Array) -> jax.Array:
    """[B, D, Lq, Ld] the cosine of each query word and each title word."""
    return jnp.einsum("bqd,bkld->bkql", make_unit(query), make_unit(documents))


def pool_kernels(cosines: jax.Array, is_word: jax.Array) -> jax.Array:
    """[..., B, D, 11] from [..., B, D, Lq, Ld]"""
    counts = [
        jnp.sum(jnp.exp(-sharpness * (cosines - mean) ** 2), axis=-1)
        for mean, sharpness in zip(MEANS.tolist(), SHARPNESS.tolist(), strict=True)
    ]
    logs = 0.01 * jnp.log(jnp.maximum(jnp.stack(counts, axis=-1), TINY_COUNT))
    return jnp.sum(jnp.where(is_word[:, None, :, None], logs, 0.0), axis=-2)


def attend(parts: Parts, name: str, x: jax.Array, is_item: jax.Array, *, heads: int) -> jax.Array:
    """[..., L, d]"""
    query, keys, values = (
        (x @ parts[f"{name}/{part}"]).reshape(*x.shape[:-1], heads, -1) for part in ("query", "key", "value")
    )
    logits = jnp.einsum("...qhs,...khs->...hqk", query, keys) / query.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(is_item[..., None, None, :], logits, -1e9), axis=-1)
    found = jnp.einsum("...hqk,...khs->...qhs", weights, values)
    return found.reshape(*x.shape[:-1], -1) @ parts[f"{name}/output"]


def add_context(parts: Parts, name: str, x: jax.Array, is_item: jax.Array, *, heads: int) -> jax.Array:
    return x + attend(parts, name, x, is_item, heads=heads)


def step_gru(parts: Parts, name: str, x: jax.Array, state: jax.Array) -> jax.Array:
    """[..., n_out] the state after one more input [..., n_in]."""
    reset_x, update_x, new_x = jnp.split(x @ parts[f"{name}/input"] + parts[f"{name}/bias"], 3, axis=-1)
    reset_h, update_h, new_h = jnp.split(state @ parts[f"{name}/state"], 3, axis=-1)
    update = jax.nn.sigmoid(update_x + update_h)
    new = jnp.tanh(new_x + jax.nn.sigmoid(reset_x + reset_h) * new_h)
    return update * state + (1 - update) * new


def run_gru(parts: Parts, name: str, x: jax.Array, is_item: jax.Array) -> jax.Array:
    """[B, n_out] the last state over [B, L, n_in]; where there is no item, the state stays."""

    def advance(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        item, is_there = now
        return jnp.where(is_there[:, None], step_gru(parts, name, item, state), state), None

    first = jnp.zeros((x.shape[0], parts[f"{name}/state"].shape[0]), x.dtype)
    return jax.lax.scan(advance, first, (jnp.moveaxis(x, 1, 0), is_item.T))[0]


def score_features(parts: Parts, features: jax.Array) -> jax.Array:
    """[B, D]"""
    return jnp.tanh(features @ parts["features/weights"] + parts["features/bias"])[..., 0]


def combine_scores(parts: Parts, *scores: jax.Array) -> jax.Array:
    """[B, D]"""
    return (jnp.stack(scores, axis=-1) @ parts["combine/weights"])[..., 0]


def draw_drops(key: jax.Array | None, rate: float, sizes: Sequence[tuple[int, int]]) -> list[jax.Array | None]:
    """For each size [n, d]: by what to multiply units, 0 for those left out, which keeps the mean; without a key None.

    Why all in one draw: the program of a draw is long, and compilation pays for each copy.
    """
    if key is None:
        return [None] * len(sizes)
    ends = np.cumsum([n * d for n, d in sizes]).tolist()
    factors = jnp.where(draw_uniform(key, ends[-1]) < rate, 0.0, 1 / (1 - rate))
    return [part.reshape(size) for part, size in zip(jnp.split(factors, ends[:-1]), sizes, strict=True)]


def drop_units(x: jax.Array, factors: jax.Array | None) -> jax.Array:
    """Leave out units of the last axis, others for each element of the first.

    Differs: the words and candidates of one search lose the same units, which costs one draw per search and unit
    instead of one per word, and compares candidates under the same network.
    """
    return x if factors is None else x * factors.reshape(x.shape[0], *(1,) * (x.ndim - 2), x.shape[-1])
