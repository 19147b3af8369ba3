"""What a federation remembers, in one SQLite file. Every function is a part of a transaction that its caller commits.

Closing a round writes the new ranker, the optimiser's state, the price, the round's end, the wiping of the updates and
the opening of the next round in one transaction: whatever dies at whatever moment, the file is before or after it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from hushrank.federation.state import NOISE, part_of, replace_owner
from hushrank.live.server.arrays import pack_arrays, unpack_arrays
from hushrank.live.server.new_ranker import Body
from hushrank.live.server.schema import (
    ASKED,
    CLIENTS,
    FEDERATION,
    RANKERS,
    REFUSED,
    ROUNDS,
    SPENT,
    TOKENS,
    UPDATES,
    SchemaError,
    copy_to_memory,
    is_newest,
    make_engine,
    migrate,
    read_version,
)
from hushrank.live.wire.agreement import Agreement, canonical, parse_agreement
from hushrank.live.wire.credentials import hash_secret as hash_secret
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.protocol import UPDATE_PHASE
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.privacy.renyi import Spend
from hushrank.types import Array, NamedArrays

FILE = "federation.sqlite"
NO_TOKEN = "this token cannot be used: ask the operator for another one."
_DIGESTS_KEPT = 100  # Why: rounds in which an answer whose acknowledgement was lost is still known when it comes again


class UpdateRow(NamedTuple):
    """An accepted update."""

    round: int
    phase: str  # of the round
    client: int
    weight: int
    digest: bytes
    body: bytes
    is_filled: int = 0  # whether its length stands in for a missing one, in a round that forgets

    @property
    def key(self) -> tuple[str, int]:
        """By which it is known among the updates of its round."""
        return self.phase, self.client


class Member(NamedTuple):
    """A client that is enrolled, or was."""

    id: int
    credential_hash: bytes
    accepted: int
    last_round: int | None
    refused: int
    has_left: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """A round to be opened."""

    number: int
    asked: Sequence[int]
    stands_for: int | None = None  # the earlier round that it replays; None: it learns


@dataclass(frozen=True, slots=True)
class Closing:
    """A round to be ended; ranker None: it is abandoned, or what came of it is no ranker for people yet."""

    number: int
    ranker: tuple[Array, NamedArrays] | None  # the new one
    price: Spend | None  # what it cost a client that answered
    keep_updates: bool  # for audits; usually they are wiped
    makes_candidate: bool = False  # whether it made one, which is kept elsewhere (`forgetting.py`)

    @property
    def outcome(self) -> Outcome:
        return Outcome.abandoned if self.ranker is None and not self.makes_candidate else Outcome.closed


class StoredRounds(NamedTuple):
    """Where the rounds stood when the file was last written."""

    number: int  # of the newest round; 0: none
    n_closed: int
    abandoned: set[int]
    is_open: bool  # the newest one
    asked: set[int]  # of the open round
    digests: dict[tuple[str, int], bytes]  # {(phase, client): of its update} of the open round
    n_replayed: int = 0  # closed rounds that forget; n_closed has them not

    def count_closed(self, *, with_replays: bool) -> int:
        """As the agreed number of rounds counts them."""
        return self.n_closed + (self.n_replayed if with_replays else 0)

    @property
    def answered(self) -> set[int]:
        """Whose updates of the open round are in the file."""
        return {client for phase, client in self.digests if phase == UPDATE_PHASE}


def digest_body(body: bytes, key: bytes) -> bytes:
    """16 bytes that say whether the same body came again, and nothing to whoever lacks the key."""
    return hashlib.blake2b(body, key=key, digest_size=16).digest()


def create_store(path: Path, agreement: Agreement, params: Array, state: NamedArrays) -> None:
    """A new federation: no client, no round, the first ranker."""
    if path.exists():
        raise ValueError(f"{path} exists: a federation is created once.")
    engine = make_engine(path)
    migrate(engine, path)
    path.chmod(0o600)
    with engine.begin() as connection:
        said = canonical(agreement).decode()
        connection.execute(
            sa.insert(FEDERATION).values(agreement=said, digest=agreement.digest, founded_at=time.time())
        )
        connection.execute(sa.insert(RANKERS).values(_ranker_row(0, params, state)))
    engine.dispose()


def open_store(path: Path, *, read_only: bool = False, lock: AbstractContextManager[None] | None = None) -> sa.Engine:
    """The federation in a file, brought to this version.

    read_only: an older file stays as it is, and a newer copy of it is read. lock: taken while the file is changed, by
    whoever does not hold it already, so that no file is changed under the server of an older version.
    """
    if not path.is_file():
        raise ValueError(f"{path} does not exist. Create a federation with: hushrank server init {path.parent}")
    try:
        refuse_foreign(path)
        engine = make_engine(path, read_only=read_only)
        if read_only and not is_newest(engine):
            engine = copy_to_memory(path)
        if not is_newest(engine):
            with lock or nullcontext():
                migrate(engine, path)
        with engine.begin() as connection:
            read_agreement(connection)
    except sa.exc.DatabaseError as error:
        raise SchemaError(f"{path} is not a federation's file, or is damaged ({error.orig}).") from error
    return engine


def refuse_foreign(path: Path) -> None:
    """A file that no federation wrote is left as it is."""
    engine = make_engine(path, read_only=True)
    with engine.begin() as connection:
        version = read_version(connection)
    engine.dispose()
    if version == 0:
        raise SchemaError(f"{path} is not a federation's file. Name the directory that hushrank server init made.")


def read_agreement(connection: sa.Connection) -> Agreement:
    row = connection.execute(sa.select(FEDERATION)).one()
    agreement = parse_agreement(json.loads(row.agreement))
    if agreement.digest != row.digest:
        raise SchemaError("the agreement in the federation's file was changed after clients joined under it.")
    return agreement


def add_tokens(connection: sa.Connection, hashes: Iterable[bytes], *, expires_at: float) -> None:
    connection.execute(sa.insert(TOKENS), [{"hash": h, "expires_at": expires_at} for h in hashes])


def enrol_client(connection: sa.Connection, token: bytes, credential: bytes, *, now: float) -> Member:
    """The client of this credential (both hashed), new or, when its answer was lost, the one that is there.

    A token is deleted when it is used: nothing says which client it made, and so to whom its operator gave it. A lost
    answer is asked for again by the credential, which only its client has. All refusals are one: nobody learns whether
    a token exists, was used or has expired.
    """
    found = connection.execute(sa.select(TOKENS).where(TOKENS.c.hash == token)).one_or_none()
    member = _read_member(connection, CLIENTS.c.credential_hash == credential)
    if found is None and member is not None and not member.has_left:
        return member
    if found is None or found.expires_at <= now or member is not None:
        raise RefusedError(Reason.token, NO_TOKEN)
    values = {"credential_hash": credential, "enrolled_at": now, "accepted": 0}
    made = connection.execute(sa.insert(CLIENTS).values(values)).inserted_primary_key
    connection.execute(sa.delete(TOKENS).where(TOKENS.c.hash == token))
    return Member(int(made[0]) if made else 0, credential, 0, None, 0, has_left=False)


def leave_client(connection: sa.Connection, client: int, *, now: float) -> None:
    connection.execute(
        sa.update(CLIENTS).where(CLIENTS.c.id == client, CLIENTS.c.left_at.is_(None)).values(left_at=now)
    )


def read_members(connection: sa.Connection) -> list[Member]:
    return [_as_member(row) for row in connection.execute(sa.select(CLIENTS).order_by(CLIENTS.c.id))]


def _read_member(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Member | None:
    row = connection.execute(sa.select(CLIENTS).where(which)).one_or_none()
    return None if row is None else _as_member(row)


def _as_member(row: Any) -> Member:
    is_there = row.left_at is None
    return Member(row.id, row.credential_hash, row.accepted, row.last_round, row.refused, has_left=not is_there)


_PLACES = ", ".join("?" * len(UpdateRow._fields))
_INSERT_UPDATE = f"INSERT INTO {UPDATES.name} ({', '.join(UpdateRow._fields)}) VALUES ({_PLACES})"
_COUNT_UPDATE = f"UPDATE {CLIENTS.name} SET accepted = accepted + 1, last_round = ? WHERE id = ?"


def insert_updates(connection: sa.Connection, rows: Sequence[UpdateRow]) -> None:
    """Accepted, and counted for their clients. Why SQL: what SQLAlchemy does for each row takes longer than SQLite."""
    connection.exec_driver_sql(_INSERT_UPDATE, list(rows))
    connection.exec_driver_sql(_COUNT_UPDATE, [(row.round, row.client) for row in rows])


def find_digest(connection: sa.Connection, round: int, phase: str, client: int) -> bytes | None:
    """Of the update that was accepted from this client in this phase of a round, if any is remembered."""
    is_this = _is_of(round, phase) & (UPDATES.c.client == client)
    return connection.execute(sa.select(UPDATES.c.digest).where(is_this)).scalar_one_or_none()


def read_bodies(connection: sa.Connection, round: int, phase: str = UPDATE_PHASE) -> list[Body]:
    """The accepted updates of a round's phase, in the order of their clients."""
    chosen = sa.select(UPDATES.c.weight, UPDATES.c.body, UPDATES.c.client).where(_is_of(round, phase))
    rows = connection.execute(chosen.order_by(UPDATES.c.client))
    return [Body(float(weight), body, client) for weight, body, client in rows]


def _is_of(round: int, phase: str) -> sa.ColumnElement[bool]:
    return (UPDATES.c.round == round) & (UPDATES.c.phase == phase)


def read_ranker(connection: sa.Connection) -> tuple[Array, NamedArrays]:
    """The newest parameters and the optimiser's state."""
    row = connection.execute(sa.select(RANKERS).order_by(RANKERS.c.round.desc()).limit(1)).one()
    return np.frombuffer(row.params, "<f4"), unpack_arrays(row.state)


def forget_noise(connection: sa.Connection) -> None:
    """Later rounds take back none of the noise up to now.

    Why: an older copy of the file does not know all noise that was published, and taking the same back twice, each time
    with other fresh noise, would tell more than either.
    """
    row = connection.execute(sa.select(RANKERS).order_by(RANKERS.c.round.desc()).limit(1)).one()
    known = unpack_arrays(row.state)
    if not part_of(known, NOISE):
        return
    state = replace_owner(known, NOISE, {})
    connection.execute(sa.update(RANKERS).where(RANKERS.c.round == row.round).values(state=pack_arrays(state)))


def read_first_ranker(connection: sa.Connection) -> tuple[Array, NamedArrays]:
    """[n_params] the parameters before round 1, and the server's memory then."""
    row = connection.execute(sa.select(RANKERS).where(RANKERS.c.round == 0)).one_or_none()
    if row is None:
        raise ValueError(
            "the first ranker of this federation is gone: an older hushrank, which kept only the newest, ran its first "
            "rounds. What starts from the first ranker is impossible here; a new federation keeps it."
        )
    return np.frombuffer(row.params, "<f4"), unpack_arrays(row.state)


def publish_ranker(connection: sa.Connection, round: int, params: Array, state: NamedArrays) -> None:
    """The newest one from now on, made by this round."""
    connection.execute(sa.insert(RANKERS).values(_ranker_row(round, params, state)))


def _ranker_row(round: int, params: Array, state: NamedArrays) -> dict[str, Any]:
    return {"round": round, "params": np.asarray(params, "<f4").tobytes(), "state": pack_arrays(state)}


def open_round(connection: sa.Connection, opening: Opening, *, now: float) -> None:
    row = {"number": opening.number, "state": Outcome.open, "opened_at": now, "n_asked": len(opening.asked)}
    connection.execute(sa.insert(ROUNDS).values({**row, "stands_for": opening.stands_for}))
    connection.execute(sa.insert(ASKED), [{"round": opening.number, "client": client} for client in opening.asked])


def close_round(connection: sa.Connection, closing: Closing, *, now: float) -> None:
    """Everything that ends a round, for one transaction."""
    n_accepted = connection.execute(
        sa.select(sa.func.count()).select_from(UPDATES).where(_is_of(closing.number, UPDATE_PHASE))
    ).scalar_one()
    connection.execute(
        sa.update(ROUNDS)
        .where(ROUNDS.c.number == closing.number, ROUNDS.c.state == Outcome.open)
        .values(state=closing.outcome, closed_at=now, n_accepted=int(n_accepted))
    )
    connection.execute(sa.delete(ASKED))
    if closing.ranker is not None:
        publish_ranker(connection, closing.number, *closing.ranker)
    if closing.price is not None and closing.outcome is Outcome.closed:
        price = {"mechanism": closing.price.mechanism, "ratio": closing.price.ratio, "times": closing.price.times}
        connection.execute(sa.insert(SPENT).values(round=closing.number, **price))
    if not closing.keep_updates:
        _wipe(connection, closing.number)


def _wipe(connection: sa.Connection, round: int) -> None:
    """What a finished round leaves behind: for a while digests, of rankers the first and the newest."""
    connection.execute(sa.update(UPDATES).where(UPDATES.c.round == round).values(body=None))
    connection.execute(sa.delete(UPDATES).where(UPDATES.c.round <= round - _DIGESTS_KEPT))
    newest = sa.select(sa.func.max(RANKERS.c.round)).scalar_subquery()
    connection.execute(sa.delete(RANKERS).where(RANKERS.c.round > 0, RANKERS.c.round < newest))


def restore_rounds(connection: sa.Connection) -> StoredRounds:
    """Where the rounds stood."""
    rows = connection.execute(sa.select(ROUNDS.c.number, ROUNDS.c.state, ROUNDS.c.stands_for)).all()
    states = {row.number: row.state for row in rows}
    number = max(states, default=0)
    asked, digests = set[int](), dict[tuple[str, int], bytes]()
    is_open = states.get(number) == Outcome.open
    if is_open:
        asked = set(connection.execute(sa.select(ASKED.c.client).where(ASKED.c.round == number)).scalars())
        chosen = sa.select(UPDATES.c.phase, UPDATES.c.client, UPDATES.c.digest).where(UPDATES.c.round == number)
        digests = {(row.phase, row.client): row.digest for row in connection.execute(chosen)}
    abandoned = {number for number, state in states.items() if state == Outcome.abandoned}
    closed = [row.stands_for for row in rows if row.state == Outcome.closed]
    n_replayed = sum(earlier is not None for earlier in closed)
    return StoredRounds(number, len(closed) - n_replayed, abandoned, is_open, asked, digests, n_replayed)


def read_spends(connection: sa.Connection) -> list[Spend]:
    return [Spend(row.mechanism, row.ratio, row.times) for row in connection.execute(sa.select(SPENT))]


def add_refusals(connection: sa.Connection, refused: Mapping[str, int]) -> None:
    """Count on from what is there."""
    known = read_refusals(connection)
    for reason, n in refused.items():
        row = {"reason": str(reason), "n": known.get(str(reason), 0) + n}
        connection.execute(sa.delete(REFUSED).where(REFUSED.c.reason == row["reason"]))
        connection.execute(sa.insert(REFUSED).values(row))


def read_refusals(connection: sa.Connection) -> dict[str, int]:
    return {row.reason: row.n for row in connection.execute(sa.select(REFUSED).order_by(REFUSED.c.reason))}
