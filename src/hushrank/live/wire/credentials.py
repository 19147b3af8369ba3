"""What a client is known by: a credential of its own, which a one-time token enrols."""

from __future__ import annotations

import hashlib
import re
import secrets

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def make_secret() -> str:
    """43 url-safe characters of 256 bits from the operating system: a credential, or a token."""
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    """SHA-256: of 256 random bits, so that it needs neither salt nor stretching."""
    return hashlib.sha256(secret.encode()).digest()


def name_client(credential_hash: bytes, agreement: str) -> str:
    """16 hexadecimal digits by which a client of an agreement is named where it must not be known: only itself and its
    server can make them."""
    return hashlib.sha256(b"hushrank pseudonym " + agreement.encode() + credential_hash).hexdigest()[:16]


def is_secret(text: str) -> bool:
    """Whether this has the form of a credential or token."""
    return _SECRET.fullmatch(text) is not None
