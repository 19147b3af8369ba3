"""What crosses the wire, there and back; what cannot be right is refused with the reason."""

from __future__ import annotations

import struct
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.learners.es import es_aggregate, perturbation
from hushrank.live.wire.bodies import decode_reward, decode_update, encode_reward, encode_update
from hushrank.live.wire.protocol import WIRE_VERSION
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.privacy.none import send_openly
from hushrank.types import DenseUpdate, PrivateReward, SeedReward

seeds = st.integers(0, 2**32 - 1)
floats = st.floats(0, 1, width=32)


@given(seeds, st.lists(floats, min_size=1, max_size=2))
def test_a_message_arrives_as_it_was_sent(seed: int, rewards: list[float]) -> None:
    body = encode_reward(PrivateReward(seed, tuple(rewards), "none"))
    assert len(body) == 4 + 4 * len(rewards)
    received = decode_reward(body)
    assert (received.seed, received.rewards) == (seed, tuple(rewards))


def test_the_bytes_are_little_endian_and_nothing_else() -> None:
    """Golden: version 1 of the wire."""
    assert WIRE_VERSION == 1
    assert encode_reward(PrivateReward(0x01020304, (1.0,), "")) == bytes([4, 3, 2, 1, 0, 0, 0x80, 0x3F])
    assert encode_reward(PrivateReward(0x01020304, (1.0, 0.5), "")).hex() == "04030201" + "0000803f" + "0000003f"


@given(st.lists(st.tuples(seeds, floats, floats), min_size=1, max_size=5))
def test_the_server_needs_the_bytes_the_length_of_params_and_sigma(sent: list[tuple[int, float, float]]) -> None:
    bodies = [encode_reward(PrivateReward(seed, (up, down), "")) for seed, up, down in sent]
    estimate = es_aggregate(map(decode_reward, bodies), n_params=5, sigma=0.01)
    by_hand = [np.float64(perturbation(seed, 5, sigma=0.01)) * (up - down) / (2 * 0.01**2) for seed, up, down in sent]
    assert estimate == pytest.approx(np.mean(by_hand, axis=0), rel=1e-5, abs=1e-6)


@given(st.binary(max_size=40).filter(lambda body: len(body) not in (8, 12)))
def test_a_message_of_another_length_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=rf"the message has {len(body)} bytes, must have 8 .* or 12"):
        decode_reward(body)


@given(st.binary(min_size=8, max_size=8) | st.binary(min_size=12, max_size=12))
def test_whatever_bytes_come_what_is_read_is_right_or_refused(body: bytes) -> None:
    is_right = all(-2 <= reward <= 2 for reward in np.frombuffer(body[4:], "<f4"))
    if is_right:
        assert decode_reward(body, low=-2, high=2).seed == int.from_bytes(body[:4], "little")
    else:
        with pytest.raises(ValueError, match="a reward in the message is"):
            decode_reward(body, low=-2, high=2)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_reward_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="a reward in the message is not a finite number"):
        decode_reward(struct.pack("<Iff", 1, 0.5, value))


@pytest.mark.parametrize("value", [-0.001, 1.001, 1e30])
def test_a_reward_beyond_its_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="a reward in the message is outside the range from 0 to 1"):
        decode_reward(struct.pack("<If", 1, value))


@given(st.floats(0.1, 100))
def test_a_reward_at_the_end_of_its_range_is_welcome_however_it_was_rounded(high: float) -> None:
    assert decode_reward(encode_reward(PrivateReward(1, (high, -high), "")), low=-high, high=high).seed == 1


def test_messages_that_cannot_be_right_are_refused_with_their_reason() -> None:
    good = encode_reward(PrivateReward(1, (0.5, 0.25), ""))
    bad = [b"", good + b"x", struct.pack("<Iff", 9, nan, 0.5), struct.pack("<Iff", 9, 0.5, 7.0), b"x" * 11]
    for body, reason in zip(bad, ("shape", "shape", "not_finite", "reward", "shape"), strict=True):
        with pytest.raises(RefusedError) as refused:
            decode_reward(body)
        assert refused.value.reason is Reason[reason]


def test_only_what_was_privatised_is_encoded() -> None:
    with pytest.raises(TypeError, match="a SeedReward came, only a PrivateReward may leave a device"):
        encode_reward(SeedReward(1, np.array([[0.5]])))  # type: ignore[arg-type] # Why: the mistake to be caught
    with pytest.raises(ValueError, match="3 rewards came, a message carries one or two"):
        encode_reward(PrivateReward(1, (0.1, 0.2, 0.3), ""))
    with pytest.raises(ValueError, match=r"a seed must be a whole number from 0 to 2\^32 - 1"):
        encode_reward(PrivateReward(2**32, (0.1,), ""))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_an_update_arrives_as_it_was_sent(numbers: list[float]) -> None:
    body = encode_update(send_openly(DenseUpdate(np.array(numbers, np.float32), 3)))
    assert len(body) == 4 * len(numbers)
    assert decode_update(body, n_params=len(numbers)).tolist() == numbers


def test_an_update_is_little_endian_float32_and_nothing_else() -> None:
    """Golden: version 1 of the wire."""
    assert encode_update(send_openly(DenseUpdate(np.array([1.0, -2.0]), 1))).hex() == "0000803f" + "000000c0"


def test_only_updates_that_were_privatised_and_can_be_sent_are_encoded() -> None:
    with pytest.raises(TypeError, match="a DenseUpdate came, only a PrivateUpdate may leave a device"):
        encode_update(DenseUpdate(np.ones(2), 1))  # type: ignore[arg-type] # Why: the mistake to be caught
    for delta in (np.ones((1, 2)), np.array([nan]), np.array([1e39])):
        with pytest.raises(ValueError, match="one vector of finite float32 numbers"), np.errstate(over="ignore"):
            encode_update(send_openly(DenseUpdate(delta, 1)))


@given(st.binary(max_size=24))
def test_whatever_bytes_come_an_update_is_finite_or_refused_with_its_reason(body: bytes) -> None:
    if len(body) == 16 and np.isfinite(np.frombuffer(body, "<f4")).all():
        assert decode_update(body, n_params=4).tobytes() == body
        return
    with pytest.raises(RefusedError) as refused:
        decode_update(body, n_params=4)
    assert refused.value.reason == (Reason.not_finite if len(body) == 16 else Reason.shape)
    assert refused.value.status == 422
