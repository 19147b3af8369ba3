"""How long a round's updates were and where they pointed, for the operator: one who pulls alone stands out.

Only where nothing is promised to clients: a length is about one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from hushrank.live.server.new_ranker import Body
from hushrank.live.server.schema import LENGTHS, ROUNDS
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.terms import exchange_of
from hushrank.types import Array

_KEPT = 100  # rounds
_USUAL = 20  # rounds whose steps say what is usual
_FEWEST = 5  # of them, before anything can be called unusual
_JUMP = 5.0  # times the usual step
_MOST_HELD = 3  # rounds in a row


class RoundLengths(NamedTuple):
    """L2 norms of a round's updates, and of what they did."""

    median: float
    longest: float
    least_cosine: float  # of an update to the ranker's step; -1: one pulled straight against all others
    step: float  # how far the ranker moved

    def describe(self) -> str:
        return (
            f"updates {self.median:.3g} long (median), longest {self.longest:.3g}, least cosine to the step "
            f"{self.least_cosine:.2f}, step {self.step:.3g}"
        )


def measure_lengths(agreement: Agreement, bodies: Sequence[Body], step: Array) -> RoundLengths | None:
    """Of the dense updates of a round; None: nothing may be told, or there was none."""
    exchange = exchange_of(agreement)
    if not (exchange.protection.tells_lengths and exchange.has_personal and bodies):
        return None
    moved = step.astype(np.float64)
    length = float(np.linalg.norm(moved))
    norms, cosines = [], []
    for body in bodies:
        update = np.frombuffer(body.content, "<f4").astype(np.float64)
        norms.append(float(np.linalg.norm(update)))
        if norms[-1] * length > 0:
            cosines.append(float(update @ moved) / (norms[-1] * length))
    return RoundLengths(float(np.median(norms)), max(norms), min(cosines, default=1.0), length)


def is_jump(connection: sa.Connection, lengths: RoundLengths | None) -> bool:
    """Whether the ranker would move much further than it usually does."""
    newest = sa.select(LENGTHS.c.step).order_by(LENGTHS.c.round.desc()).limit(_USUAL)
    usual = connection.execute(newest).scalars().all()
    if lengths is None or len(usual) < _FEWEST or not (middle := float(np.median(usual))) > 0:
        return False
    return lengths.step > _JUMP * middle and not _were_held(connection)


def _were_held(connection: sa.Connection) -> bool:
    """Whether the newest rounds were abandoned, too: a federation must not stand still for ever."""
    over = sa.select(ROUNDS.c.state).where(ROUNDS.c.state != Outcome.open).order_by(ROUNDS.c.number.desc())
    newest = connection.execute(over.limit(_MOST_HELD)).scalars().all()
    return len(newest) == _MOST_HELD and all(state == Outcome.abandoned for state in newest)


def keep_lengths(connection: sa.Connection, round: int, lengths: RoundLengths) -> None:
    connection.execute(sa.insert(LENGTHS).values(round=round, **lengths._asdict()))
    connection.execute(sa.delete(LENGTHS).where(LENGTHS.c.round <= round - _KEPT))


def read_lengths(connection: sa.Connection) -> dict[str, float] | None:
    """Of the newest round that closed; None: none may be told."""
    row = connection.execute(sa.select(LENGTHS).order_by(LENGTHS.c.round.desc()).limit(1)).one_or_none()
    return None if row is None else {name: getattr(row, name) for name in RoundLengths._fields}
