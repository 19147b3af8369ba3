"""Shamir's secret sharing: any `threshold` shares give the secret back, fewer say nothing about it [shamir1979].

The secret is the value at 0 of a random polynomial of degree threshold - 1 over the integers modulo a prime; the share
at point x = 1, 2, ... is its value there. Secrets have 32 bytes (a key or a seed), shares 33, both little-endian.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

PRIME = 2**256 + 297  # Why: the smallest prime in which every 32-byte secret fits
SECRET_BYTES = 32
SHARE_BYTES = 33
_DRAW_BYTES = 48  # Why: 128 bits more than the prime, so that a coefficient is uniform to within 2^-127


def split_secret(secret: bytes, points: Sequence[int], *, threshold: int, entropy: bytes) -> list[bytes]:
    """One share for each point. The polynomial is made of `entropy`, which must be secret and used only once."""
    if len(secret) != SECRET_BYTES or len(entropy) < SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes and needs {SECRET_BYTES} bytes of entropy or more.")
    if not 1 <= threshold <= len(points):
        raise ValueError(f"threshold is {threshold}, must be from 1 to the number of shares, {len(points)}.")
    _check_points(points)
    drawn = hashlib.shake_256(b"hushrank shamir" + entropy).digest(_DRAW_BYTES * (threshold - 1))
    coefficients = [
        int.from_bytes(drawn[i : i + _DRAW_BYTES], "little") % PRIME for i in range(0, len(drawn), _DRAW_BYTES)
    ]
    downwards = [*coefficients, int.from_bytes(secret, "little")]
    return [_evaluate(downwards, point).to_bytes(SHARE_BYTES, "little") for point in points]


def _evaluate(downwards: Sequence[int], x: int) -> int:
    """The polynomial with these coefficients, the highest first, at x: Horner's rule."""
    value = 0
    for coefficient in downwards:
        value = (value * x + coefficient) % PRIME
    return value


def join_shares(shares: Mapping[int, bytes], *, threshold: int) -> bytes:
    """The secret, from {point: share}; as many as the threshold are used, those with the lowest points.

    Shares that do not belong together give another secret, nearly always without notice: whoever can check the secret
    against something public must do so.
    """
    if len(shares) < threshold:
        raise ValueError(f"{len(shares)} shares came, the threshold is {threshold}: the secret stays unknown.")
    points = tuple(sorted(shares)[:threshold])
    weights = zero_weights(points)
    total = sum(w * _read_share(shares[x]) for w, x in zip(weights, points, strict=True)) % PRIME
    if total >= 2**256:
        raise ValueError("the shares do not belong together: no 32-byte secret has them.")
    return total.to_bytes(SECRET_BYTES, "little")


@lru_cache(maxsize=4)  # Why: a server joins many secrets from the same points, and the weights take most of the time
def zero_weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's weights at 0, of which the secret is the weighted sum: product of x_j / (x_j - x_i) over j != i."""
    _check_points(points)
    product = 1
    for x in points:
        product = product * x % PRIME
    weights = []
    for x in points:
        below = x
        for other in points:
            if other != x:
                below = below * (other - x) % PRIME
        weights.append(product * pow(below, -1, PRIME) % PRIME)
    return tuple(weights)


def _read_share(share: bytes) -> int:
    value = int.from_bytes(share, "little")
    if len(share) != SHARE_BYTES or value >= PRIME:
        raise ValueError(f"a share has {SHARE_BYTES} bytes below the prime, another came.")
    return value


def _check_points(points: Sequence[int]) -> None:
    if len(set(points)) != len(points) or not all(0 < x < PRIME for x in points):
        raise ValueError("points must be different whole numbers from 1: at 0 stands the secret itself.")
