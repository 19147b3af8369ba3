"""The JAX twin of `ndcg.py`, for many padded lists at once: lists shown to people, or whole queries under many rankers.

Shapes: the last axis is the list, padded, with `where` True at real documents; leading axes are batches and broadcast.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def shown_ndcg(grades: jax.Array, where: jax.Array, ideal: jax.Array) -> jax.Array:
    """[...] nDCG of shown lists [..., k] given their queries' ideal DCG@k [...]; 0 where that is 0. Twin of `ndcg`."""
    gains = (jnp.left_shift(1, grades.astype(jnp.int32)) - 1).astype(jnp.float32)
    discounts = 1.0 / jnp.log2(1.0 + jnp.arange(1, grades.shape[-1] + 1))
    total = jnp.sum(jnp.where(where, gains * discounts, 0.0), axis=-1)
    return jnp.where(ideal > 0, total / jnp.where(ideal > 0, ideal, 1.0), 0.0)


def top_grades(scores: jax.Array, grades: jax.Array, where: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """([..., k], [..., k]) grades of the k highest scores, and where there are that many. Twin of `rank_by_score`.

    Equal scores keep the order of the file: `top_k` prefers the lower index.
    Why: -0.0 becomes 0.0 first, because `top_k` puts the one below the other and NumPy does not.
    """
    width = scores.shape[-1]
    ordered = jnp.where(where, jnp.where(scores == 0, 0.0, scores), -jnp.inf)
    order = jax.lax.top_k(ordered, min(k, width))[1]
    shape = order.shape
    shown = jnp.take_along_axis(jnp.broadcast_to(grades, (*shape[:-1], width)), order, axis=-1)
    is_real = jnp.take_along_axis(jnp.broadcast_to(where, (*shape[:-1], width)), order, axis=-1)
    padding = [(0, 0)] * (len(shape) - 1) + [(0, k - shape[-1])]
    return jnp.pad(jnp.where(is_real, shown, 0), padding), jnp.pad(is_real, padding)


def ranked_ndcg(scores: jax.Array, grades: jax.Array, where: jax.Array, ideal: jax.Array, k: int) -> jax.Array:
    """[...] nDCG@k of the order that scores [..., width] give; scores may have more batch axes, such as rankers."""
    return shown_ndcg(*top_grades(scores, grades, where, k), ideal)
