"""The non-IID cells of Table 4.3 of the thesis, which follow from a formula.

With one grade per client every list is as good as any other: nDCG is 0 for the client of grade 0 and 1 for all others.
So g clients of g grades have (g - 1) / g * (1 - gamma^T) / (1 - gamma) after T rounds, gamma = .9995.
"""

from __future__ import annotations

import pytest

from hushrank.engine.simulate import Options, simulate
from hushrank.metrics.online import discounted_sum
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve

THREE_GRADES, FIVE_GRADES = "mq2008-like:n_queries=200", "mslr-like:n_queries=60,n_features=20"


def online_sum(data: str, n_grades: int, rounds: int, clicks: str, engine: str = "numba") -> float:
    changes = {"data": data, "n_clients": n_grades, "interactions": 5, "folds": [1], "partition": "labels-1"}
    recipe = change_recipe(NAMED["fpdgd"], {**changes, "rounds": rounds, "clicks": clicks})
    results, _ = simulate(resolve(recipe), Options(engine=engine))
    return discounted_sum(results[0].online)


@pytest.mark.parametrize("engine", ["numba", "plain"])
@pytest.mark.parametrize("clicks", ["perfect", "informational"])
@pytest.mark.parametrize(("data", "n_grades"), [(THREE_GRADES, 3), (FIVE_GRADES, 5)])
def test_one_grade_per_client_gives_the_formulas_sum(data: str, n_grades: int, clicks: str, engine: str) -> None:
    rounds = 20
    expected = (n_grades - 1) / n_grades * (1 - 0.9995**rounds) / (1 - 0.9995)
    assert online_sum(data, n_grades, rounds, clicks, engine) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("clicks", ["perfect", "navigational", "informational"])
@pytest.mark.parametrize(("data", "n_grades", "printed"), [(THREE_GRADES, 3, 1324.36), (FIVE_GRADES, 5, 1589.23)])
def test_ten_thousand_rounds_give_the_printed_number(data: str, n_grades: int, printed: float, clicks: str) -> None:
    """1589.23 as printed for five grades; three grades have 2/3 in the place of 4/5."""
    assert round(online_sum(data, n_grades, 10_000, clicks), 2) == printed


def test_the_control_is_no_such_sum() -> None:
    changes = {"data": THREE_GRADES, "n_clients": 3, "interactions": 5, "folds": [1], "rounds": 20}
    recipe = change_recipe(NAMED["fpdgd"], {**changes, "partition": "labels-1", "control": True})
    online = discounted_sum(simulate(resolve(recipe), Options(engine="numba"))[0][0].online)
    assert abs(online - 2 / 3 * (1 - 0.9995**20) / (1 - 0.9995)) > 0.5
