"""One client's influence is bounded: weights as published, updates by the norm that the noise needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hushrank.privacy.clipping import clip_update, clip_weights, grid_step, round_towards_zero
from hushrank.types import Array

updates = arrays.arrays(np.float32, st.integers(1, 30), elements=st.floats(-1e6, 1e6, width=32))


def test_weights_are_scaled_to_the_norm_by_hand() -> None:
    clipped = clip_weights(np.array([3.0, 4.0], dtype=np.float32), 2.5)  # norm 5, halved
    assert clipped.tolist() == [1.5, 2.0] and clipped.dtype == np.float32


def test_what_is_short_enough_and_zero_stays() -> None:
    assert clip_weights(np.array([3.0, 4.0]), 5.0).tolist() == [3.0, 4.0]
    assert clip_weights(np.zeros(3), 1.0).tolist() == [0.0, 0.0, 0.0]
    assert clip_update(np.array([3.0, -4.0]), 7.0, ord=1).tolist() == [3.0, -4.0]
    assert clip_update(np.zeros(3), 1.0).tolist() == [0.0, 0.0, 0.0]


def test_the_norm_is_that_of_the_noise() -> None:
    delta = np.array([3.0, -4.0])  # L1 norm 7, L2 norm 5
    assert clip_update(delta, 3.5, ord=1) == pytest.approx([1.5, -2.0])
    assert clip_update(delta, 2.5, ord=2) == pytest.approx([1.5, -2.0])


def test_each_vector_of_a_batch_is_clipped_on_its_own() -> None:
    batch = np.array([[3.0, 4.0], [0.3, 0.4]])
    assert clip_weights(batch, 1.0) == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4]]))
    assert clip_update(batch, 1.0) == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4]]))


@given(updates, st.floats(1e-3, 1e3), st.sampled_from([1, 2]))
def test_no_update_is_longer_than_the_norm_also_on_the_grid(delta: Array, norm: float, ord: int) -> None:
    clipped = clip_update(delta, norm, ord=ord)
    rounded = round_towards_zero(clipped, grid_step(norm))
    assert np.linalg.norm(clipped, ord=ord) <= norm
    assert np.linalg.norm(rounded, ord=ord) <= norm
    assert np.all(np.abs(clipped - rounded) < grid_step(norm))


@given(updates, st.floats(1e-3, 1e3))
def test_clipping_keeps_the_direction_and_clips_once(delta: Array, norm: float) -> None:
    clipped = clip_update(delta, norm)
    assert np.all(np.sign(clipped) * np.sign(delta) >= 0)
    assert np.array_equal(clip_update(clipped, norm), clipped)


def test_the_grid_is_a_power_of_two_on_which_sums_and_float32_are_exact() -> None:
    step = grid_step(0.1)
    assert 0.1 / 2**21 < step <= 0.1 / 2**20 and math.log2(step).is_integer()
    exact = round_towards_zero(clip_update(np.array([0.07, -0.03]), 0.1), step)
    assert np.array_equal(exact.astype(np.float32).astype(np.float64), exact)


@pytest.mark.parametrize("norm", [0.0, -1.0, math.inf, math.nan])
def test_a_norm_that_bounds_nothing_is_refused(norm: float) -> None:
    with pytest.raises(ValueError, match="must be above 0 and finite"):
        clip_update(np.ones(2), norm)
    with pytest.raises(ValueError, match="must be above 0 and finite"):
        clip_weights(np.ones(2), norm)


def test_other_misuse_is_refused_without_telling_the_update() -> None:
    with pytest.raises(ValueError, match=r"ord is 3, must be 1 .* or 2"):
        clip_update(np.ones(2), 1.0, ord=3)
    with pytest.raises(ValueError, match="infinite or undefined numbers") as caught:
        clip_update(np.array([0.123, math.nan]), 1.0)
    assert "123" not in str(caught.value)
