"""What a server makes of a round's messages: the new ranker, with the stages that the agreement names.

The same functions as `round.run_round` calls after the messages arrived, so that a federation over a network gives the
simulator's ranker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hushrank.aggregation.server_step import ServerStep
from hushrank.aggregation.tolerance import NotDefinedError
from hushrank.federation.gathering import combine_gathered, gather
from hushrank.federation.state import NOISE, OPTIMISER, RULE, part_of, replace_owner, with_owner
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.body_formats import body_of
from hushrank.live.wire.terms import count_params, exchange_of, key_of, ranker_of, rule_of, server_step_of
from hushrank.streams import ENTROPY, Purpose, draw_normal, stream
from hushrank.types import Array, Combined, NamedArrays

_NOTHING: NamedArrays = {}


class Body(NamedTuple):
    """A message as it was stored."""

    weight: float
    content: bytes
    client: int = 0  # who sent it: its number in the federation's file


class NewRanker(NamedTuple):
    """What a round ended with."""

    params: Array  # [n_params]
    state: NamedArrays  # what the server remembers from now on
    combined: Combined | None = None  # by the agreement's rule, if it has one


def draws_of(agreement: Agreement) -> Array:
    """The server's key: the simulator's for a seeded federation, the operating system's entropy otherwise."""
    return key_of(agreement) if agreement.is_seeded else ENTROPY


def first_ranker(agreement: Agreement) -> tuple[Array, NamedArrays]:
    """[n_params] float32 what everybody starts with, and the server's empty memory."""
    n_params = count_params(agreement)
    if exchange_of(agreement).starts_at_zero:
        params = np.zeros(n_params, np.float32)
    else:
        normals = draw_normal(stream(draws_of(agreement), Purpose.INITIAL), n_params)
        params = ranker_of(agreement).initial(normals).astype(np.float32)
    return params, with_owner(OPTIMISER, server_step_of(agreement).init(params))


def next_ranker(
    agreement: Agreement,
    params: Array,
    state: NamedArrays,
    bodies: Sequence[Body],
    *,
    round: int,
    step: ServerStep | None = None,
) -> NewRanker:
    """The new parameters and the server's new memory from one round's messages, in the order of their clients.

    step: the server's; None: as agreed.
    """
    together = apply_rule(agreement, params, state, bodies, round=round)
    if together is None:
        combined, remembered = combine_bodies(agreement, bodies, round=round, past=part_of(state, NOISE))
    else:
        combined, remembered = together.update, {}
        state = replace_owner(state, RULE, together.memory)
    step = server_step_of(agreement) if step is None else step
    after, params = step(part_of(state, OPTIMISER), params, combined.astype(params.dtype))
    return NewRanker(params, {**state, **with_owner(OPTIMISER, after), **with_owner(NOISE, remembered)}, together)


def apply_rule(
    agreement: Agreement, params: Array, state: NamedArrays, bodies: Sequence[Body], *, round: int
) -> Combined | None:
    """All messages at once by the agreement's rule; None: it has none."""
    rule = rule_of(agreement)
    if rule is None:
        return None
    format, ids = body_of(agreement), np.array([body.client for body in bodies])
    messages = [format.decode(body.content, weight=body.weight) for body in bodies]
    gathered = gather(messages, ids=ids, params=params, round=round, memory=part_of(state, RULE))
    combined = combine_gathered(rule, gathered)
    if combined is None:
        raise NotDefinedError(f"aggregation={rule.name} needs {rule.n_needed} answers, and {len(bodies)} came.")
    return combined


def combine_bodies(
    agreement: Agreement, bodies: Sequence[Body], *, round: int, past: NamedArrays = _NOTHING
) -> tuple[Array, NamedArrays]:
    """[n_params] the sum's mean, and what is remembered of its noise; past: what was remembered of that before."""
    exchange, draws, n_params = exchange_of(agreement), draws_of(agreement), count_params(agreement)
    format = body_of(agreement, exchange=exchange)
    messages = [format.decode(body.content, weight=body.weight) for body in bodies]
    noise, remembered = exchange.protection.draw_in_turn(n_params, key=draws, round=round, past=past)
    key, cohort = stream(draws, Purpose.SERVER_NOISE, round), float(agreement.n_clients or 0)
    return exchange.combine(messages, n_params=n_params, cohort=cohort, key=key, noise=noise), remembered
