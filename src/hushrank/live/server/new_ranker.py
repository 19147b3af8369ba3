"""What a server makes of a round's messages: the new ranker, with the stages that the agreement names.

The same functions as `round.run_round` calls after the messages arrived, so that a federation over a network gives the
simulator's ranker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hushrank.aggregation.mean import mean_aggregate
from hushrank.aggregation.server_step import ServerState
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.bodies import ReceivedUpdate, decode_reward, decode_update
from hushrank.live.wire.terms import count_params, evolution_of, key_of, protection_of, ranker_of, server_step_of
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.streams import ENTROPY, Purpose, draw_normal, stream
from hushrank.types import Array


class Body(NamedTuple):
    """A message as it was stored."""

    weight: float
    content: bytes


def draws_of(agreement: Agreement) -> Array:
    """The server's key: the simulator's for a seeded federation, the operating system's entropy otherwise."""
    return key_of(agreement) if agreement.is_seeded else ENTROPY


def first_ranker(agreement: Agreement) -> tuple[Array, ServerState]:
    """[n_params] float32 what everybody starts with, and the server's empty memory."""
    n_params = count_params(agreement)
    if agreement.is_evolution:  # [foltr-es] starts both rankers at zero
        params = np.zeros(n_params, np.float32)
    else:
        normals = draw_normal(stream(draws_of(agreement), Purpose.INITIAL), n_params)
        params = ranker_of(agreement).initial(normals).astype(np.float32)
    return params, server_step_of(agreement).init(params)


def next_ranker(
    agreement: Agreement, params: Array, state: ServerState, bodies: Sequence[Body], *, round: int
) -> tuple[Array, ServerState]:
    """The new parameters and the server's new memory from one round's messages, in the order of their clients."""
    combined = combine_bodies(agreement, bodies, round=round).astype(params.dtype)
    state, params = server_step_of(agreement)(state, params, combined)
    return params, state


def combine_bodies(agreement: Agreement, bodies: Sequence[Body], *, round: int) -> Array:
    """[n_params] one update of all."""
    n_params, evolution, protection = count_params(agreement), evolution_of(agreement), protection_of(agreement)
    key = stream(draws_of(agreement), Purpose.SERVER_NOISE, round)
    if evolution is not None:
        values = evolution.finite.values
        rewards = [decode_reward(body.content, low=values[0], high=values[-1]) for body in bodies]
        return evolution.combine(rewards, n_params=n_params, key=key)
    updates = [ReceivedUpdate(decode_update(body.content, n_params=n_params), body.weight) for body in bodies]
    if isinstance(protection, NoisySum):
        return protection.combine(updates, n_params=n_params, cohort=float(agreement.n_clients or 0), key=key)
    return mean_aggregate(updates, n_params=n_params)
