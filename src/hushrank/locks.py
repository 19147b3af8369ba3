"""One process at a time in a directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "lock"  # its name in the directory


class Busy(ValueError):  # noqa: N818 - it passes
    """Somebody else works there now."""


@contextmanager
def lock_directory(directory: Path, *, refusal: str) -> Iterator[None]:
    """While this lasts, no other process gets in; any death of the process releases it. refusal: said to the others."""
    with (directory / LOCK).open("a+b") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file.fileno()), (directory / LOCK).stat()):
                raise OSError("whoever held the lock has removed it")  # Why: others would lock another file
        except OSError as error:
            raise Busy(refusal) from error
        yield
