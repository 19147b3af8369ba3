"""The JAX twin of `linear.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


class FastLinearRanker:
    """Twin of `LinearRanker`. Why sums, not matrix products: XLA fuses them with gathering the documents."""

    def score(self, params: Any, features: Any) -> Any:
        return jnp.sum(features * params, axis=-1)

    def score_gradient(self, params: Any, features: Any, weights: Any) -> Any:  # noqa: ARG002 - the slope is the same everywhere
        return jnp.sum(weights[:, None] * features, axis=0)
