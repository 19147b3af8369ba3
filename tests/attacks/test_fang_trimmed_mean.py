"""Fang et al.'s attack on Trimmed Mean and Median: just beyond the honest numbers, backwards."""

from __future__ import annotations

import numpy as np
import pytest
from liars import KEY, honest_updates, send, view_of

from hushrank.attacks.fang_trimmed_mean import FangTrimmedMean
from hushrank.streams import seed_key


def test_full_knowledge_by_hand() -> None:
    # Shared model: 0. Honest models: rising between 1 and 3; falling between -3 and -1; rising between -1 and 5;
    # falling between -5 and 1.
    updates = np.array([[1.0, -1.0, -1.0, 1.0], [3.0, -3.0, 5.0, -5.0]])
    own = np.tile(updates.mean(axis=0), (500, 1))
    sent = FangTrimmedMean("full")(view_of(own, updates, n_clients=502), key=KEY)
    low, high = [0.5, -1.0, -2.0, 1.0], [1.0, -0.5, -1.0, 2.0]  # half of or twice the outermost number, further out
    np.testing.assert_allclose(sent.min(axis=0), low, atol=0.01)
    np.testing.assert_allclose(sent.max(axis=0), high, atol=0.01)


def test_the_numbers_are_those_of_models() -> None:
    updates = np.array([[1.0], [3.0]])
    sent = FangTrimmedMean("full")(view_of(updates[:1], updates[1:], params=np.array([-9.0])), key=KEY)
    assert -8 * 2 + 9 <= sent[0, 0] <= -8 + 9  # the lowest model is -9 + 1 = -8; b times it lies further down


def test_partial_knowledge_is_three_to_four_standard_deviations_from_the_mean() -> None:
    own = np.array([[1.0, -1.0], [3.0, -3.0]])  # means 2 and -2, standard deviations 1
    sent = FangTrimmedMean()(view_of(own), key=KEY)
    assert ((sent[:, 0] >= 2 - 4) & (sent[:, 0] <= 2 - 3)).all()
    assert ((sent[:, 1] >= -2 + 3) & (sent[:, 1] <= -2 + 4)).all()


def test_a_liar_alone_knows_no_spread_and_sends_what_it_learnt() -> None:
    updates = honest_updates(2)
    np.testing.assert_array_equal(send("fang-median", updates, 1), updates)


@pytest.mark.parametrize("n_malicious", [1, 2, 3, 4])
def test_with_full_knowledge_nothing_sent_lies_among_the_honest_numbers(n_malicious: int) -> None:
    updates = honest_updates(1)
    sent = send("fang-trimmed-mean", updates, n_malicious, knowledge="full")[:n_malicious]
    is_inside = (sent > updates.min(axis=0)) & (sent < updates.max(axis=0))
    assert not is_inside.any()


def test_draws_come_from_the_key_alone() -> None:
    view = view_of(honest_updates(5, n=2))
    one, again, other = (FangTrimmedMean()(view, key=key) for key in (KEY, KEY, seed_key(4)))
    assert one.tobytes() == again.tobytes() and (one != other).all()
