"""Evolution strategies: both fast engines give what the plain round gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.aggregation.server_step import ServerStep
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, name_engine, simulate
from hushrank.federation.cohort import Population
from hushrank.federation.evolution import Evolution
from hushrank.metrics.rewards import REWARD_NAMES
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import Array, Client

AS_PUBLISHED = Evolution(variant="published-code")
UNEQUAL = Population(12, (2, 6, 4), cohort=9, dropout=0.2)


def setting_for(evolution: Evolution, *, ranker: str = "linear", n_folds: int = 2) -> Setting:
    made = tiny_setting(
        ranker=ranker,
        population=UNEQUAL,
        users=("navigational", "informational"),
        server_step=ServerStep("adam", 0.001),
        n_folds=n_folds,
    )
    method = replace(made.method, exchange=evolution)
    if isinstance(method.ranker, MlpRanker):
        method = replace(method, ranker=MlpRanker(method.ranker.n_features, 5, activation="relu"))
    return replace(made, method=method, start=(0.0,) * method.n_params)


def assert_equal_to_plain(setting: Setting, engine: str) -> None:
    plain, fast = (simulate(setting, Options(engine=name))[0] for name in ("plain", engine))
    assert len(plain) == len(fast) > 0
    for ours, theirs in zip(plain, fast, strict=True):
        assert np.abs(ours.params).max() > 0
        np.testing.assert_allclose(theirs.params, ours.params, atol=1e-7)
        np.testing.assert_allclose(theirs.online, ours.online, atol=1e-6)
        np.testing.assert_array_equal(theirs.searches, ours.searches)


@pytest.mark.parametrize(
    ("ranker", "engine"), [("linear", "numba"), ("mlp", "numba"), ("linear", "xla"), ("mlp", "xla")]
)
def test_engines_equal_the_plain_round_with_unequal_interactions_and_dropouts(ranker: str, engine: str) -> None:
    assert_equal_to_plain(setting_for(Evolution(p=0.7), ranker=ranker), engine)


@pytest.mark.parametrize("reward", REWARD_NAMES)
@pytest.mark.parametrize("antithetic", [True, False])
def test_the_fused_loop_judges_by_every_reward(reward: str, antithetic: bool) -> None:
    evolution = Evolution(reward, antithetic=antithetic, p=1.0 if antithetic else 0.8)
    assert_equal_to_plain(setting_for(evolution, n_folds=1), "numba")


@pytest.mark.slow
@pytest.mark.parametrize("reward", REWARD_NAMES)
def test_the_compiled_program_judges_by_every_reward(reward: str) -> None:
    assert_equal_to_plain(setting_for(Evolution(reward, antithetic=False, p=0.8), n_folds=1), "xla")


def test_workers_and_blocks_of_clients_change_no_bit() -> None:
    setting = setting_for(Evolution(p=0.9))
    setting = replace(setting, method=replace(setting.method, population=Population(600, (4,))))
    one, two = (simulate(setting, Options(engine="numba", workers=n))[0] for n in (1, 2))
    assert all(a.params.tobytes() == b.params.tobytes() for a, b in zip(one, two, strict=True))


def test_who_is_removed_changes_no_other_clients_message() -> None:
    """Client ids name the draws: in a federation without client 0 the others send what they sent before."""
    setting = setting_for(Evolution(p=0.9), n_folds=1)
    setting = replace(setting, rounds=1)
    federation, cell = make_federation(setting, Cell(0, 0, 0)), Cell(0, 0, 0)
    assert federation.study is not None
    key, params = cell_key(setting, cell), initial_params(setting, cell)
    first, again = (federation.study(federation, params, Client(5, 4), key=key, round=1)[0] for _ in range(2))
    other = federation.study(federation, params, Client(6, 4), key=key, round=1)[0]
    assert first.seed == again.seed != other.seed
    np.testing.assert_array_equal(first.rewards, again.rewards)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"p": 0.05}, "p is 0.05, must be above 1/n"),
        ({"p": 1.2}, "p is 1.2, must be above"),
        ({"sigma": 0.0}, "sigma is 0.0, must be > 0"),
        ({"reward": "maxrr"}, "did you mean 'MaxRR'"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Evolution(**changes)  # type: ignore[arg-type] # wrong on purpose


def test_antithetic_halves_need_even_interactions() -> None:
    with pytest.raises(ValueError, match="interactions is 3, must be even"):
        Evolution().check_interactions((4, 3))
    Evolution(antithetic=False).check_interactions((4, 3))


@pytest.mark.parametrize("ranker", ["linear", "mlp"])
@pytest.mark.parametrize("antithetic", [True, False])
def test_the_fused_loop_equals_the_plain_round_with_the_published_seeds(ranker: str, antithetic: bool) -> None:
    evolution = Evolution(p=0.7, antithetic=antithetic, variant="published-code")
    assert_equal_to_plain(setting_for(evolution, ranker=ranker), "numba")


def test_the_compiled_program_has_no_such_seeds_and_says_so() -> None:
    setting = setting_for(AS_PUBLISHED, n_folds=1)
    assert name_engine(setting, Options(), "cpu") == "numba"
    assert name_engine(setting, Options(), "gpu") == "plain"
    with pytest.raises(ValueError, match="engine=xla does not do variant=published-code of foltr-es"):
        name_engine(setting, Options(engine="xla"), "cpu")


def test_people_without_a_click_table_are_refused() -> None:
    def first_only(grades: Array, click_draws: Array, stop_draws: Array) -> Array:
        del click_draws, stop_draws
        return np.arange(len(grades)) == 0

    setting = replace(setting_for(AS_PUBLISHED, n_folds=1), users=(("first", first_only),))
    with pytest.raises(ValueError, match="needs people with a table of click probabilities"):
        simulate(setting)
