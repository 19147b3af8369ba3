"""Bytes of data files: plain, gzip or xz, told apart by their first bytes, in chunks of whole lines; digests."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from hushrank.data.letor_rows import LetorError

CHUNK_BYTES = 1 << 18  # Why: the arrays of one chunk stay in the processor's cache; measured fastest of 64 KiB to 2 MiB
_LONGEST_LINE = 64 << 20
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)


def open_source(path: Path) -> IO[bytes]:
    """The file's text as bytes, uncompressed on the way."""
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic == b"\xfd7zXZ\x00":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    return path.open("rb")


def read_chunks(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The file in pieces of whole lines; only the last may lack its line end."""
    rest = b""
    try:
        with open_source(path) as file:
            while block := file.read(chunk_bytes):
                lines, newline, tail = block.rpartition(b"\n")
                if newline:
                    yield rest + lines + newline
                rest = tail if newline else rest + block
                _check_line(rest, path)
    except _DAMAGED as error:
        raise LetorError(f"{path}: the compressed file is damaged or truncated ({error}). Get it again.") from error
    if rest:
        yield rest


def _check_line(rest: bytes, path: Path) -> None:
    if len(rest) > _LONGEST_LINE:
        raise LetorError(
            f"{path}: a line is longer than {_LONGEST_LINE >> 20} MiB. Is it a text file, one row per line?"
        )


def digest_file(path: Path) -> str:
    """Hex digest of a file's bytes."""
    digest = hashlib.blake2b(digest_size=20)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
