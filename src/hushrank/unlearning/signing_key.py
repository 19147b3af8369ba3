"""The key with which this account signs erasure records: one file beside the device's ledger, for its owner alone.

The public key may go to anybody, as 64 hex digits. Whoever has the file can sign in this account's name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hushrank.extras import require_package
from hushrank.privacy.chain import create_file, flush_directory, lock_file, write_at
from hushrank.privacy.device_ledger import find_device

FILE = "erasure.key"
_SECRET = re.compile(rb"[0-9a-f]{64}\n")
_PUBLIC = re.compile(r"[0-9a-f]{64}")


def find_key() -> Path:
    """Where the key of this account is, or will be."""
    return find_device().with_name(FILE)


def open_key(path: Path) -> bytes:
    """[32] the secret, made on first use. Two processes that come first at the same time get the same one."""
    require_package("cryptography")  # Why: without it nothing can be signed, and nothing is left behind
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_file(path)
    with lock_file(path, writing=True) as file:
        content = file.read()
        if not content:  # Why: killed before it was written, it has signed nothing
            content = os.urandom(32).hex().encode() + b"\n"
            write_at(file, 0, content)
            flush_directory(path.parent)
    return _parse_secret(content, path)


def read_public(path: Path) -> str | None:
    """The public key, 64 hex digits; None where no key was made yet."""
    try:
        with lock_file(path, writing=False) as file:
            content = file.read()
    except FileNotFoundError:
        return None
    return name_public(_parse_secret(content, path)) if content else None


def name_public(secret: bytes) -> str:
    """The public key of a secret, 64 hex digits."""
    require_package("cryptography")
    from hushrank.privacy.identities import identity_key

    return identity_key(secret).hex()


def check_public(text: str) -> str:
    """A public key as a person types it: 64 hex digits, in any case."""
    found = text.strip().lower()
    if not _PUBLIC.fullmatch(found):
        raise ValueError(f"a public key has 64 hex digits, this text has {len(text.strip())} characters.")
    return found


def _parse_secret(content: bytes, path: Path) -> bytes:
    if not _SECRET.fullmatch(content):
        raise ValueError(
            f"{path} holds no signing key: it was damaged. Restore it, or delete it to get a new key; records that the "
            "old one signed are then checked with its public key."
        )
    return bytes.fromhex(content.decode())
