"""The JAX twin of `ndcg.py`, for many padded lists at once: those that people are shown.

Shapes: the last axis is the list, padded, with `where` True at real documents; leading axes are batches and broadcast.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def shown_ndcg(grades: jax.Array, where: jax.Array, ideal: jax.Array) -> jax.Array:
    """[...] nDCG of shown lists [..., k] given their queries' ideal DCG@k [...]; 0 where that is 0. Twin of `ndcg`."""
    return jnp.where(ideal > 0, shown_dcg(grades, where) / jnp.where(ideal > 0, ideal, 1.0), 0.0)


def shown_dcg(grades: jax.Array, where: jax.Array) -> jax.Array:
    """[...] DCG of shown lists [..., k]. Twin of `dcg`."""
    gains = (jnp.left_shift(1, grades.astype(jnp.int32)) - 1).astype(jnp.float32)
    discounts = 1.0 / jnp.log2(1.0 + jnp.arange(1, grades.shape[-1] + 1))
    return jnp.sum(jnp.where(where, gains * discounts, 0.0), axis=-1)
