"""Random neighbours: as many as the bounds need, no more, and drawn evenly."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction
from math import comb, log2
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom

from hushrank.privacy import neighbours
from hushrank.privacy.neighbours import (
    LOSS_BITS,
    SECURITY_BITS,
    Neighbours,
    _highest_threshold,
    choose_neighbours,
    log2_of_exposure,
    plan_neighbours,
)
from hushrank.privacy.secure_messages import SumConfig, SumPhase, usual_threshold
from hushrank.privacy.secure_sum import run_secure_sum


def exact_exposure(n: int, found: Neighbours, *, n_colluding: int, least_honest: int) -> Fraction:
    """The bound of `neighbours.py` in whole numbers: sum of C(n, a) * P[X_a >= threshold - 1]^a."""
    total = Fraction(0)
    for a in range(1, least_honest):
        marked = n_colluding + a - 1
        ways = sum(
            comb(marked, i) * comb(n - 1 - marked, found.degree - i)
            for i in range(found.threshold - 1, found.degree + 1)
        )
        total += comb(n, a) * Fraction(ways, comb(n - 1, found.degree)) ** a
    return total


def test_a_case_worked_by_hand() -> None:
    # 4 clients, 1 colludes, each draws 2 of 3 others and 3 shares are needed, its own among them: the server needs both
    # that a client drew. With the colluding one alone that has probability 0; the bound for pairs is
    # C(4, 2) * P[both drawn are the other of the pair and the colluding one]^2 = 6 * (1/3)^2 = 2/3.
    found = log2_of_exposure(4, Neighbours(2, 3), n_colluding=1, least_honest=3)
    assert found == pytest.approx(log2(2 / 3), abs=1e-12)


@pytest.mark.parametrize(("n", "degree", "threshold", "least"), [(40, 20, 16, 6), (200, 52, 42, 20), (300, 60, 44, 70)])
def test_the_bound_is_the_exact_one(n: int, degree: int, threshold: int, least: int) -> None:
    found = Neighbours(degree, threshold)
    exact = exact_exposure(n, found, n_colluding=n // 3, least_honest=least)
    assert log2_of_exposure(n, found, n_colluding=n // 3, least_honest=least) == pytest.approx(
        log2(exact.numerator) - log2(exact.denominator), abs=1e-6
    )


@pytest.mark.parametrize(("n", "least"), [(1000, 250), (1000, 2), (3000, 750)])
def test_a_plan_keeps_both_bounds_and_one_neighbour_fewer_does_not(n: int, least: int) -> None:
    found = plan_neighbours(n, n_colluding=n // 3, n_silent=n // 10, least_honest=least)
    assert found
    exposure = [
        log2_of_exposure(n, each, n_colluding=n // 3, least_honest=least)
        for each in (found, Neighbours(found.degree - 1, found.threshold - 1))
    ]
    lacking = [
        hypergeom(n - 1, n - 1 - n // 10, found.degree).cdf(t - 1) * n for t in (found.threshold, found.threshold + 1)
    ]
    assert exposure[0] <= -40 < exposure[1]
    assert lacking[0] <= 2**-20 < lacking[1]


def test_neighbours_grow_like_a_logarithm() -> None:
    degrees = [
        plan_neighbours(n, n_colluding=n // 3, n_silent=n // 10, least_honest=2).degree  # type: ignore[union-attr]
        for n in (1000, 10_000, 100_000)
    ]
    first, second = np.diff(degrees)
    assert degrees[0] < 110 and 0 < second <= first < 25


def test_where_only_all_others_would_do_all_others_are_asked() -> None:
    # With 4 of 12 silent 7 others are left, and 4 colluding with 4 honest ones are 7 besides the client itself.
    assert plan_neighbours(12, n_colluding=4, n_silent=4, least_honest=5) is None
    config = SumConfig(bytes(16), 12, 1, 1.0, 9, 5, neighbours_from=2, silent_share=0.33)
    assert config.sharing(12) == (11, 9)


def test_where_no_degree_serves_it_is_known_after_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """2, 4, 8, ..., 512 and 998 are tried, not all 997 degrees."""
    tried: list[int] = []

    def count(n_clients: int, degree: int, **options: Any) -> int:
        tried.append(degree)
        return _highest_threshold(n_clients, degree, **options)

    monkeypatch.setattr(neighbours, "_highest_threshold", count)
    assert plan_neighbours.__wrapped__(1000, n_colluding=333, n_silent=100, least_honest=600) is None
    assert tried == [2, 4, 8, 16, 32, 64, 128, 256, 512, 998]


@pytest.mark.parametrize(("n", "silent"), [(20, 1), (60, 6), (150, 7), (300, 30)])
def test_doubling_misses_no_smaller_degree(n: int, silent: int) -> None:
    """Every degree below the plan's breaks the bound, and where there is no plan every degree does."""
    for least in (2, n // 4, n // 3 + 1, n // 2):
        found = plan_neighbours(n, n_colluding=n // 3, n_silent=silent, least_honest=least)
        for degree in range(2, found.degree if found else n - 1):
            threshold = _highest_threshold(n, degree, n_silent=silent, loss_bits=LOSS_BITS)
            each = Neighbours(degree, threshold)
            assert log2_of_exposure(n, each, n_colluding=n // 3, least_honest=least) > -SECURITY_BITS


def test_small_rosters_share_with_everybody_and_large_ones_with_neighbours() -> None:
    config = SumConfig(bytes(16), 1200, 1, 1.0, usual_threshold(1200))
    assert config.sharing(999) == (998, 801)
    assert config.sharing(1200).degree < 200


def test_a_roster_with_more_liars_in_proportion_needs_more_neighbours() -> None:
    """400 of 1,200 may collude, and all of them may be on a roster of 1,000."""
    config = SumConfig(bytes(16), 1200, 1, 1.0, usual_threshold(1200))
    assert config.sharing(1000).degree > config.sharing(1200).degree


def test_every_other_is_drawn_equally_often() -> None:
    keys = [hashlib.sha256(b"draw %d" % i).digest() for i in range(2000)]
    drawn = [choose_neighbours(key, range(20), 5) for key in keys]
    assert all(len(set(each)) == 5 for each in drawn)
    counts = Counter(i for each in drawn for i in each)
    assert chisquare([counts[i] for i in range(20)]).pvalue > 1e-4


@pytest.fixture(scope="module")
def large_sum() -> tuple[Any, dict[int, Any], list[Any]]:
    """60 clients with neighbours, of whom one falls silent before and one after it sends values."""
    config = SumConfig(bytes(16), 60, 3, 1.0, usual_threshold(60), neighbours_from=10)
    assert config.sharing(60).degree < 40
    values = {7 * i: np.random.default_rng(i).uniform(-1, 1, 3) for i in range(60)}
    entropy, seen = {i: hashlib.sha256(b"large %d" % i).digest() for i in values}, list[Any]()
    found = run_secure_sum(
        values,
        config,
        entropy=entropy,
        lost={0: SumPhase.MASK, 70: SumPhase.SIGN, 77: SumPhase.SHARE},
        watch=lambda _, message: seen.append(message),
    )
    return found, values, seen


def test_a_sum_over_neighbours_is_the_sum(large_sum: tuple[Any, dict[int, Any], list[Any]]) -> None:
    found, values, _ = large_sum
    assert set(values) - set(found.client_ids) == {0, 77}
    np.testing.assert_allclose(found.total, sum(values[i] for i in found.client_ids), atol=1e-6)


def peel(kept: set[int], draws: dict[int, set[int]], colluding: set[int], needed: int) -> set[int]:
    """The clients of `kept` whose own masks a server can remove with no other honest client in the sum."""
    while gone := {i for i in kept if len(draws[i] & (kept | colluding)) < needed}:
        kept = kept - gone
    return kept


def test_a_server_that_sees_every_draw_cannot_keep_a_small_group_alone() -> None:
    found = plan_neighbours(1000, n_colluding=333, n_silent=100, least_honest=250)
    assert found
    colluding, honest = set(range(333)), set(range(333, 1000))
    draws = {
        i: set(choose_neighbours(hashlib.sha256(b"peel %d" % i).digest(), set(range(1000)) - {i}, found.degree))
        for i in honest
    }
    assert peel(honest, draws, colluding, found.threshold - 1) == honest  # with everybody in it, a sum comes out
    for victim in (333, 500, 999):
        alike = sorted(honest, key=lambda i: (i != victim, -len(draws[i] & draws[victim])))
        drawn = sorted(honest, key=lambda i: (i != victim, i not in draws[victim]))
        for group in (alike[:249], drawn[:249]):
            assert not peel(set(group), draws, colluding, found.threshold - 1)
