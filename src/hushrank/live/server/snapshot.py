"""All of the file that a running server keeps in memory, read at a start and after trouble with the disk."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.evidence import Evidence, read_evidence
from hushrank.live.wire.refusals import Reason
from hushrank.types import Array, NamedArrays


class Snapshot(NamedTuple):
    """What the file says."""

    rounds: store.StoredRounds
    members: list[store.Member]
    ranker: tuple[Array, NamedArrays]  # the newest one
    evidence: Evidence  # of the aggregation rule

    @property
    def counts(self) -> dict[str, int]:
        """How many clients there are, and which round is next."""
        n_clients = sum(not member.has_left for member in self.members)
        return {"clients": n_clients, "round": self.rounds.number + (not self.rounds.is_open)}


def read_snapshot(connection: sa.Connection) -> Snapshot:
    rounds, members = store.restore_rounds(connection), store.read_members(connection)
    return Snapshot(rounds, members, store.read_ranker(connection), read_evidence(connection))


def probe_disk(connection: sa.Connection) -> Snapshot:
    """Everything from the file, and proof that it can be written to."""
    store.add_refusals(connection, {Reason.disk: 0})
    return read_snapshot(connection)
