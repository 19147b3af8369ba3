"""The JAX twin of `policy.py`, on padded lists."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def sample_ranking(scores: jax.Array, uniforms: jax.Array, *, where: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """Twin of `policy.sample_ranking`; returns what `sort_ranking` does."""
    return sort_ranking(scores - jnp.log(-jnp.log(uniforms)), where=where, k=k)


def sort_ranking(scores: jax.Array, *, where: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """[..., k] document indices by decreasing score, padding last, and [..., n] which documents are not among them.

    Twin of `policy.sort_ranking`. Why: -0.0 becomes 0.0 first, because `top_k` puts the one below the other.
    """
    masked = jnp.where(where, jnp.where(scores == 0, 0.0, scores), -jnp.inf)
    values, places = jax.lax.top_k(masked, k)
    last, place = values[..., -1:], places[..., -1:]
    is_after = (masked < last) | ((masked == last) & (jnp.arange(masked.shape[-1]) > place))
    return places, is_after & where
