"""Remedies that do nothing are federated averaging, bit by bit."""

from __future__ import annotations

import pytest
from remedy_settings import assert_same_bits, opposed, results, with_remedy

from hushrank.federation.cohort import Population
from hushrank.remedies.control_variates import ControlVariates
from hushrank.remedies.interpolation import Interpolation
from hushrank.remedies.personal_layers import FedPer
from hushrank.remedies.prox import FedProx
from hushrank.remedies.remedy import Remedy
from hushrank.remedies.tastes import Tastes

IDLE = [
    FedProx(mu=0.0),
    FedPer(personal=()),
    ControlVariates(correction=0.0),
    Interpolation(own_share=0.0),
    Tastes(n_tastes=0),
    Tastes(n_tastes=3),
]


# Why not all: a program is compiled for each.
QUICK = [(remedy, engine) for remedy in IDLE for engine in ("plain", "numba")] + [(IDLE[2], "xla"), (IDLE[5], "xla")]
SLOW = [pytest.param(remedy, "xla", marks=pytest.mark.slow) for remedy in (*IDLE[:2], *IDLE[3:5])]


@pytest.mark.parametrize(("remedy", "engine"), [*QUICK, *SLOW], ids=repr)
def test_an_idle_remedy_is_federated_averaging_bit_by_bit(remedy: Remedy, engine: str) -> None:
    expected = results(with_remedy(Remedy(), n_folds=1, rounds=6), engine)
    assert_same_bits(results(with_remedy(remedy, n_folds=1, rounds=6), engine), expected)


@pytest.mark.parametrize("remedy", [*IDLE[2:5], Tastes(n_tastes=200)], ids=repr)
def test_it_is_so_with_more_clients_than_are_held_at_once(remedy: Remedy) -> None:
    """300 clients are two blocks of a fused round, and messages longer than an update are held in smaller pieces."""
    many = Population(300, (1, 2))
    expected = results(with_remedy(Remedy(), population=many, n_folds=1, rounds=2), "numba")
    found = results(with_remedy(remedy, population=many, n_folds=1, rounds=2), "numba")
    assert_same_bits(found, expected)


def test_clients_that_differ_but_have_not_shown_it_yet_share_one_ranker() -> None:
    """Fewer than 17 rounds are no evidence: a sum of n cosines is at most sqrt(n) of their standard errors."""
    expected = results(opposed(with_remedy(Remedy(), n_folds=1, rounds=16)), "numba")
    assert_same_bits(results(opposed(with_remedy(Tastes(n_tastes=2), n_folds=1, rounds=16)), "numba"), expected)
