"""The JAX twin of `loss.py`, in closed form."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def weigh_pairs(is_clicked: jax.Array, is_document: jax.Array) -> jax.Array:
    """[..., D, D] twin of `loss.weigh_pairs`, on padded lists [..., D].

    With c(r) clicked documents up to rank r and t(r) the sum of 1 / rank over them, moving the clicked document at rank
    a down to rank b changes the sum of precisions by c(b) / b - c(a) / a - (t(b) - t(a)), and moving it up by
    (c(b) + 1) / b - c(a) / a + (t(a) - 1 / a - t(b)): those in between lose or gain one above them.
    """
    ranks = jnp.arange(1, is_clicked.shape[-1] + 1, dtype=jnp.float32)
    clicked = (is_clicked & is_document).astype(jnp.float32)
    count, tail = jnp.cumsum(clicked, axis=-1), jnp.cumsum(clicked / ranks, axis=-1)
    down = (count / ranks)[..., None, :] - (count / ranks)[..., :, None] - (tail[..., None, :] - tail[..., :, None])
    up = ((count + 1) / ranks)[..., None, :] - (count / ranks)[..., :, None]
    up = up + (tail - 1 / ranks)[..., :, None] - tail[..., None, :]
    change = (
        jnp.abs(jnp.where(ranks[:, None] < ranks[None, :], down, up)) / jnp.maximum(count[..., -1], 1)[..., None, None]
    )
    return jnp.where(find_pairs(is_clicked, is_document), change, 0.0)


def find_pairs(is_clicked: jax.Array, is_document: jax.Array) -> jax.Array:
    """[..., D, D] bool: i clicked, j not, both candidates."""
    return (is_clicked & is_document)[..., :, None] & (~is_clicked & is_document)[..., None, :]


def pair_loss(scores: jax.Array, is_clicked: jax.Array, is_document: jax.Array) -> jax.Array:
    """The sum over all pairs; twin of `loss.pair_loss`."""
    difference = scores[..., :, None] - scores[..., None, :]
    return jnp.sum(weigh_pairs(is_clicked, is_document) * jax.nn.softplus(-difference))
