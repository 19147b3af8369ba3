"""One process at a time in a directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE = "lock"


@contextmanager
def alone_in(directory: Path, *, who: str) -> Iterator[None]:
    """While this lasts, nobody else gets in; any death of the process releases it. who: for instance 'server'."""
    with (directory / _FILE).open("a+b") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(f"another {who} is at work in {directory}. Stop it, or name another directory.") from error
        yield
