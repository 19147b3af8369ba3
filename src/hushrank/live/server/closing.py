"""The end of a round: the new ranker of its updates, and everything that is written with it in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.new_ranker import next_ranker
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import Outcome
from hushrank.privacy.renyi import Spend
from hushrank.types import Array, NamedArrays


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """A round that ends, and the one that opens in the same moment."""

    number: int
    outcome: Outcome  # closed or abandoned, as its answers decide
    params: Array  # [n_params] of the ranker that the round had
    state: NamedArrays
    price: Spend | None  # what it cost a client that answered
    keep_updates: bool
    refused: Mapping[str, int]  # {reason: how often} since the last end
    opening: store.Opening | None  # of the next round; None: it opens later, or never


class RoundResult(NamedTuple):
    """What the end of a round left on the disk."""

    outcome: Outcome
    params: Array  # [n_params] of the ranker that the next round has
    state: NamedArrays


def write_end(connection: sa.Connection, agreement: Agreement, end: RoundEnd) -> RoundResult:
    """All of it, for one transaction. A round whose updates make no ranker is abandoned."""
    made = make_ranker(connection, agreement, end) if end.outcome is Outcome.closed else None
    closing = store.Closing(end.number, made, end.price, keep_updates=end.keep_updates)
    store.close_round(connection, closing, now=time.time())
    store.add_refusals(connection, end.refused)
    if end.opening is not None:
        store.open_round(connection, end.opening, now=time.time())
    return RoundResult(Outcome.closed, *made) if made else RoundResult(Outcome.abandoned, end.params, end.state)


def make_ranker(connection: sa.Connection, agreement: Agreement, end: RoundEnd) -> tuple[Array, NamedArrays] | None:
    """Of the round's updates; None where they make none, so that the round is abandoned and the next one opens."""
    bodies = store.read_bodies(connection, end.number)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = next_ranker(agreement, end.params, end.state, bodies, round=end.number)
    except ValueError:  # Why: what was checked at the door cannot fail here, but a round must never stall
        return None
    return made if np.isfinite(made[0]).all() else None
