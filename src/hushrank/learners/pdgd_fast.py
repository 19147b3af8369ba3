"""The JAX twin of `pdgd.py`: many lists at once, all pairs of a shown list at once.

Shapes: [k, n] positions by lists. Why: with the lists on the last axis each position is a vector of the processor.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def preference_weights(shown: jax.Array, tail: jax.Array, is_clicked: jax.Array, is_shown: jax.Array) -> jax.Array:
    """[k, n] the weight of each shown document's score gradient; twin of the loop in `pdgd.pdgd_gradient`.

    shown [k, n] scores, tail [n] log of the sum of e^score over the candidates that are not shown, is_shown [k, n]
    False beyond the end of a short list.
    """
    sign = preference_signs(is_clicked, is_shown)
    gap = jax.nn.sigmoid(shown[:, None] - shown[None, :])
    rho = reversal_weights(shown, log_mass_left(shown, tail, is_shown))
    pull = sign * rho * gap * (1.0 - gap)  # [fpdgd, Eqs. 5, 6]
    pull = jnp.where(sign == 0, 0.0, pull)  # Why: beyond the end of a list rho is not a number
    return pull.sum(axis=1) - pull.sum(axis=0)


def preference_signs(is_clicked: jax.Array, is_shown: jax.Array) -> jax.Array:
    """[k, k, n] for a < b: 1 where a is preferred, -1 where b is; else 0. Twin of `pdgd.infer_preferences`."""
    position = jnp.arange(is_clicked.shape[0])[:, None]
    last = jnp.max(jnp.where(is_clicked, position, -2), axis=0)
    is_passed = (position <= last + 1) & is_shown & ~is_clicked
    sign = (is_clicked[:, None] & is_passed[None, :]).astype(jnp.float32) - (is_passed[:, None] & is_clicked[None, :])
    return jnp.where(position[:, None] < position[None, :], sign, 0.0)


def log_mass_left(shown: jax.Array, tail: jax.Array, is_shown: jax.Array) -> jax.Array:
    """[k, n] twin of `pdgd.log_mass_left`."""
    left, upwards = tail, []
    for i in reversed(range(shown.shape[0])):
        left = jnp.where(is_shown[i], jnp.logaddexp(left, shown[i]), left)
        upwards.append(left)
    return jnp.stack(upwards[::-1])


def reversal_weights(shown: jax.Array, left: jax.Array) -> jax.Array:
    """[k, k, n] rho of positions a < b (other cells are not meant to be read); twin of `pdgd.reversal_weight`."""
    k, n = shown.shape
    position = jnp.arange(k)
    first, second = position[:, None, None], position[None, :, None]
    share = jnp.exp(shown[None] - left[:, None])  # [i, position, n]
    ratio = jnp.ones((k, k, n), shown.dtype)
    for i in range(1, k):
        factor = jnp.maximum(1.0 + share[i][:, None] - share[i][None, :], 0.0)
        ratio = jnp.where((first < i) & (i <= second), ratio * factor, ratio)
    return 1.0 / (1.0 + ratio)
