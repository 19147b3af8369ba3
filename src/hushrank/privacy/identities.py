"""Who is who: Ed25519 identities that last, and signatures that name their protocol and purpose.

A client learns the others' identity keys when it is enrolled, from whoever enrols clients. Who enrols can invent
clients: an invented one has a key like any other, and counts among those who collude with the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE_BYTES = 64
PROTOCOL = b"hushrank secure sum 3|"  # begins all that a sum signs, derives or commits to: versions do not mix


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What one client got when it joined the federation, and keeps for all rounds."""

    secret: bytes = field(repr=False)  # 32, of its own identity
    identities: Mapping[int, bytes]  # {client: its identity's public key, 32}: those that this client believes in

    def __post_init__(self) -> None:
        if len(set(self.identities.values())) != len(self.identities):
            raise ValueError("two clients have the same identity key: one signature would count as two.")


def identity_key(secret: bytes) -> bytes:
    """The public key of an identity, 32 bytes."""
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def sign(secret: bytes, purpose: str, message: bytes, *, protocol: bytes = PROTOCOL) -> bytes:
    """64 bytes that only this identity can make, for this protocol, purpose and message."""
    return Ed25519PrivateKey.from_private_bytes(secret).sign(_name(protocol, purpose, message))


def is_signed(
    public: bytes | None, purpose: str, message: bytes, signature: bytes, *, protocol: bytes = PROTOCOL
) -> bool:
    """Whether the owner of the public key signed this; never for None, somebody unknown."""
    if public is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _name(protocol, purpose, message))
    except (InvalidSignature, ValueError):  # a key that is none is a ValueError
        return False
    return True


def _name(protocol: bytes, purpose: str, message: bytes) -> bytes:
    return protocol + purpose.encode() + b"|" + message
