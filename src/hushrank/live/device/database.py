"""The SQLite file of a device: for its owner only, of a known version, changed in whole transactions.

An application and the client may have it open at once, each with its own connection. Standard library only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECURE_DELETE = "ON"  # what SQLite is asked for: to write zeros over what is deleted
_BRIEFLY_MS = 100  # Why: who reads the log now will have read it when the next list is forgotten
_BUSY_MS = 10_000  # Why: an application and the client write at the same time, each for a moment

# Each step takes the file from one version to the next; a step that was released is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE membership (one INTEGER PRIMARY KEY CHECK (one = 1), url TEXT NOT NULL, agreement TEXT NOT NULL, "
        "credential TEXT NOT NULL, state TEXT NOT NULL)",
        "CREATE TABLE rankers (round INTEGER PRIMARY KEY, params BLOB NOT NULL, seed INTEGER)",
        "CREATE TABLE impressions (number INTEGER PRIMARY KEY AUTOINCREMENT, round INTEGER NOT NULL, "
        "policy TEXT NOT NULL, seed INTEGER, direction INTEGER, n_candidates INTEGER NOT NULL, features BLOB NOT NULL, "
        "scores BLOB NOT NULL, ranking BLOB NOT NULL, clicks BLOB NOT NULL, shown_at REAL NOT NULL, "
        "is_finished INTEGER NOT NULL, used_in INTEGER)",
        "CREATE INDEX impressions_of_round ON impressions (round)",
        "CREATE INDEX impressions_kept ON impressions (round) WHERE length(scores) > 0",
        "CREATE INDEX impressions_used ON impressions (used_in) WHERE used_in IS NOT NULL",
        "CREATE TABLE outbox (round INTEGER PRIMARY KEY, body BLOB NOT NULL, weight REAL NOT NULL, "
        "guarantee TEXT NOT NULL, made_at REAL NOT NULL, state TEXT NOT NULL, reason TEXT)",
    ),
    ("CREATE TABLE receipt (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL)",),
    ("CREATE TABLE budget (one INTEGER PRIMARY KEY CHECK (one = 1), epsilon REAL NOT NULL)",),
    (
        "CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, secret BLOB NOT NULL)",
        "CREATE TABLE consent (one INTEGER PRIMARY KEY CHECK (one = 1), said TEXT NOT NULL)",
        "CREATE TABLE heads (one INTEGER PRIMARY KEY CHECK (one = 1), n_entries INTEGER NOT NULL, hash TEXT NOT NULL, "
        "n_charges INTEGER NOT NULL, device_entries INTEGER NOT NULL, device_hash TEXT NOT NULL, "
        "n_begun INTEGER NOT NULL)",
    ),
    ("CREATE TABLE lengths (round INTEGER PRIMARY KEY, length REAL NOT NULL)",),
)


class StoreError(ValueError):
    """The file cannot be read or written."""


class Database:
    """The open file."""

    def __init__(self, path: Path, *, is_durable: bool) -> None:
        """`is_durable` False: what a power cut loses is the last moments; kill -9 loses none."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # Why: SQLite gives its side files the same permissions
        self.path = path
        with _explain_errors(path):
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
            said = self._connection.execute(f"PRAGMA secure_delete={SECURE_DELETE}").fetchone()
            self.overwrites = said is not None and said[0] == 1  # Why: a library built without it says nothing, or 0
            self._migrate()

    def close(self) -> None:
        self._connection.close()

    def rows(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        with _explain_errors(self.path):
            return self._connection.execute(statement, values).fetchall()

    def first(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first row; None: there is none."""
        with _explain_errors(self.path):
            return self._connection.execute(statement, values).fetchone()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """All of it or nothing, on the disk when the block ends."""
        with _explain_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def purge(self) -> bool:
        """Leave nothing of what was deleted, in the file or in its write-ahead log; False: somebody reads there now.

        Where SQLite does not overwrite, the file is written anew: pages that were split keep copies of their rows.
        """
        with _explain_errors(self.path):
            self._connection.execute(f"PRAGMA busy_timeout={_BRIEFLY_MS}")
            try:
                if not self.overwrites:
                    self._connection.execute("VACUUM")
                return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.OperationalError:  # locked: the next time
                return False
            finally:
                self._connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")

    def _migrate(self) -> None:
        """From whatever version the file has to the newest, whole or not at all."""
        with self.transaction() as run:
            version = run("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"{self.path} has version {version}, this hushrank reads up to {len(MIGRATIONS)}: update hushrank."
                )
            for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
                for statement in (*statements, f"PRAGMA user_version = {number}"):
                    run(statement)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """SQLite's errors, with the file's name and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        hint = "Make room or permission and try again; nothing half-written was left."
        if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
            hint = "Restore the file, or name the client's home with --home."
        raise StoreError(f"{path}: {error}. {hint}") from error


def marks(values: Sequence[Any]) -> str:
    """`?, ?, ?`: a place for each value in a statement."""
    return ", ".join("?" * len(values))
