"""What a client is known by: a credential of its own, which a one-time token enrols."""

from __future__ import annotations

import re
import secrets

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def make_secret() -> str:
    """43 url-safe characters of 256 bits from the operating system: a credential, or a token."""
    return secrets.token_urlsafe(32)


def is_secret(text: str) -> bool:
    """Whether this has the form of a credential or token."""
    return _SECRET.fullmatch(text) is not None
