"""A binary copy of what was read or generated, so that the second time takes a moment.

An entry is a directory of .npy files that are mapped into memory, and a small JSON with their checksums. Its name is
a digest of the source's content and of the options: other content, other name, so an entry is never stale. It is
written beside its place and renamed into it, so two processes may make the same entry at once; a damaged one is
noticed and made again. A cache that cannot be written costs a message, not the run.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from hushrank.types import Array, QuerySet

FORMAT = 1  # raise it when the arrays of an entry would differ for the same source and options
_UNFINISHED = ".making-"
_ARRAYS = ("features", "grades", "starts")
_log = logging.getLogger("hushrank.data")


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One set in the cache, as `hushrank data cache` shows it."""

    key: str
    source: str  # what it was made from, in words
    n_bytes: int


def data_root() -> Path:
    """`$HUSHRANK_DATA`, or `$XDG_CACHE_HOME/hushrank`, or `~/.cache/hushrank`."""
    if named := os.environ.get("HUSHRANK_DATA"):
        return Path(named)
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "hushrank"
    return Path.home() / ".cache" / "hushrank"


def cache_root() -> Path:
    """Where the entries stand. Why: not in the data root itself, where people put their data sets."""
    return data_root() / "cache"


def cache_key(*options: object) -> str:
    """The name of an entry: a digest of what its arrays depend on."""
    return hashlib.blake2b(json.dumps([FORMAT, *options]).encode(), digest_size=20).hexdigest()


def fetch(key: str, make: Callable[[], QuerySet], *, source: str) -> QuerySet:
    """The entry of that key, or what `make` returns, kept for the next time."""
    kept = read_entry(key)
    if kept is not None:
        return kept
    made = make()
    try:
        write_entry(key, made, source=source)
    except OSError as error:
        _log.warning(
            "The data cache %s cannot be written (%s); going on without. Set HUSHRANK_DATA to a directory with space.",
            cache_root(),
            error.strerror or error,
        )
        return made
    return read_entry(key) or made


def read_entry(key: str) -> QuerySet | None:
    """The entry's arrays, mapped read-only; None if there is none, or if it is damaged."""
    place = cache_root() / key
    if not place.is_dir():
        return None
    try:
        return _load(place)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        _log.warning("The cache entry %s is damaged (%s); it is made again.", place, error)
        _remove(place)
        return None


def write_entry(key: str, queries: QuerySet, *, source: str) -> None:
    """Write all or nothing; where another process was quicker, its entry stays."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=root))
    try:
        _save(making, queries, source=source)
        making.chmod(0o755)  # Why: a data root may be shared, and temporary directories are private
        making.rename(root / key)
    except OSError:
        shutil.rmtree(making, ignore_errors=True)
        if not (root / key).is_dir():
            raise


def list_entries() -> list[CacheEntry]:
    """Every finished entry, largest first."""
    root = cache_root()
    places = [p for p in root.iterdir() if p.is_dir() and not p.name.startswith(_UNFINISHED)] if root.is_dir() else []
    entries = [CacheEntry(place.name, _read_source(place), _count_bytes(place)) for place in places]
    return sorted(entries, key=lambda entry: (-entry.n_bytes, entry.key))


def clear_cache() -> int:
    """Remove every entry and what killed processes left behind; the number of bytes freed."""
    root = cache_root()
    if not root.is_dir():
        return 0
    freed = _count_bytes(root)
    for place in root.iterdir():
        _remove(place)
    return freed


def _save(place: Path, queries: QuerySet, *, source: str) -> None:
    arrays = {name: getattr(queries, name) for name in _ARRAYS} | {"query_ids": _as_bytes(queries.query_ids)}
    if queries.document_ids is not None:
        arrays["document_ids"] = _as_bytes(queries.document_ids)
    if queries.intents is not None:
        arrays["intents"] = queries.intents
    for name, array in arrays.items():
        with (place / f"{name}.npy").open("wb") as file:
            _write_array(file, np.ascontiguousarray(array))
    checksums = {name: _checksum(place / f"{name}.npy") for name in arrays}
    (place / "entry.json").write_text(json.dumps({"source": source, "checksums": checksums}))


def _write_array(file: IO[bytes], array: Array) -> None:
    """One .npy file. Why: NumPy's own writer hides the reason when the disk is full."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.reshape(-1).view(np.uint8).data)


def _load(place: Path) -> QuerySet:
    checksums = json.loads((place / "entry.json").read_text())["checksums"]
    for name, expected in checksums.items():
        if _checksum(place / f"{name}.npy") != expected:
            raise ValueError(f"{name}.npy has another checksum")
    features, grades, starts = (_map_array(place, name) for name in _ARRAYS)
    intents = _map_array(place, "intents") if "intents" in checksums else None
    document_ids = _as_strings(place / "document_ids.npy") if "document_ids" in checksums else None
    return QuerySet(features, grades, starts, _as_strings(place / "query_ids.npy"), document_ids, intents)


def _map_array(place: Path, name: str) -> Array:
    return np.asarray(np.load(place / f"{name}.npy", mmap_mode="r"))


def _as_bytes(strings: tuple[str, ...]) -> Array:
    return np.frombuffer("\n".join(strings).encode(), dtype=np.uint8)


def _as_strings(path: Path) -> tuple[str, ...]:
    return tuple(np.load(path, allow_pickle=False).tobytes().decode().split("\n"))


def _checksum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total = zlib.crc32(block, total)
    return total


def _read_source(place: Path) -> str:
    try:
        return str(json.loads((place / "entry.json").read_text())["source"])
    except (OSError, ValueError, KeyError, TypeError):
        return "damaged"


def _count_bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _remove(place: Path) -> None:
    """Out of the way first, in one step, so that nobody reads an entry that is half gone."""
    aside = place.with_name(f"{_UNFINISHED}{os.getpid()}-{place.name}")
    try:
        place.rename(aside)
    except OSError:
        return
    shutil.rmtree(aside, ignore_errors=True)
