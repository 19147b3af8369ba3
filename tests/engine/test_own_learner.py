"""A learner of one's own that brings a form for Numba runs in the fused loop, with the plain round's numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_settings import run_plainly, tiny_setting

from hushrank.engine.inputs import initial_params
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, name_engine, simulate
from hushrank.learners.named import NamedLearner
from hushrank.learners.pdgd import infer_preferences
from hushrank.types import Array, Ranker


class Hinge:
    """Raise each clicked document until it leads those skipped by one."""

    def __call__(
        self, ranker: Ranker, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array
    ) -> Array:
        weights = np.zeros(len(ranking), dtype=scores.dtype)
        for clicked, skipped in infer_preferences(is_clicked):
            if scores[ranking[clicked]] - scores[ranking[skipped]] < 1:
                weights[clicked] += 1
                weights[skipped] -= 1
        return ranker.score_gradient(params, features[ranking], weights)

    @staticmethod
    def pull(scores: Any, length: int, places: Any, n_shown: int, clicked: Any, left: Any, pulls: Any) -> bool:
        """The same weights, for the shown documents."""
        last = n_shown - 1
        while not clicked[last]:
            last -= 1
        pulls[:n_shown] = 0
        is_any = length < 0 or len(left) < 0  # neither is needed here
        for k in range(min(last + 2, n_shown)):
            for l in range(min(last + 2, n_shown)):
                if clicked[k] and not clicked[l] and scores[places[k]] - scores[places[l]] < 1:
                    pulls[k] += 1
                    pulls[l] -= 1
                    is_any = True
        return is_any


def hinge_setting(ranker: str = "linear", **changes: Any) -> Setting:
    setting = tiny_setting(ranker=ranker, users=("perfect",), n_folds=1)
    return replace(setting, method=replace(setting.method, learner=NamedLearner("hinge", Hinge()), **changes))


@pytest.mark.parametrize("ranker", ["linear", "mlp"])
def test_the_fused_form_gives_the_plain_rounds_ranker(ranker: str) -> None:
    setting = hinge_setting(ranker)
    assert name_engine(setting, Options(), "cpu") == "numba"
    result = simulate(setting, Options(engine="numba"))[0][0]
    params, online = run_plainly(setting, Cell(0, 0, 0), setting.rounds)
    np.testing.assert_allclose(result.params, params, atol=3e-6)
    np.testing.assert_allclose(result.online, online, atol=1e-6)
    assert np.abs(result.params - initial_params(setting, Cell(0, 0, 0))).max() > 0


def test_without_the_fused_loop_it_runs_plainly() -> None:
    assert name_engine(hinge_setting(), Options(), "gpu") == "plain"
    with pytest.raises(ValueError, match="engine=xla does not do learner=hinge"):
        name_engine(hinge_setting(), Options(engine="xla"), "cpu")
