"""How a compiled program adds updates up: as they are, or in the whole numbers of a secure sum.

Shapes: C cells, b clients of a block, p parameters.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import jax.numpy as jnp
import numpy as np

from hushrank.aggregation.mean import MeanState, mean_finish
from hushrank.engine.noise import mean_noise, noise_steps
from hushrank.engine.setting import Method
from hushrank.federation.summation import MaskedSum, OpenSum
from hushrank.privacy.sum_format import SumFormat
from hushrank.types import Array


class Addition(Protocol):
    """What differs between the two."""

    @property
    def dtype(self) -> type[np.float32] | type[np.int32]:
        """Of a sum."""

    def draw_noise(self, method: Method, key: Array, round: int) -> Array:
        """[p] what the host adds in a round of one cell."""

    def add(self, method: Method, updates: Any, weights: Any) -> tuple[Any, Any]:
        """[C, p] the weighted sum of updates [C, b, p], and how many numbers are out of range."""

    def finish(self, method: Method, mean: MeanState, noise: Any) -> Any:
        """[C, p] the update of a round from its sum; noise [C, p] or None."""

    def check(self, method: Method, n_outside: int) -> None:
        """Refuse a round with numbers out of range."""


class OpenAddition:
    """Float32 numbers, as they are."""

    dtype: ClassVar[type[np.float32]] = np.float32

    def draw_noise(self, method: Method, key: Array, round: int) -> Array:
        return mean_noise(method, key, round)

    def add(self, method: Method, updates: Any, weights: Any) -> tuple[Any, Any]:
        del method
        return jnp.einsum("cb,cbp->cp", weights.astype(jnp.float32), updates), jnp.int32(0)

    def finish(self, method: Method, mean: MeanState, noise: Any) -> Any:
        times = 1.0 if method.batch is None else float(method.batch)  # Why: a central batch sums, a mean divides
        combined = divide(method, mean)
        return times * combined if noise is None else combined + noise

    def check(self, method: Method, n_outside: int) -> None:
        del method, n_outside


class WordAddition:
    """Whole numbers modulo 2^32: what the protocol's words add up to, without keys and masks."""

    dtype: ClassVar[type[np.int32]] = np.int32

    def draw_noise(self, method: Method, key: Array, round: int) -> Array:
        return noise_steps(method, format_of(method), key, round).astype(np.int32)

    def add(self, method: Method, updates: Any, weights: Any) -> tuple[Any, Any]:
        return add_words(format_of(method), updates, weights)

    def finish(self, method: Method, mean: MeanState, noise: Any) -> Any:
        words = mean.total if noise is None else mean.total + noise
        return divide(method, MeanState(words.astype(jnp.float32) * format_of(method).step, mean.weight))

    def check(self, method: Method, n_outside: int) -> None:
        format_of(method).check_range(n_outside)


def add_words(format: SumFormat, updates: Any, weights: Any) -> tuple[Any, Any]:
    """[C, p] int32, twin of `SumFormat.add` for updates [C, b, p] of weights [C, b]; and how many are out of range.

    Exact: a float32 number over a power of two is one, rounded too, and 32-bit sums wrap as the protocol's do.
    """
    steps = jnp.rint(updates / format.step).astype(jnp.int32)
    n_outside = jnp.sum(~(jnp.abs(updates) <= format.largest) & (weights > 0)[..., None], dtype=jnp.int32)
    return jnp.sum(weights.astype(jnp.int32)[..., None] * steps, axis=1, dtype=jnp.int32), n_outside


def divide(method: Method, mean: MeanState) -> Any:
    return mean_finish(mean) if method.divisor is None else mean.total / method.divisor


def format_of(method: Method) -> SumFormat:
    format = method.summation.format
    assert format is not None
    return format


# {how updates are added up: how programs do it}
ADDITIONS: dict[str, Addition] = {OpenSum.name: OpenAddition(), MaskedSum.name: WordAddition()}
