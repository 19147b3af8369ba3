"""Shamir's shares: the threshold suffices, one fewer says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.privacy.shamir import PRIME, SHARE_BYTES, join_shares, split_secret, zero_weights

SECRET, ENTROPY = bytes(range(32)), bytes(32)


def test_the_weights_of_a_line_worked_by_hand() -> None:
    # Through the points at 1 and 2 a line has 2 y_1 - y_2 at 0.
    assert zero_weights((1, 2)) == (2, PRIME - 1)


def test_the_prime_is_one() -> None:
    # Fermat's test to several bases; no composite of this size is known to pass, and the number was not chosen to.
    assert PRIME > 2**256 and all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11, 13))


@given(
    st.binary(min_size=32, max_size=32),
    st.binary(min_size=32, max_size=32),
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(1, n), st.permutations(range(1, n + 1)))),
)
@settings(max_examples=60)
def test_any_shares_at_the_threshold_give_the_secret(
    secret: bytes, entropy: bytes, drawn: tuple[int, list[int]]
) -> None:
    threshold, points = drawn
    shares = dict(zip(points, split_secret(secret, points, threshold=threshold, entropy=entropy), strict=True))
    kept = {x: shares[x] for x in points[-threshold:]}
    assert join_shares(kept, threshold=threshold) == secret == join_shares(shares, threshold=threshold)


@given(st.integers(2, 10), st.binary(min_size=32, max_size=32))
@settings(max_examples=30)
def test_one_share_too_few_fits_every_secret(threshold: int, other: bytes) -> None:
    points = range(1, threshold + 1)
    shares = split_secret(SECRET, points, threshold=threshold, entropy=ENTROPY)
    known = dict(zip(points, shares, strict=True))
    del known[threshold]
    # For any other secret there is a last share that makes these threshold - 1 shares its own.
    weights = zero_weights(tuple(points))
    so_far = sum(w * int.from_bytes(known[x], "little") for w, x in zip(weights, known, strict=False))
    last = (int.from_bytes(other, "little") - so_far) * pow(weights[-1], -1, PRIME) % PRIME
    assert join_shares({**known, threshold: last.to_bytes(SHARE_BYTES, "little")}, threshold=threshold) == other


def test_fewer_than_the_threshold_are_refused() -> None:
    shares = split_secret(SECRET, (1, 2, 3), threshold=3, entropy=ENTROPY)
    with pytest.raises(ValueError, match="2 shares came, the threshold is 3"):
        join_shares({1: shares[0], 2: shares[1]}, threshold=3)


def test_the_shares_change_with_the_entropy_only() -> None:
    one, again = (split_secret(SECRET, (1, 2), threshold=2, entropy=ENTROPY) for _ in range(2))
    other = split_secret(SECRET, (1, 2), threshold=2, entropy=bytes(31) + b"1")
    assert one == again and not set(one) & set(other)


@pytest.mark.parametrize(
    ("secret", "points", "threshold", "entropy", "message"),
    [
        (bytes(31), (1, 2), 2, ENTROPY, "a secret has 32 bytes"),
        (SECRET, (1, 2), 2, bytes(16), "32 bytes of entropy"),
        (SECRET, (1, 2), 3, ENTROPY, "threshold is 3, must be from 1 to the number of shares, 2"),
        (SECRET, (1, 2), 0, ENTROPY, "threshold is 0"),
        (SECRET, (1, 1), 2, ENTROPY, "points must be different"),
        (SECRET, (0, 1), 2, ENTROPY, "at 0 stands the secret itself"),
    ],
)
def test_misuse_is_refused(
    secret: bytes, points: tuple[int, ...], threshold: int, entropy: bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        split_secret(secret, points, threshold=threshold, entropy=entropy)


@pytest.mark.parametrize("share", [bytes(32), bytes(34), b"\xff" * 33])
def test_a_malformed_share_is_refused(share: bytes) -> None:
    with pytest.raises(ValueError, match="a share has 33 bytes below the prime"):
        join_shares({1: share}, threshold=1)


def test_shares_of_no_secret_are_refused() -> None:
    with pytest.raises(ValueError, match="do not belong together"):
        join_shares({1: (2**256 + 5).to_bytes(33, "little")}, threshold=1)
