"""All of the file that a running server keeps in memory, read at a start and after trouble with the disk."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.evidence import Evidence, read_evidence
from hushrank.live.server.forgetting import LiveForgetting, read_running, read_waiting
from hushrank.live.server.past import Past, read_past
from hushrank.live.wire.refusals import Reason
from hushrank.types import Array, NamedArrays


class Snapshot(NamedTuple):
    """What the file says."""

    rounds: store.StoredRounds
    members: list[store.Member]
    ranker: tuple[Array, NamedArrays]  # the newest one
    evidence: Evidence  # of the aggregation rule
    replay: LiveForgetting | None = None  # that runs
    is_wished: bool = False  # whether somebody waits to be forgotten

    @property
    def counts(self) -> dict[str, int]:
        """How many clients there are, and which round is next."""
        n_clients = sum(not member.has_left for member in self.members)
        return {"clients": n_clients, "round": self.rounds.number + (not self.rounds.is_open)}


def read_snapshot(connection: sa.Connection) -> Snapshot:
    rounds, members = store.restore_rounds(connection), store.read_members(connection)
    forgetting = read_running(connection), bool(read_waiting(connection))
    return Snapshot(rounds, members, store.read_ranker(connection), read_evidence(connection), *forgetting)


class Decisions(NamedTuple):
    """What an operator may have decided with a command while the server runs."""

    past: Past
    waiting: list[int]  # clients that are to be forgotten
    snapshot: Snapshot | None  # where rounds are, or were, missing; None: nobody needs it


def read_decisions(connection: sa.Connection, *, is_behind: bool) -> Decisions:
    snapshot = read_snapshot(connection) if is_behind else None
    return Decisions(read_past(connection), read_waiting(connection), snapshot)


def probe_disk(connection: sa.Connection) -> Snapshot:
    """Everything from the file, and proof that it can be written to."""
    store.add_refusals(connection, {Reason.disk: 0})
    return read_snapshot(connection)
