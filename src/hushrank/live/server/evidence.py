"""What an aggregation rule says of a round and of the clients in it, for the operator: who is distrusted, since when.

The rule's own memory is part of the server's state (`new_ranker.py`); nothing here decides anything. A client is named
by its number in the federation's file, and for the operator by its pseudonym: nothing says which token made it, or
whose it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from hushrank.files import Json
from hushrank.live.server.schema import CLIENTS, EVIDENCE, TRUST
from hushrank.types import Combined

LOW_TRUST = 0.5  # below it less than half of a client's update counted
_KEPT = 100  # rounds
_MOST_NAMES, _LONGEST_NAME = 32, 64  # of numbers that a rule tells of a round


class Trust(NamedTuple):
    """How much of one client's updates counts."""

    client: int
    round: int  # of its newest update
    trust: float  # how much of that counted, from 0 to 1
    low_since: int | None  # the first round of the present run of low trust; None: there is no such run
    n_low: int  # updates in that run

    def describe(self, pseudonym: str) -> str:
        """Of a client that is distrusted."""
        times = f" ({self.n_low} {'update' if self.n_low == 1 else 'updates'} in a row)"
        return f"since round {self.low_since}: client {self.client} ({pseudonym}), trust {self.trust:.2f}{times}"


class Evidence(NamedTuple):
    """What the rule said last."""

    round: int | None = None  # of the named numbers; None: there are none
    named: Mapping[str, float] = {}
    distrusted: Sequence[Trust] = ()  # who has not left, the longest distrusted first

    def as_json(self, pseudonyms: Mapping[int, str]) -> Json:
        """pseudonyms: {client: the name that it has outside of this file}"""
        return {
            "evidence": None if self.round is None else {"round": self.round, **self.named},
            "distrusted": [{**each._asdict(), "pseudonym": pseudonyms[each.client]} for each in self.distrusted],
        }


def keep_evidence(connection: sa.Connection, round: int, combined: Combined, clients: Sequence[int]) -> None:
    """clients: whose updates they were, in the rule's order. What is no finite number is left out."""
    known = [(name, value) for name, value in combined.evidence.items() if math.isfinite(value)][:_MOST_NAMES]
    named = {name[:_LONGEST_NAME]: value for name, value in known}
    if named:
        rows = [{"round": round, "name": name, "value": value} for name, value in named.items()]
        connection.execute(sa.insert(EVIDENCE), rows)
    if combined.trust is not None:
        pairs = zip(clients, map(float, combined.trust), strict=True)
        _keep_trust(connection, round, {client: value for client, value in pairs if math.isfinite(value)})
    for table in (EVIDENCE, TRUST):
        connection.execute(sa.delete(table).where(table.c.round <= round - _KEPT))


def _keep_trust(connection: sa.Connection, round: int, trust: Mapping[int, float]) -> None:
    """Runs go on or end.

    Why no run grows where half of the clients or more have low trust: most clients are honest, or no rule could help,
    so that a rule which leaves most of them out, as Krum does, accuses nobody.
    """
    known, n_low = read_trust(connection), sum(value < LOW_TRUST for value in trust.values())
    rows = []
    for client, value in trust.items():
        before = known.get(client)
        since, n = (before.low_since, before.n_low) if before is not None and value < LOW_TRUST else (None, 0)
        if value < LOW_TRUST and 2 * n_low < len(trust):
            since, n = (round if since is None else since), n + 1
        rows.append(Trust(client, round, value, since, n)._asdict())
    if rows:
        connection.execute(sa.insert(TRUST).prefix_with("OR REPLACE"), rows)


def read_evidence(connection: sa.Connection) -> Evidence:
    newest = connection.execute(sa.select(sa.func.max(EVIDENCE.c.round))).scalar_one()
    rows = connection.execute(sa.select(EVIDENCE).where(EVIDENCE.c.round == newest).order_by(EVIDENCE.c.name))
    here = sa.select(TRUST).join(CLIENTS, CLIENTS.c.id == TRUST.c.client).where(CLIENTS.c.left_at.is_(None))
    low = here.where(TRUST.c.low_since.is_not(None)).order_by(TRUST.c.low_since, TRUST.c.trust, TRUST.c.client)
    distrusted = [Trust(*row) for row in connection.execute(low)]
    return Evidence(newest, {row.name: row.value for row in rows}, distrusted)


def read_trust(connection: sa.Connection) -> dict[int, Trust]:
    """{client: how much of its updates counts}"""
    return {row.client: Trust(*row) for row in connection.execute(sa.select(TRUST))}
