"""The JAX twin of `cascade.py` and `position.py`: clicks from a probability table, without a loop over positions."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def table_clicks(click_draws: jax.Array, stop_draws: jax.Array, *, click: jax.Array, stop: jax.Array) -> jax.Array:
    """[..., k] True where clicked; click and stop [..., k] are the probabilities of the shown documents, 0 for padding.

    A person who would click and then stop at rank j examines nothing below j: "would" needs no knowledge of the ranks
    above, so whether they have left is a running sum.
    """
    would_click = click_draws < click
    leaves = would_click & (stop_draws < stop)
    has_left = jnp.cumsum(leaves, axis=-1) - leaves > 0
    return would_click & ~has_left
