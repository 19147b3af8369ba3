"""Control variates: worked by hand, and what all of them add up to."""

from __future__ import annotations

import numpy as np
from remedy_settings import follow, opposed, with_remedy

from hushrank.federation.cohort import Population
from hushrank.remedies.control_variates import ControlVariates
from hushrank.remedies.remedy import MeanMessage, Turn


def test_two_clients_of_one_round_worked_by_hand() -> None:
    """Client 0 took 2 steps, client 1 took 1, at rate 0.5; the server's variate is 1, theirs are 3 and 0."""
    remedy = ControlVariates()
    shared, own = {"variate": np.array([1], np.float32)}, {"variate": np.array([[3], [0]], np.float32)}
    turn = Turn(np, np.array([10], np.float32), shared, own, np.arange(2), np.array([2, 1]), 0.5)
    begun = remedy.begin(turn)
    assert begun.starts.tolist() == [[10], [10]]
    assert begun.shifts is not None and begun.shifts.tolist() == [[1 - 3], [1 - 0]]
    sent, kept = remedy.finish(turn, np.array([[4], [3]], np.float32))
    # c_i - c + moved / (K eta): 3 - 1 + 4 / (2 * .5) = 6 and 0 - 1 + 3 / (1 * .5) = 5
    assert kept["variate"].tolist() == [[6], [5]]
    assert sent.tolist() == [[4, 6 - 3], [3, 5 - 0]]
    mean = MeanMessage(np, sent.mean(axis=0), n_clients=4, n_cohort=2)
    assert remedy.absorb(shared, mean)["variate"].tolist() == [1 + 2 / 4 * (3 + 5) / 2]


def test_a_clients_variate_is_the_mean_of_its_own_gradients_without_the_shift() -> None:
    """The shift is what others add to every step: what is left is what the client itself was pulled by."""
    setting = opposed(with_remedy(ControlVariates(), population=Population(4, (2,)), n_folds=1))
    _, states, _ = follow(setting, 1)
    _, free, _ = follow(opposed(with_remedy(ControlVariates(correction=0.0), population=Population(4, (2,)))), 1)
    np.testing.assert_allclose(states[1]["personal/variate"], free[1]["personal/variate"])  # no shifts so far


def test_the_servers_variate_is_the_mean_of_all_clients_with_full_attendance() -> None:
    setting = opposed(with_remedy(ControlVariates(), population=Population(6, (2,)), n_folds=1))
    _, states, _ = follow(setting, 5)
    for state in states[1:]:
        assert state["remedy/variate"].any()
        np.testing.assert_allclose(state["remedy/variate"], state["personal/variate"].mean(axis=0), atol=1e-5)
