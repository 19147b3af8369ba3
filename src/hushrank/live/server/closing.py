"""The end of a round: the new ranker of its updates, and everything that is written with it in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from hushrank.aggregation.server_step import ServerStep
from hushrank.aggregation.tolerance import BadResultError, NotDefinedError
from hushrank.files import Json
from hushrank.live.server import store
from hushrank.live.server.evidence import Evidence, keep_evidence, read_evidence
from hushrank.live.server.forgetting import LiveForgetting
from hushrank.live.server.lengths import RoundLengths, is_jump, keep_lengths, measure_lengths
from hushrank.live.server.new_ranker import NewRanker, next_ranker
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
    evidence: Evidence = Evidence()  # what the aggregation rule said, now and before
    failure: str | None = None  # why its updates made no ranker, though there were enough
    replay: LiveForgetting | None = None  # that goes on, after a round that forgets
    n_forgotten: int = 0  # clients, with this round
    not_forgotten: str | None = None  # why a forgetting failed with this round
    is_wished: bool = False  # whether others wait to be forgotten, after a round that forgets

    def facts(self) -> Json:
        """For the log: nothing is about one client."""
        lengths = {} if self.lengths is None else {"lengths": self.lengths._asdict()}
        distrusted = {"distrusted": len(self.evidence.distrusted)} if self.evidence.distrusted else {}
        return {**lengths, **distrusted, **({} if self.failure is None else {"failure": self.failure})}


class MadeRanker(NamedTuple):
    """Of a round's updates."""

    ranker: NewRanker | None = None  # None: they make none, so that the round is abandoned
    lengths: RoundLengths | None = None
    is_held: bool = False
    clients: Sequence[int] = ()  # whose updates they were
    failure: str | None = None  # of the rule


def write_end(connection: sa.Connection, agreement: Agreement, end: RoundEnd) -> RoundResult:
    """All of it, for one transaction. A round whose updates make no ranker is abandoned."""
    made = make_ranker(connection, agreement, end) if end.outcome is Outcome.closed else MadeRanker()
    new, lengths = made.ranker, made.lengths
    ranker = None if new is None else (new.params, new.state)
    closing = store.Closing(end.number, ranker, end.price, keep_updates=end.keep_updates)
    store.close_round(connection, closing, now=time.time())
    store.add_refusals(connection, end.refused)
    if new is not None and lengths is not None:
        keep_lengths(connection, end.number, lengths)
    if new is not None and new.combined is not None:
        keep_evidence(connection, end.number, new.combined, made.clients)
    if end.opening is not None:
        store.open_round(connection, end.opening, now=time.time())
    outcome = Outcome.abandoned if ranker is None else Outcome.closed
    params, state = ranker or (end.params, end.state)
    return RoundResult(outcome, params, state, lengths, made.is_held, read_evidence(connection), made.failure)


def make_ranker(
    connection: sa.Connection, agreement: Agreement, end: RoundEnd, step: ServerStep | None = None
) -> MadeRanker:
    """step: the server's; None: as agreed."""
    bodies = store.read_bodies(connection, end.number)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = next_ranker(agreement, end.params, end.state, bodies, round=end.number, step=step)
    except (NotDefinedError, BadResultError) as error:  # Why: a rule may need more answers than came, and a round must
        return MadeRanker(failure=str(error))  # never stall; what these two say holds no update
    except Exception as error:  # Why any: a rule may be anybody's; what it says is not told, it might hold an update
        return MadeRanker(failure=f"aggregation={agreement.aggregation} failed with {type(error).__name__}.")
    if not np.isfinite(made.params).all():
        return MadeRanker(failure="the new ranker would not be finite.")
    lengths = measure_lengths(agreement, bodies, made.params - end.params)
    is_held = end.hold_back and is_jump(connection, lengths)
    return MadeRanker(None if is_held else made, lengths, is_held, [body.client for body in bodies])
