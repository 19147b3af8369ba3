"""Lengths that clients keep: by hand, at their limits, and with gaps."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.unlearning.lengths import (
    calibrate,
    count_kept,
    fill_gaps,
    first_lengths,
    is_kept,
    measure_lengths,
    note_lengths,
    place_of,
)

NONE = np.nan
UPDATES = np.array([[3.0, 4.0], [0.0, 0.0], [0.6, -0.8]], np.float32)  # of lengths 5, 0 and 1


@pytest.mark.parametrize(
    ("rounds", "every", "kept"), [(10, 5, [1, 6]), (11, 5, [1, 6, 11]), (3, 1, [1, 2, 3]), (1, 9, [1])]
)
def test_rounds_are_kept_from_the_first_on(rounds: int, every: int, kept: list[int]) -> None:
    found = [round for round in range(1, rounds + 1) if is_kept(round, every)]
    assert found == kept and count_kept(rounds, every) == len(kept)
    assert [place_of(round, every) for round in kept] == list(range(len(kept)))


def test_a_length_stands_at_its_place_and_other_rounds_change_nothing() -> None:
    empty = first_lengths(3, 2)
    assert np.isnan(empty).all() and empty.dtype == np.float32
    second = note_lengths(np, empty, UPDATES, 4, 3)
    np.testing.assert_array_equal(second, [[NONE, 5], [NONE, 0], [NONE, 1]])
    np.testing.assert_array_equal(note_lengths(np, second, 2 * UPDATES, 5, 3), second)
    np.testing.assert_array_equal(note_lengths(np, second, 2 * UPDATES, 1, 3)[:, 0], [10, 0, 2])


def test_a_new_direction_gets_the_kept_length() -> None:
    """(3, 4) has length 5; kept 10: (6, 8). Without a direction 0 stays, without a kept length the update does."""
    found = calibrate(np, UPDATES, np.array([10.0, 7.0, NONE], np.float32))
    np.testing.assert_allclose(found, [[6.0, 8.0], [0.0, 0.0], [0.6, -0.8]], rtol=1e-6)
    assert found.dtype == np.float32
    np.testing.assert_allclose(measure_lengths(np, calibrate(np, UPDATES, np.full(3, 2, np.float32))), [2, 0, 2])


def test_the_same_length_changes_nothing_but_rounding() -> None:
    own = measure_lengths(np, UPDATES)
    np.testing.assert_allclose(calibrate(np, UPDATES, own), UPDATES, rtol=1e-6)


def test_gaps_are_filled_from_before_else_from_after() -> None:
    kept = np.array([[NONE, 1, NONE, NONE, 2], [3, NONE, 4, NONE, NONE], [NONE] * 5, [5, 6, 7, 8, 9]], np.float32)
    filled = fill_gaps(kept)
    expected = [[1, 1, 1, 1, 2], [3, 3, 4, 4, 4], [NONE] * 5, [5, 6, 7, 8, 9]]
    np.testing.assert_array_equal(filled.lengths, expected)
    assert (filled.n_filled, filled.without) == (6, (2,))  # three of the first client, three of the second
