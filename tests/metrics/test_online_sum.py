from __future__ import annotations

import numpy as np
import pytest

from hushrank.metrics.online import discounted_sum


def test_the_first_round_counts_fully_and_each_later_one_less() -> None:
    assert discounted_sum([0.5, 0.4, 1.0], gamma=0.5) == 0.5 + 0.5 * 0.4 + 0.25 * 1.0


def test_without_discount_it_is_the_sum() -> None:
    assert discounted_sum(np.array([0.25, 0.5]), gamma=1.0) == 0.75
    assert discounted_sum([]) == 0.0


def test_the_published_discount_is_the_default_and_tends_to_2000_rounds() -> None:
    assert discounted_sum(np.ones(40_000)) == pytest.approx(1 / (1 - 0.9995), rel=1e-8)  # geometric series


@pytest.mark.parametrize("gamma", [0.0, -1.0, 1.01, float("nan")])
def test_a_discount_outside_its_range_is_refused(gamma: float) -> None:
    with pytest.raises(ValueError, match="gamma is"):
        discounted_sum([1.0], gamma=gamma)
