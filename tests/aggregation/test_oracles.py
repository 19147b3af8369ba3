"""Rules against other people's implementations. They need heavy packages: `make test-oracles` has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gathered_rounds import make_round

from hushrank.aggregation.bulyan import Bulyan
from hushrank.aggregation.centred_clipping import CentredClipping
from hushrank.aggregation.geometric_median import GeometricMedian
from hushrank.aggregation.krum import Krum, MultiKrum
from hushrank.aggregation.median import median_aggregate
from hushrank.aggregation.mixing import Mixing
from hushrank.aggregation.trimmed_mean import TrimmedMean
from hushrank.types import Array, Gathered

SHAPES = [(11, 3, 2), (10, 46, 1), (23, 5, 4), (90, 136, 20)]  # clients, parameters, malicious ones assumed


def draw_round(n: int, p: int, m: int) -> Gathered:
    """Honest clients around a point, liars farther off."""
    generator = np.random.default_rng((n, p))
    updates = generator.normal(size=(n, p)) + generator.normal(size=p)
    updates[:m] *= 5
    return make_round(updates)


def flower(*, with_weights: Array) -> tuple[Any, list[tuple[list[Array], int]]]:
    """Flower's functions, and updates as it has them: lists of layers, with numbers of examples."""
    aggregate = pytest.importorskip("flwr.server.strategy.aggregate", reason="no flwr: make test-oracles has it")
    return aggregate, [([row], 1) for row in with_weights]


@pytest.mark.parametrize(("n", "p", "m"), SHAPES)
def test_krum_multi_krum_and_bulyan_with_squares_are_flowers(n: int, p: int, m: int) -> None:
    round = draw_round(n, p, m)
    aggregate, results = flower(with_weights=round.updates)
    np.testing.assert_array_equal(Krum(m, "squared")(round).update, aggregate.aggregate_krum(results, m, 0)[0])
    np.testing.assert_allclose(
        MultiKrum(m, "squared")(round).update, aggregate.aggregate_krum(results, m, n - m)[0], rtol=1e-10
    )
    if n >= 4 * m + 3:
        expected = aggregate.aggregate_bulyan(list(results), m, aggregate.aggregate_krum, to_keep=0)[0]
        np.testing.assert_allclose(Bulyan(m, "squared")(round).update, expected, rtol=1e-10)


@pytest.mark.parametrize(("n", "p", "m"), SHAPES)
def test_trimmed_mean_and_median_are_flowers(n: int, p: int, m: int) -> None:
    round = draw_round(n, p, m)
    aggregate, results = flower(with_weights=round.updates)
    expected = aggregate.aggregate_trimmed_avg(results, (m + 0.5) / n)[0]
    np.testing.assert_allclose(TrimmedMean(m)(round).update, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(median_aggregate(round).update, aggregate.aggregate_median(results)[0])


@pytest.mark.parametrize(("n", "p", "m"), SHAPES)
def test_mixing_clipping_and_the_geometric_median_are_those_of_byzfl(n: int, p: int, m: int) -> None:
    byzfl = pytest.importorskip("byzfl", reason="no byzfl: make test-oracles has it")
    round = draw_round(n, p, m)
    mixed = byzfl.NNM(m)(round.updates)
    np.testing.assert_allclose(Mixing(m)(round).update, byzfl.TrMean(m)(mixed), rtol=1e-10)
    np.testing.assert_allclose(Mixing(m, "median")(round).update, byzfl.Median()(mixed), rtol=1e-10)
    centred = CentredClipping(2.0, 3)(round).update
    np.testing.assert_allclose(centred, byzfl.CenteredClipping(L=3, tau=2.0)(round.updates), rtol=1e-10)
    expected = byzfl.GeometricMedian(nu=1e-6, T=2000)(round.updates)
    np.testing.assert_allclose(GeometricMedian(2000)(round).update, expected, atol=1e-6)


@pytest.mark.parametrize(("n", "p", "m"), SHAPES)
def test_krum_is_that_of_byzfl_which_counts_one_neighbour_more(n: int, p: int, m: int) -> None:
    byzfl = pytest.importorskip("byzfl", reason="no byzfl: make test-oracles has it")
    round = draw_round(n, p, m)
    np.testing.assert_array_equal(Krum(m, "squared")(round).update, byzfl.Krum(m + 1)(round.updates))
