"""The tables of a federation's one SQLite file. Whoever changes them adds a step to `migrations.py`.

Times are seconds since 1970. Secrets are never stored, only their SHA-256: 256 random bits cannot be guessed from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import Column, Float, Integer, LargeBinary, String, Table, Text

from hushrank.live.server.migrations import MIGRATIONS, Migration

TABLES = sa.MetaData()
VERSION = Table("schema_version", TABLES, Column("version", Integer, nullable=False))
FEDERATION = Table(
    "federation",
    TABLES,
    Column("agreement", Text, nullable=False),  # canonical JSON
    Column("digest", String(64), nullable=False),
    Column("founded_at", Float, nullable=False),
)
CLIENTS = Table(
    "clients",
    TABLES,
    Column("id", Integer, primary_key=True),
    Column("credential_hash", LargeBinary(32), nullable=False, unique=True),
    Column("enrolled_at", Float, nullable=False),
    Column("left_at", Float),
    Column("accepted", Integer, nullable=False),  # updates, ever
    Column("last_round", Integer),  # in which an update was accepted
    Column("refused", Integer, nullable=False, server_default="0"),  # well-formed updates that did not count, ever
)
TOKENS = Table(  # that nobody has used. Why a used one is deleted: nothing may say whom it was given to
    "tokens",
    TABLES,
    Column("hash", LargeBinary(32), primary_key=True),
    Column("expires_at", Float, nullable=False),
)
ROUNDS = Table(
    "rounds",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("state", String(9), nullable=False),  # open, closed or abandoned
    Column("opened_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("n_asked", Integer, nullable=False),
    Column("n_accepted", Integer),  # once it is over
    Column("stands_for", Integer),  # the earlier round that it replays; NULL: it learns (`forgetting.py`)
)
ASKED = Table(  # of the open round only
    "asked",
    TABLES,
    Column("round", Integer, primary_key=True),
    Column("client", Integer, primary_key=True),
    sqlite_with_rowid=False,
)
UPDATES = Table(
    "updates",
    TABLES,
    Column("round", Integer, primary_key=True),
    Column("phase", String(16), primary_key=True),  # of the round, as the wire names it
    Column("client", Integer, primary_key=True),  # so that nobody counts twice in a phase
    Column("weight", Integer, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),  # keyed BLAKE2 of the body
    Column("body", LargeBinary),  # wiped when the round is over
    Column("is_filled", Integer, nullable=False, server_default="0"),  # its length stands in for a missing one
    sqlite_with_rowid=False,
)
SEEN = Table(  # updates that did not count, so that the same bytes are not counted again; `received.py`
    "seen",
    TABLES,
    Column("client", Integer, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("phase", String(16), primary_key=True),
    Column("digest", LargeBinary(16), primary_key=True),
    sqlite_with_rowid=False,
)
RANKERS = Table(
    "rankers",
    TABLES,
    Column("round", Integer, primary_key=True),  # that made it; 0: the first one
    Column("params", LargeBinary, nullable=False),  # little-endian float32
    Column("state", LargeBinary, nullable=False),  # what the server remembers: named arrays (`arrays.py`)
)
SPENT = Table(  # what each closed round cost a client that answered
    "spent",
    TABLES,
    Column("round", Integer, primary_key=True),
    Column("mechanism", String(16), nullable=False),
    Column("ratio", Float, nullable=False),
    Column("times", Integer, nullable=False),
)
REFUSED = Table("refused", TABLES, Column("reason", String(16), primary_key=True), Column("n", Integer, nullable=False))

STARTS = Table(  # of the server; `past.py`
    "starts",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("name", String(16), nullable=False, unique=True),  # random
    Column("round", Integer, nullable=False),  # the newest one when it began
)
MISSING = Table(  # rounds that clients have seen and this file lacks
    "missing",
    TABLES,
    Column("round", Integer, primary_key=True),
    Column("decided_at", Float),  # when the operator gave them up
)

LENGTHS = Table(  # of the updates of the newest rounds, where nothing is promised; `lengths.py`
    "lengths",
    TABLES,
    Column("round", Integer, primary_key=True),
    Column("median", Float, nullable=False),
    Column("longest", Float, nullable=False),
    Column("least_cosine", Float, nullable=False),
    Column("step", Float, nullable=False),
)

EVIDENCE = Table(  # what the aggregation rule said of the newest rounds; `evidence.py`
    "evidence",
    TABLES,
    Column("round", Integer, primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("value", Float, nullable=False),
    sqlite_with_rowid=False,
)
TRUST = Table(  # how much of a client's newest update counted; `evidence.py`
    "trust",
    TABLES,
    Column("client", Integer, primary_key=True),
    Column("round", Integer, nullable=False),  # of that update
    Column("trust", Float, nullable=False),  # from 0 to 1
    Column("low_since", Integer),  # the first round of the present run of low trust, if there is one
    Column("n_low", Integer, nullable=False),  # updates in that run
)

WISHES = Table(  # of clients to be forgotten; `forgetting.py`
    "wishes",
    TABLES,
    Column("client", Integer, primary_key=True),
    Column("pseudonym", String(16), nullable=False, unique=True),
    Column("wished_at", Float, nullable=False),
    Column("forgetting", Integer),  # that fulfils it; NULL: it waits
)
FORGETTINGS = Table(  # one after another, each of one or more clients
    "forgettings",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("state", String(8), nullable=False),  # running, done or failed
    Column("method", String(16), nullable=False),
    Column("every", Integer, nullable=False),  # rounds from one that is replayed to the next
    Column("searches", Integer, nullable=False),  # of a replayed round, at most
    Column("step", Integer, nullable=False),  # how many are over
    Column("steps", Integer, nullable=False),
    Column("n_lost", Integer, nullable=False),  # steps that made no ranker
    Column("n_answers", Integer, nullable=False),  # in the others
    Column("n_filled", Integer, nullable=False),  # of these, with a length that stands in for a missing one
    Column("params", LargeBinary),  # of the candidate, while it runs
    Column("memory", LargeBinary),  # of the server for the candidate: named arrays
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("record", Text),  # JSON, once it is done
    Column("failure", Text),  # why it failed
)


class SchemaError(ValueError):
    """The file is not a federation of a version that can be read."""


def make_engine(path: Path, *, read_only: bool = False) -> sa.Engine:
    """SQLite as a server needs it: a commit is on the disk when it returns, and what is deleted is overwritten."""
    place = _place(path, "ro" if read_only else "rwc")

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(place, uri=True, check_same_thread=False)  # Why: the writer's threads take turns

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # Why: transactions begin where `begin` below says, not where a driver thinks
        for pragma in ("busy_timeout = 2000", "foreign_keys = ON", "secure_delete = ON", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def copy_to_memory(path: Path) -> sa.Engine:
    """A copy of the file that may be changed: for reading one of an older version while its server runs."""
    copied = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(sqlite3.connect(_place(path, "ro"), uri=True)) as original:
        original.backup(copied)
    return sa.create_engine("sqlite://", creator=lambda: copied, poolclass=sa.StaticPool)


def _place(path: Path, mode: str) -> str:
    return f"file:{quote(path.resolve().as_posix())}?mode={mode}"


def migrate(engine: sa.Engine, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the file to the newest version, in one transaction; one of a later version is refused."""
    newest = 1 + len(migrations)
    with engine.begin() as connection:
        version = read_version(connection)
        if version > newest:
            raise SchemaError(f"{path} has schema {version}, this version knows {newest}: update hushrank.")
        if version == 0:
            TABLES.create_all(connection)
        for step in migrations[version - 1 :] if version else ():
            step(connection)
        if version < newest:
            connection.execute(sa.delete(VERSION))
            connection.execute(sa.insert(VERSION).values(version=newest))


def is_newest(engine: sa.Engine) -> bool:
    """Whether this version wrote the file, or brought it up to date."""
    with engine.begin() as connection:
        return read_version(connection) == 1 + len(MIGRATIONS)


def read_version(connection: sa.Connection) -> int:
    """0: an empty file."""
    if not sa.inspect(connection).has_table(VERSION.name):
        return 0
    return int(connection.execute(sa.select(VERSION.c.version)).scalar_one())
