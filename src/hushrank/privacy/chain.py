"""An append-only file of lines that hold together: each has the hash of the line before and is flushed to the disk.

A file that was edited, or lost lines in its middle, is noticed. Lines that are missing at the end leave a good chain;
whoever must notice that keeps the head elsewhere: how many lines there were, and the hash of the last. Standard
library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

START = "0" * 64  # stands where the first line's previous hash would


class LedgerError(ValueError):
    """The file does not say what was spent."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ended when somebody looked."""

    n_entries: int  # lines after the first
    hash: str  # of the last of them


@dataclass(frozen=True, slots=True)
class Chain:
    """A verified file."""

    fields: tuple[dict[str, Any], ...]  # of each whole line
    hashes: tuple[str, ...]  # of each whole line
    n_bytes: int  # of whole lines
    is_torn: bool  # a last line was cut off while it was written

    @property
    def head(self) -> Head:
        return Head(len(self.hashes) - 1, self.hashes[-1])

    def holds(self, head: Head) -> bool:
        """Whether this file, now or when it was shorter, ended like this."""
        return head.n_entries < len(self.hashes) and self.hashes[head.n_entries] == head.hash


def verify_chain(content: bytes, path: Path) -> Chain:
    """Every whole line, each as it was written and where it was written."""
    *lines, tail = content.split(b"\n")
    if lines and not tail and b"\0" in lines[-1] and lines[-1].count(b'"entry":') < 2:
        tail = lines.pop()  # Why: after a power cut, blocks that were never written are zeros; two lines in one are not
    if not lines:
        raise LedgerError(f"{path} has no whole first line: it is no ledger, or was cut off while it was made.")
    fields, hashes = list[dict[str, Any]](), [START]
    for number, line in enumerate(lines, start=1):
        fields.append(unseal_line(line, hashes[-1], path, number))
        hashes.append(hash_of(line))
    return Chain(tuple(fields), tuple(hashes[1:]), sum(len(line) + 1 for line in lines), bool(tail))


def seal_line(fields: dict[str, Any], previous: str) -> bytes:
    """One line: the fields, the hash of the line before, and SHA-256 over that hash and the canonical fields."""
    digest = hashlib.sha256(previous.encode() + _canonical(fields)).hexdigest()
    return _canonical({**fields, "previous": previous, "hash": digest}) + b"\n"


def unseal_line(line: bytes, previous: str, path: Path, number: int) -> dict[str, Any]:
    """The fields of a line that stands where it should and is as it was written."""
    try:
        fields = json.loads(line)
        named = fields.pop("previous")
        fields.pop("hash")
        is_as_written = seal_line(fields, named).rstrip(b"\n") == line
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise LedgerError(f"{path}, line {number}: this is no line of a ledger; the file was damaged.") from error
    if not is_as_written:
        raise LedgerError(f"{path}, line {number}: its hash does not fit; the line was edited after it was written.")
    if named != previous:
        raise LedgerError(f"{path}, line {number}: it does not follow the line before; lines are missing or swapped.")
    return dict(fields)


def _canonical(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_of(line: bytes) -> str:
    return str(json.loads(line)["hash"])


def write_at(file: BinaryIO, place: int, content: bytes) -> None:
    """On the disk when this returns."""
    file.seek(place)
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    file.truncate()
    os.fsync(file.fileno())


def append_line(file: BinaryIO, chain: Chain, fields: dict[str, Any]) -> Chain:
    """One more line, in the place of what was cut off, on the disk.

    Why over it and not after cutting it away: killed in between, the file must not end as if nothing had happened.
    """
    line = seal_line(fields, chain.hashes[-1])
    write_at(file, chain.n_bytes, line)
    all_fields, hashes = (*chain.fields, fields), (*chain.hashes, hash_of(line))
    return Chain(all_fields, hashes, chain.n_bytes + len(line), is_torn=False)


def create_file(path: Path) -> bool:
    """Whether there was none; its owner alone may read it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return False
    return True


@contextmanager
def lock_file(path: Path, *, writing: bool) -> Iterator[BinaryIO]:
    """The file, while no other process reads and appends. Closing it releases the lock, as does any death."""
    with path.open("r+b" if writing else "rb", buffering=0) as file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**30)  # Why: a lock on bytes that are never used does not keep others from reading
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
        yield file


def flush_directory(directory: Path) -> None:
    """A new file's name on the disk too."""
    if sys.platform == "win32":  # Why: it has no such call, and journals names by itself
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
