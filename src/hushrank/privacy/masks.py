"""The cryptography of a secure sum: keys agreed by two clients, masks made of keys, shares sealed for one reader.

X25519 agrees, HKDF with SHA-256 derives, ChaCha20 makes masks, ChaCha20-Poly1305 seals; all from the `cryptography`
package. Every derived key names its use, and is used for one message or one mask only: so nonces may be 0. X25519 reads
many byte strings as one key: `is_sound_key` refuses other spellings, and derived keys must name whose they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hushrank.privacy.identities import PROTOCOL
from hushrank.types import Array

KEY_BYTES = 32
_NONCE = bytes(12)
_COUNTER = bytes(4)  # ChaCha20 starts at block 0
_PRIME = 2**255 - 19
_LOW_ORDER = {  # Why these: all numbers below the prime with which X25519 agrees on zeros, whatever the secret
    0,
    1,
    _PRIME - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
}


def public_key(secret: bytes) -> bytes:
    """What others need to agree on a key with the owner of this secret."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def is_sound_key(public: bytes) -> bool:
    """Whether this is a public key in its one proper spelling, with which a secret can be agreed."""
    number = int.from_bytes(public, "little")
    return len(public) == KEY_BYTES and number < _PRIME and number not in _LOW_ORDER


def agree(secret: bytes, others: Iterable[bytes]) -> list[bytes]:
    """The 32 bytes that the secret's owner shares with the owner of each public key; derive keys of them."""
    own = X25519PrivateKey.from_private_bytes(secret)
    try:
        return [own.exchange(X25519PublicKey.from_public_bytes(other)) for other in others]
    except ValueError as error:
        raise ValueError("a client's public key is malformed: no key can be agreed with it.") from error


def derive(secret: bytes, purpose: str, context: bytes = b"") -> bytes:
    """A 32-byte key for one purpose; another purpose or context gives an unrelated one."""
    info = PROTOCOL + purpose.encode() + b"|" + context
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def commit(seed: bytes) -> bytes:
    """A digest that tells a seed of 32 random bytes from any other without betraying it."""
    return hashlib.sha256(PROTOCOL + b"commitment|" + seed).digest()


def expand_mask(key: bytes, n_entries: int) -> Array:
    """[n_entries] uint32: ChaCha20's stream under this key, which looks uniform to whoever lacks the key."""
    encryptor = Cipher(algorithms.ChaCha20(key, _COUNTER + _NONCE), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(4 * n_entries)), dtype="<u4").astype(np.uint32, copy=False)


def seal(key: bytes, message: bytes) -> bytes:
    """The message for whoever has the key. A key seals one message, ever."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, message, None)


def unseal(key: bytes, sealed: bytes) -> bytes:
    """The message, or an error if one bit of it or of the key is another."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, None)
    except InvalidTag as error:
        raise ValueError("a sealed share was changed, replayed or meant for somebody else: refused.") from error
