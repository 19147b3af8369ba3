"""The JAX twin of `policy.py`, on padded lists."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def sample_ranking(
    scores: jax.Array, uniforms: jax.Array, *, where: jax.Array, k: int, by_counting: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Twin of `policy.sample_ranking`; returns what `sort_ranking` does."""
    return sort_ranking(scores - jnp.log(-jnp.log(uniforms)), where=where, k=k, by_counting=by_counting)


def sort_ranking(
    scores: jax.Array, *, where: jax.Array, k: int, by_counting: bool = False
) -> tuple[jax.Array, jax.Array]:
    """[..., k] document indices by decreasing score, padding last, and [..., n] which documents are among them.

    Twin of `policy.sort_ranking`. `by_counting` compares all pairs instead of sorting: on a GPU two kernels instead of
    dozens. Why: -0.0 becomes 0.0 first, because XLA sorts the one below the other.
    """
    masked = jnp.where(where, jnp.where(scores == 0, 0.0, scores), -jnp.inf)
    n = masked.shape[-1]
    if by_counting:
        ranks = count_better(masked)
        is_place = ranks[..., None, :] == jnp.arange(k)[:, None]  # [..., k, n]
        return jnp.sum(jnp.where(is_place, jnp.arange(n), 0), axis=-1), ranks < k
    places = jax.lax.top_k(masked, k)[1]
    return places, jnp.any(places[..., None] == jnp.arange(n), axis=-2)


def count_better(scores: jax.Array) -> jax.Array:
    """[..., n] how many documents stand before each one; equal scores keep their order."""
    n = scores.shape[-1]
    ours, theirs = scores[..., :, None], scores[..., None, :]
    is_earlier = jnp.arange(n)[None, :] < jnp.arange(n)[:, None]
    return jnp.sum((theirs > ours) | ((theirs == ours) & is_earlier), axis=-1)
