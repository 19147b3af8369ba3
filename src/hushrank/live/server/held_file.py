"""A federation's file that is deleted or replaced under its running server, noticed before anything more is promised.

SQLite goes on writing to a file that no longer has a name, and what it writes is gone with the process. So the server
compares what lies in the directory with what it opened: after every commit, and once a second. When they differ, the
open connection still has everything: it is copied to a new file.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

_LOGS = ("-wal", "-shm")  # what SQLite keeps beside the file while it is open


class Loss(NamedTuple):
    """What happened to the file, and what was saved."""

    what: str  # "federation.sqlite-wal was deleted"
    copy: Path | None  # everything that was ever acknowledged; None: it could not be written
    path: Path  # of the file

    def describe(self) -> str:
        """What happened and what to do, for the log."""
        lost = f"{self.what} while the server ran: nothing is accepted any more."
        if self.copy is None:
            return (
                f"{lost} No copy could be saved in {self.path.parent}. Stop the server, put the newest copy that you "
                f"have at {self.path} and start it again: hushrank server recover says whether rounds are missing."
            )
        return f"{lost} {_advise(self.copy, self.path)}"


class HeldFile:
    """The file and its logs, as they were when they were opened."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._known: dict[Path, tuple[int, int]] = {}  # {path: device and inode}
        self._n_bytes = 0  # of the file, the most that was seen

    def note(self, connection: sa.Connection) -> None:
        """In a transaction of a new connection, which has the file and its logs open."""
        named = connection.exec_driver_sql("PRAGMA database_list").first()
        if named is None or not named[2]:
            return
        self._path = Path(named[2])
        for path in (self._path, *map(self._log, _LOGS)):
            found = _identify(path)
            if found is not None:
                self._known.setdefault(path, found)
        self._has_shrunk()  # and how large it is

    def forget_logs(self) -> None:
        """The connection was closed: the next one has new logs, of the same file."""
        self._known = {path: known for path, known in self._known.items() if path == self._path}

    def find_change(self) -> str | None:
        """What happened to the file or its logs; None: nothing."""
        for path, known in self._known.items():
            found = _identify(path)
            if found != known:
                return f"{path.name} was {'deleted' if found is None else 'replaced by another file'}"
        return f"{self._path.name} was overwritten" if self._path is not None and self._has_shrunk() else None

    def _has_shrunk(self) -> bool:
        """Why: SQLite never makes a file smaller unless somebody asks it to, which nobody does here. Why not its
        content: to close a file that SQLite has open gives its locks away."""
        assert self._path is not None
        if _identify(self._path) != self._known.get(self._path):
            return False  # Why: it is another file
        n_bytes = self._path.stat().st_size
        self._n_bytes = max(n_bytes, self._n_bytes)
        return n_bytes < self._n_bytes

    def rescue(self, connection: sa.Connection | None, what: str) -> Loss:
        """Copy what the connection has open to a new file beside the lost one."""
        assert self._path is not None, "a change is found only in what was noted"
        try:
            # Why not of a file that has shrunk: it holds what was written over it
            copy = None if connection is None or self._has_shrunk() else _copy(connection, self._path)
        except (OSError, sqlite3.Error, sa.exc.DBAPIError):
            copy = None
        return Loss(what, copy, self._path)

    def _log(self, suffix: str) -> Path:
        assert self._path is not None
        return self._path.with_name(self._path.name + suffix)


def describe_copies(path: Path) -> str | None:
    """What to do with the newest copy that a server saved of this file; None: there is none."""
    copies = sorted(path.parent.glob(f"{path.stem}.rescued-*{path.suffix}"), key=lambda copy: copy.stat().st_mtime)
    if not copies:
        return None
    return (
        f"{path.name} or its log was deleted or replaced while a server ran. {_advise(copies[-1], path)} "
        "If you have done so with a copy of it, delete or move this one."
    )


def _advise(copy: Path, path: Path) -> str:
    return (
        f"All that was acknowledged is in {copy}. Stop the server, delete {path.name}-wal and {path.name}-shm if they "
        f"are there, rename {copy.name} to {path.name}, and start it again."
    )


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _copy(connection: sa.Connection, lost: Path) -> Path:
    """Only its owner can read it; a copy of before stays."""
    source = connection.connection.driver_connection
    assert isinstance(source, sqlite3.Connection)
    source.rollback()
    names = (lost.with_name(f"{lost.stem}.rescued-{n}{lost.suffix}") for n in range(1, 1_000))
    copy = next(path for path in names if not path.exists())
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
