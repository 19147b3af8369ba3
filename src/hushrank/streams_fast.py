"""The JAX twin of `streams.py`: the same bits, inside compiled programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from hushrank.streams import threefry, to_uniform


def fold_in(key: jax.Array, names: jax.Array) -> jax.Array:
    """[..., 2] one new key for each uint32 in `names`; twin of `streams.fold_in` for names below 2^32."""
    low = jnp.asarray(names).astype(jnp.uint32)
    # Why the barrier: XLA would fuse a chain of derivations into one kernel, whose compilation takes half a minute.
    return jax.lax.optimization_barrier(jnp.stack(threefry(key, jnp.zeros_like(low), low), axis=-1))


def draw_bits(key: jax.Array, n: int) -> jax.Array:
    """[..., n] uint32; twin of `streams.draw_bits`."""
    counters = jnp.arange((n + 1) // 2, dtype=jnp.uint32)
    pair = threefry(key[..., None, :], jnp.zeros_like(counters), counters)
    return jnp.stack(pair, axis=-1).reshape(*key.shape[:-1], -1)[..., :n]


def draw_uniform(key: jax.Array, n: int) -> jax.Array:
    """[..., n] float32, strictly between 0 and 1; twin of `streams.draw_uniform`."""
    uniform: jax.Array = to_uniform(draw_bits(key, n))
    return uniform
