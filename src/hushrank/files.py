"""Files that are the old or the new one, whole: written beside their place, flushed to the disk, then renamed."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]  # a JSON object: what json.loads gives, or what will be written
JsonObject: TypeAlias = Mapping[str, Any]  # the same, only to be read
_TEMPORARY = ".unfinished-"
_USUAL, _OWNERS = 0o666, 0o600  # permissions, before the umask


@contextmanager
def replacing(path: Path, *, is_private: bool = False) -> Iterator[Path]:
    """A temporary path to write to: it takes the place of `path` when the block ends well, and vanishes otherwise.

    is_private: only its owner may read it.
    """
    temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}{path.suffix}")
    try:
        temporary.touch(_OWNERS if is_private else _USUAL, exist_ok=False)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        why = error.strerror or error
        raise OSError(f"{path} cannot be written ({why}). Make room or name another place.") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_bytes(path: Path, content: bytes, *, is_private: bool = False) -> None:
    with replacing(path, is_private=is_private) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> Json:
    """The object that a file of our own holds."""
    found: Json = json.loads(path.read_text(encoding="utf-8"))
    return found


def refuse_newer(what: object, written: object, known: int) -> None:
    """Refuse what a newer version wrote. what: the file or directory, for people; known: the newest format read."""
    if not isinstance(written, int) or written > known:
        raise ValueError(
            f"{what} was written by a newer hushrank (format {written}, this one reads {known}): update hushrank."
        )


def sweep_unfinished(directory: Path) -> None:
    """Remove what a killed process left beside its files."""
    for path in directory.glob(f"{_TEMPORARY}*"):
        with suppress(FileNotFoundError):
            path.unlink()
