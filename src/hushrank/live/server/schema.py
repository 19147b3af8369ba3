"""The tables of a federation's one SQLite file, and how an older file becomes a newer one.

Times are seconds since 1970. Secrets are never stored, only their SHA-256: 256 random bits cannot be guessed from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import Column, Float, Integer, LargeBinary, String, Table, Text

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
)
TOKENS = Table(
    "tokens",
    TABLES,
    Column("hash", LargeBinary(32), primary_key=True),
    Column("expires_at", Float, nullable=False),
    Column("client", Integer),  # who used it
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
    Column("client", Integer, primary_key=True),  # so that nobody counts twice in a round
    Column("weight", Integer, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),  # keyed BLAKE2 of the body
    Column("body", LargeBinary),  # wiped when the round is over
    sqlite_with_rowid=False,
)
RANKERS = Table(
    "rankers",
    TABLES,
    Column("round", Integer, primary_key=True),  # that made it; 0: the first one
    Column("params", LargeBinary, nullable=False),  # little-endian float32, as are the others
    Column("first", LargeBinary, nullable=False),  # the server's optimiser state
    Column("second", LargeBinary, nullable=False),
    Column("n_steps", LargeBinary, nullable=False),
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

Migration = Callable[[sa.Connection], None]
# Step i makes version i + 2 of version i + 1; a new file gets the tables above at once. A step is never changed once it
# was released, and whoever adds one changes the definitions above too (a test compares the two ways).
MIGRATIONS: tuple[Migration, ...] = ()


class SchemaError(ValueError):
    """The file is not a federation of a version that can be read."""


def make_engine(path: Path, *, read_only: bool = False) -> sa.Engine:
    """SQLite as a server needs it: a commit is on the disk when it returns, and what is deleted is overwritten."""
    place = f"file:{quote(path.resolve().as_posix())}?mode={'ro' if read_only else 'rwc'}"

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


def read_version(connection: sa.Connection) -> int:
    """0: an empty file."""
    if not sa.inspect(connection).has_table(VERSION.name):
        return 0
    return int(connection.execute(sa.select(VERSION.c.version)).scalar_one())
