"""Bodies that were well-formed and did not count: each was seen, so each cost its client, and the client may ask.

A client's ledger counts every answer that left the device. The server counts the same answers from its side: those it
accepted, and here those it refused because they came late, were not asked for, or came beside another one. The same
bytes again are not counted again, so that a retry after a lost refusal changes nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from hushrank.live.server.schema import CLIENTS, SEEN
from hushrank.live.server.store import UpdateRow, find_digest
from hushrank.live.wire.refusals import Reason

COUNTED = (Reason.late, Reason.answered, Reason.not_asked, Reason.round)  # after these a body was read and is gone
_KEPT = 100  # rounds for which a digest is remembered, as of accepted ones
_MOST_KEPT = 100  # digests of one client. Why: who sends more is no honest client, and pays by being counted again


def count_refused(connection: sa.Connection, row: UpdateRow) -> int:
    """How many bodies of this client were seen and did not count, this one included."""
    if not _is_known(connection, row):
        _remember(connection, row)
        connection.execute(sa.update(CLIENTS).where(CLIENTS.c.id == row.client).values(refused=CLIENTS.c.refused + 1))
    return int(connection.execute(sa.select(CLIENTS.c.refused).where(CLIENTS.c.id == row.client)).scalar_one())


def _is_known(connection: sa.Connection, row: UpdateRow) -> bool:
    """Whether it was counted before: here, or as accepted in a round so old that its digest is forgotten."""
    is_this = (SEEN.c.client == row.client) & (SEEN.c.round == row.round) & (SEEN.c.phase == row.phase)
    if connection.execute(sa.select(SEEN.c.client).where(is_this & (SEEN.c.digest == row.digest))).first() is not None:
        return True
    last = connection.execute(sa.select(CLIENTS.c.last_round).where(CLIENTS.c.id == row.client)).scalar_one()
    return last == row.round and find_digest(connection, row.round, *row.key) is None


def _remember(connection: sa.Connection, row: UpdateRow) -> None:
    is_own = SEEN.c.client == row.client
    connection.execute(sa.delete(SEEN).where(is_own & (SEEN.c.round <= row.round - _KEPT)))
    n_kept = connection.execute(sa.select(sa.func.count()).select_from(SEEN).where(is_own)).scalar_one()
    if n_kept < _MOST_KEPT:
        values = {"client": row.client, "round": row.round, "phase": row.phase, "digest": row.digest}
        connection.execute(sa.insert(SEEN).values(values))
