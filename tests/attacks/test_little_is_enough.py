"""Little Is Enough: z and what is sent, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from liars import KEY, send, view_of

from hushrank.attacks.little_is_enough import LittleIsEnough, largest_z


@pytest.mark.parametrize(("n_malicious", "z"), [(1, -0.14), (2, 0.0), (3, 0.18), (4, 0.43)])
def test_z_of_ten_clients_is_that_of_the_normal_quantile(n_malicious: int, z: float) -> None:
    # floor(10 / 2 + 1) = 6, so that Phi(z) = 4 / 9, 4 / 8, 4 / 7, 4 / 6
    assert largest_z(10, n_malicious) == pytest.approx(z, abs=0.005)


def test_a_cohort_in_which_liars_happen_to_be_the_majority_has_a_finite_z() -> None:
    assert np.isfinite([largest_z(n, m) for n in range(1, 8) for m in range(1, n + 1)]).all()


def test_what_is_sent_lies_z_standard_deviations_below_the_mean() -> None:
    own = np.array([[0.0, 2.0], [4.0, 2.0]])  # means 2 and 2, standard deviations 2 and 0
    sent = LittleIsEnough(z=0.5)(view_of(own), key=KEY)
    assert sent.tolist() == [[2 - 0.5 * 2, 2.0]] * 2


def test_one_liar_alone_sends_what_it_learnt() -> None:
    own = np.array([[1.0, -3.0]])  # no spread, whatever z is
    np.testing.assert_array_equal(LittleIsEnough()(view_of(own), key=KEY), own)


def test_full_knowledge_takes_mean_and_spread_of_everybody() -> None:
    updates = np.array([[0.0], [0.0], [3.0], [3.0], [3.0], [3.0]])  # mean 2, standard deviation sqrt(2)
    sent = send("little-is-enough", updates, 2, z=1.0, knowledge="full")
    np.testing.assert_allclose(sent[:2, 0], 2 - np.sqrt(2))
