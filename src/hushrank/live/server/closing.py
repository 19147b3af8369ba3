"""The end of a round: the new ranker of its updates, and everything that is written with it in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.lengths import RoundLengths, is_jump, keep_lengths, measure_lengths
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
    hold_back: bool = False  # abandon a round whose step jumps


class RoundResult(NamedTuple):
    """What the end of a round left on the disk."""

    outcome: Outcome
    params: Array  # [n_params] of the ranker that the next round has
    state: NamedArrays
    lengths: RoundLengths | None = None  # of its updates, where they may be told
    is_held: bool = False  # abandoned because its step jumped


def write_end(connection: sa.Connection, agreement: Agreement, end: RoundEnd) -> RoundResult:
    """All of it, for one transaction. A round whose updates make no ranker is abandoned."""
    made, lengths, is_held = make_ranker(connection, agreement, end) if end.outcome is Outcome.closed else _NOTHING
    closing = store.Closing(end.number, made, end.price, keep_updates=end.keep_updates)
    store.close_round(connection, closing, now=time.time())
    store.add_refusals(connection, end.refused)
    if made is not None and lengths is not None:
        keep_lengths(connection, end.number, lengths)
    if end.opening is not None:
        store.open_round(connection, end.opening, now=time.time())
    if made is None:
        return RoundResult(Outcome.abandoned, end.params, end.state, lengths, is_held)
    return RoundResult(Outcome.closed, *made, lengths)


class MadeRanker(NamedTuple):
    """Of a round's updates."""

    ranker: tuple[Array, NamedArrays] | None  # None: they make none, so that the round is abandoned
    lengths: RoundLengths | None
    is_held: bool


_NOTHING = MadeRanker(None, None, False)


def make_ranker(connection: sa.Connection, agreement: Agreement, end: RoundEnd) -> MadeRanker:
    bodies = store.read_bodies(connection, end.number)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = next_ranker(agreement, end.params, end.state, bodies, round=end.number)
    except ValueError:  # Why: what was checked at the door cannot fail here, but a round must never stall
        return _NOTHING
    if not np.isfinite(made[0]).all():
        return _NOTHING
    lengths = measure_lengths(agreement, bodies, made[0] - end.params)
    is_held = end.hold_back and is_jump(connection, lengths)
    return MadeRanker(None if is_held else made, lengths, is_held)
