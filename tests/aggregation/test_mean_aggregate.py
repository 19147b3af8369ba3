"""The weighted mean of updates, all at once and as a stream."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.aggregation.mean import MeanState, mean_add, mean_aggregate, mean_finish, mean_init
from hushrank.privacy.none import send_openly
from hushrank.types import Array, DenseUpdate, PrivateUpdate

# Eighths, so that sums are exact in any order.
update_lists = st.lists(
    st.tuples(st.lists(st.integers(-80, 80), min_size=3, max_size=3), st.integers(0, 9)), min_size=1, max_size=8
)


def sent(delta: list[float], n_interactions: int) -> PrivateUpdate:
    return send_openly(DenseUpdate(np.array(delta, np.float32) / 8, n_interactions))


def stream_of(updates: list[PrivateUpdate]) -> MeanState:
    state = mean_init(3)
    for update in updates:
        state = mean_add(state, update.delta, update.weight)
    return state


def test_clients_weigh_as_much_as_they_searched() -> None:
    updates = [send_openly(DenseUpdate(np.array([1.0, 0.0]), 1)), send_openly(DenseUpdate(np.array([5.0, 8.0]), 3))]
    mean = mean_aggregate(updates, n_params=2)
    assert mean.tolist() == [(1 * 1 + 3 * 5) / 4, (1 * 0 + 3 * 8) / 4]


def test_the_mean_of_updates_moves_to_the_mean_of_models() -> None:
    """theta + sum n_c/n (theta_c - theta) = sum n_c/n theta_c [fpdgd, Eq. 10]."""
    start, models, counts = np.array([2.0, -1.0]), np.array([[3.0, 0.0], [0.0, 4.0], [1.0, 1.0]]), np.array([1, 2, 5])
    updates = [send_openly(DenseUpdate(m - start, int(n))) for m, n in zip(models, counts, strict=True)]
    np.testing.assert_allclose(start + mean_aggregate(updates, n_params=2), counts @ models / counts.sum())


def test_nobody_gives_zero() -> None:
    assert mean_aggregate([], n_params=3).tolist() == [0.0, 0.0, 0.0]
    assert mean_aggregate([sent([8, 8, 8], 0)], n_params=3).tolist() == [0.0, 0.0, 0.0]


def test_equal_weights_give_the_plain_mean_and_one_update_gives_itself() -> None:
    rows: Array = np.arange(12.0).reshape(4, 3)
    updates = [send_openly(DenseUpdate(row, 4)) for row in rows]
    np.testing.assert_allclose(mean_aggregate(updates, n_params=3), rows.mean(axis=0))
    assert mean_aggregate(updates[2:3], n_params=3).tolist() == rows[2].tolist()


@settings(deadline=None)
@given(update_lists)
def test_whoever_learnt_nothing_is_ignored(rows: list[tuple[list[float], int]]) -> None:
    updates = [sent(*row) for row in rows]
    some = [update for update in updates if update.weight > 0]
    assert mean_aggregate(updates, n_params=3).tolist() == mean_aggregate(some, n_params=3).tolist()


@settings(deadline=None)
@given(update_lists, st.integers(0, 8), st.randoms(use_true_random=False))
def test_streams_in_any_grouping_and_order_equal_the_whole(
    rows: list[tuple[list[float], int]], cut: int, random: object
) -> None:
    updates = [sent(*row) for row in rows]
    whole = mean_aggregate(updates, n_params=3)
    random.shuffle(updates)  # type: ignore[attr-defined]
    first, second = stream_of(updates[:cut]), stream_of(updates[cut:])
    joined = MeanState(first.total + second.total, first.weight + second.weight)
    assert mean_finish(joined).tolist() == whole.tolist()


@settings(deadline=None)
@given(update_lists, st.integers(1, 100))
def test_only_the_proportions_of_weights_count(rows: list[tuple[list[float], int]], factor: int) -> None:
    scaled = [sent(delta, factor * n) for delta, n in rows]
    np.testing.assert_allclose(
        mean_aggregate(scaled, n_params=3), mean_aggregate([sent(*row) for row in rows], n_params=3), rtol=1e-12
    )


def test_an_update_of_another_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="could not be broadcast"):
        mean_aggregate([sent([1, 2, 3], 1)], n_params=2)
