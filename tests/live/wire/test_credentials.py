"""Credentials and tokens are known by their form."""

from __future__ import annotations

from hushrank.live.wire.credentials import is_secret, make_secret


def test_secrets_are_long_different_and_known_by_their_form() -> None:
    assert is_secret(make_secret()) and make_secret() != make_secret()
    for text in ("", "x" * 42, "x" * 44, "x" * 42 + "=", "x" * 43 + "\n", "é" * 43):
        assert not is_secret(text)
