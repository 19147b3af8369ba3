"""What a block of clients does under a remedy that keeps something: twin of `personal.study_with_memory`, compiled.

Shapes: C cells, b clients of a block, p parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hushrank.engine.inputs import PARAMS
from hushrank.engine.setting import Method
from hushrank.federation.state import PERSONAL, REMEDY, part_of, with_owner
from hushrank.remedies.remedy import MeanMessage, Turn
from hushrank.types import NamedArrays


class ClientBlock(NamedTuple):
    """Clients of a block, before they learn."""

    params: Any  # [C, p]
    shared: NamedArrays  # [C, ...] what servers remember of a remedy
    own: NamedArrays  # [C, b, ...] what the clients keep
    ids: Any  # [C, b]
    n_steps: Any  # [C, b]


def personal_part(state: NamedArrays) -> dict[str, Any]:
    """[C, n_clients, ...] what clients keep, under the names of the whole state."""
    return {name: array for name, array in state.items() if name.startswith(f"{PERSONAL}/")}


def gather_block(state: NamedArrays, ids: Any, n_steps: Any) -> ClientBlock:
    cell = jnp.arange(len(ids))[:, None]
    own = {name: array[cell, ids] for name, array in part_of(state, PERSONAL).items()}
    return ClientBlock(state[PARAMS], part_of(state, REMEDY), own, ids, n_steps)


def begin_block(method: Method, block: ClientBlock) -> tuple[Any, Any]:
    """[C * b, p] where each client begins, and the shift of its local gradients or None."""

    def begin(params: Any, shared: Any, own: Any, ids: Any, n_steps: Any) -> Any:
        return method.remedy.begin(Turn(jnp, params, shared, own, ids, n_steps, method.learning_rate))

    starts, shifts = jax.vmap(begin)(*block)
    return _as_rows(starts), None if shifts is None else _as_rows(shifts)


def finish_block(method: Method, block: ClientBlock, moved: Any) -> tuple[Any, dict[str, Any]]:
    """[C, b, n_sent] what the clients send, and [C, b, ...] what they keep; moved [C * b, p]."""

    def finish(moved: Any, params: Any, shared: Any, own: Any, ids: Any, n_steps: Any) -> Any:
        return method.remedy.finish(Turn(jnp, params, shared, own, ids, n_steps, method.learning_rate), moved)

    sent, kept = jax.vmap(finish)(moved.reshape(*block.ids.shape, -1), *block)
    return sent, with_owner(PERSONAL, kept)


def absorb_means(method: Method, state: NamedArrays, means: Any) -> dict[str, Any]:
    """[C, ...] what servers remember of a round whose messages have these means [C, n_sent]."""
    population = method.population

    def absorb(shared: Any, numbers: Any) -> Any:
        return method.remedy.absorb(shared, MeanMessage(jnp, numbers, population.n_clients, population.cohort_size))

    shared = part_of(state, REMEDY)
    return with_owner(REMEDY, jax.vmap(absorb)(shared, means)) if shared else {}


def _as_rows(arrays: Any) -> Any:
    return arrays.reshape(-1, arrays.shape[-1])
