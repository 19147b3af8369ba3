"""The JAX twin of `policy.py`, on padded lists."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def sample_ranking(scores: jax.Array, uniforms: jax.Array, *, where: jax.Array, k: int) -> jax.Array:
    """[..., k] document indices; places beyond the list's length hold padding. Twin of `policy.sample_ranking`."""
    return sort_ranking(scores - jnp.log(-jnp.log(uniforms)), where=where, k=k)


def sort_ranking(scores: jax.Array, *, where: jax.Array, k: int) -> jax.Array:
    """[..., k] document indices by decreasing score, padding last. Twin of `policy.sort_ranking`.

    Why: -0.0 becomes 0.0 first, because `top_k` puts the one below the other and NumPy does not.
    """
    return jax.lax.top_k(jnp.where(where, jnp.where(scores == 0, 0.0, scores), -jnp.inf), k)[1]
