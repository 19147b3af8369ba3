"""Fixed point modulo 2^32: sums are right to rounding, and nothing wraps unseen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hushrank.privacy.fixed_point import FixedPoint, bound_with_noise, decode_sum, encode_values


def test_a_sum_worked_by_hand() -> None:
    encoding = FixedPoint(bound=2.0, n_clients=4)  # (2^31 - 1) // 4 = 2^29 - 1 steps for 2 units: 2^27 per unit
    assert encoding.scale == 2**27 and encoding.largest_step == 2**28
    words = [encode_values(np.array(v), encoding) for v in ([1.5, -2.0], [-0.25, -2.0], [0.0, 1.0])]
    assert words[0].dtype == np.uint32 and words[0].tolist() == [3 * 2**26, 2**32 - 2**28]
    assert decode_sum(words[0] + words[1] + words[2], encoding, n_summed=3).tolist() == [1.25, -3.0]


def test_the_stated_scales() -> None:
    assert FixedPoint(1.0, 1000).scale == 2**21 and FixedPoint(1.0, 100).scale == 2**24


ENCODINGS = st.builds(FixedPoint, st.floats(1e-6, 1e6), st.integers(1, 5000))


@given(ENCODINGS, arrays(np.float64, (3, 2), elements=st.floats(-1, 1)))
def test_a_sum_is_right_to_rounding(encoding: FixedPoint, parts: np.ndarray) -> None:
    values = (parts * encoding.bound)[: min(3, encoding.n_clients)]
    words = sum(encode_values(v, encoding) for v in values)
    got = decode_sum(np.asarray(words), encoding, n_summed=len(values))
    assert np.all(np.abs(got - values.sum(0)) <= len(values) / (2 * encoding.scale) + 1e-12 * encoding.bound)


@given(ENCODINGS, st.sampled_from([-1.0, 1.0]))
def test_everyone_at_the_bound_does_not_wrap(encoding: FixedPoint, sign: float) -> None:
    word = encode_values(np.array([sign * encoding.bound]), encoding)
    total = word * np.uint32(encoding.n_clients)
    got = decode_sum(total, encoding, n_summed=encoding.n_clients)[0]
    assert got == pytest.approx(sign * encoding.bound * encoding.n_clients, rel=1e-3)


@pytest.mark.parametrize("value", [1.0001, -1.0001, np.nan, np.inf, -np.inf])
def test_what_would_wrap_is_refused_without_being_told(value: float) -> None:
    with pytest.raises(ValueError, match=r"1 of 2 values are beyond the bound of 1") as caught:
        encode_values(np.array([0.5, value]), FixedPoint(1.0, 10))
    assert "1.0001" not in str(caught.value)


def test_an_impossible_sum_is_refused() -> None:
    encoding = FixedPoint(1.0, 10)
    too_large = np.array([2 * encoding.largest_step + 1], np.uint32)
    with pytest.raises(ValueError, match="larger than its clients could make it"):
        decode_sum(too_large, encoding, n_summed=2)
    assert decode_sum(too_large, encoding, n_summed=3)[0] > 2
    with pytest.raises(ValueError, match="11 clients were added"):
        decode_sum(too_large, encoding, n_summed=11)


@pytest.mark.parametrize(
    ("bound", "n_clients"), [(0.0, 1), (-1.0, 1), (np.inf, 1), (np.nan, 1), (1.0, 0), (1.0, 2**21)]
)
def test_an_encoding_that_cannot_be_is_refused(bound: float, n_clients: int) -> None:
    with pytest.raises(ValueError, match="must be from"):
        FixedPoint(bound, n_clients)


def test_noise_stays_within_its_bound() -> None:
    bound = bound_with_noise(0.1, 0.5, n_values=10**6, failure=1e-3)
    noisy = 0.1 + 0.5 * np.random.default_rng(0).standard_normal(10**6)
    assert np.abs(noisy).max() < bound < 0.1 + 0.5 * 7  # 2 10^6 e^(-t^2 / 2) = 10^-3 at t = 6.54
    with pytest.raises(ValueError, match="failure between 0 and 1"):
        bound_with_noise(0.1, 0.5, n_values=1, failure=0.0)
